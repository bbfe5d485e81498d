//! The process of one run, and all that it starts: one process group, which is gone when the run is.

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use meshwork_model::job::limits::MAX_OUTPUT;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::process::{ChildStderr, ChildStdout, Command};
use tokio::sync::oneshot;

use super::super::Run;
use super::folder::Folder;
use super::lifeline;

/// What the interpreter runs; the script itself it reads from its folder.
const BOOTSTRAP: &str = include_str!("bootstrap.py");

/// What the thread that waits for a process needs, and more.
const WAITER_STACK: usize = 128 * 1024;

/// A process group, killed when this is dropped.
#[derive(Debug)]
pub(super) struct Child {
    leader: tokio::process::Child,
    /// While the leader is not waited for, nobody else can be given its number.
    group: Option<Pid>,
}

impl Child {
    /// Starts the script of `job` with `input` as its stdin.
    pub(super) fn start(
        interpreter: &Path,
        run: &Run,
        folder: &Folder,
        input: Stdio,
    ) -> io::Result<Self> {
        let job = &run.job;
        let lifeline =
            lifeline::descriptor().map_err(|error| io::Error::new(error.kind(), error))?;
        let mut command = Command::new(interpreter);
        command.args(["-I", "-X", "utf8", "-c", BOOTSTRAP, &lifeline.to_string()]);
        command.arg(folder.outcome()).arg(MAX_OUTPUT.to_string());
        command.arg(folder.progress());
        command.env_clear();
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        command
            .env("HOME", folder.work())
            .env("TMPDIR", folder.work())
            .env("LANG", "C.UTF-8");
        command.envs(&job.env_vars);
        command.env("CALLER_ID", &job.caller_id);
        command
            .env("CONTEXT_ID", &job.context_id)
            .env("JOB_ID", &job.id);
        if let Some(trace) = &run.trace {
            command.env("TRACEPARENT", trace.parent());
            command.envs(trace.state().map(|state| ("TRACESTATE", state)));
        }
        command
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
            .current_dir(folder.work())
            .process_group(0)
            .kill_on_drop(true);
        let leader = command.spawn()?;
        let group = leader.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        Ok(Self { leader, group })
    }

    pub(super) fn stdout(&mut self) -> Option<ChildStdout> {
        self.leader.stdout.take()
    }

    pub(super) fn stderr(&mut self) -> Option<ChildStderr> {
        self.leader.stderr.take()
    }

    /// Waits until the leader has ended, and leaves it as it is: were it waited for now, the number of its
    /// group could be given to another before the group is killed.
    pub(super) async fn ended(&self) -> io::Result<()> {
        let Some(group) = self.group else {
            return Ok(());
        };
        let (send, ended) = oneshot::channel();
        // A thread, since there is no other way to wait and leave. It ends with the process.
        let thread = std::thread::Builder::new()
            .name("python".to_owned())
            .stack_size(WAITER_STACK);
        thread.spawn(move || {
            let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while matches!(waitid(WaitId::Pid(group), how), Err(Errno::INTR)) {}
            // Nobody waits any more if this fails.
            let _ = send.send(());
        })?;
        // The sender is dropped only after it has sent.
        let _ = ended.await;
        Ok(())
    }

    /// Kills all that is left of the group and returns how the leader ended.
    pub(super) async fn end(&mut self) -> io::Result<ExitStatus> {
        self.kill();
        let status = self.leader.wait().await;
        self.group = None;
        status
    }

    /// Asks all of the group to end.
    pub(super) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // Fails only if all of it has ended.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}
