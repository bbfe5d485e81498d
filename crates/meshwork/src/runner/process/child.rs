//! Processes of one run: a process group that ends with the run. Its leader is the launcher of [`sandbox`], which also
//! ends processes that left the group. In programs without a launcher, the leader is the interpreter.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::process::{ChildStderr, ChildStdout, Command};
use tokio::sync::oneshot;

use super::super::workdir::Folder;
use super::super::{Run, sandbox};

/// Stack of the thread that waits for a process, in bytes.
const WAITER_STACK: usize = 128 * 1024;

/// Longest time that a launcher needs to end a run: usually milliseconds, 2 s if processes cannot be killed. A script
/// may have stopped the launcher.
const LAUNCHER_ENDS: Duration = Duration::from_secs(4);
/// Greatest number of rounds of kills below a launcher that does not answer. One round suffices unless processes fork
/// endlessly.
const MAX_ROUNDS: usize = 100;

/// A process group. It is killed when this is dropped.
#[derive(Debug)]
pub(super) struct Child {
    leader: tokio::process::Child,
    /// Until the leader is reaped, no other process gets its pid.
    group: Option<Pid>,
    /// Connection to the launcher, if the leader is one.
    launcher: Option<sandbox::Control>,
}

impl Child {
    /// Starts `program` with its arguments for `run`, with `input` as its stdin.
    pub(super) fn start(
        (program, args): (&Path, &[OsString]),
        run: &Run,
        folder: &Folder,
        input: File,
    ) -> io::Result<Self> {
        let (command, launcher) = if sandbox::is_on() {
            let (command, control) = sandbox::launcher(program, folder.root(), &input)?;
            (command, Some(control))
        } else {
            let mut command = std::process::Command::new(program);
            command.stdin(input);
            (command, None)
        };
        let mut command = Command::from(command);
        command.args(args);
        set_environment(&mut command, run, folder);
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .current_dir(folder.work())
            .process_group(0)
            // A launcher ends by itself, and ends all processes.
            .kill_on_drop(launcher.is_none());
        let leader = command.spawn()?;
        let group = leader.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        Ok(Self {
            leader,
            group,
            launcher,
        })
    }

    pub(super) fn stdout(&mut self) -> Option<ChildStdout> {
        self.leader.stdout.take()
    }

    pub(super) fn stderr(&mut self) -> Option<ChildStderr> {
        self.leader.stderr.take()
    }

    /// Waits until the leader has ended, without reaping it: its pid, which names the group, must not be used again
    /// before the group is killed.
    pub(super) async fn ended(&self) -> io::Result<()> {
        let Some(group) = self.group else {
            return Ok(());
        };
        let (send, ended) = oneshot::channel();
        // Only a thread can wait without reaping. It ends with the process.
        let thread = std::thread::Builder::new()
            .name("script".to_owned())
            .stack_size(WAITER_STACK);
        thread.spawn(move || {
            let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while matches!(waitid(WaitId::Pid(group), how), Err(Errno::INTR)) {}
            // The receiver may be gone.
            let _ = send.send(());
        })?;
        // The sender is dropped only after sending.
        let _ = ended.await;
        Ok(())
    }

    /// Kills all processes of the run, and returns the exit status of the script.
    pub(super) async fn end(&mut self) -> io::Result<ExitStatus> {
        if let Some(launcher) = &self.launcher
            && !self.has_ended()
        {
            launcher.end();
            self.signal(Signal::CONT);
            let ended = tokio::time::timeout(LAUNCHER_ENDS, self.ended()).await;
            if ended.is_err()
                && let Some(launcher) = self.group
            {
                // The launcher has adopted processes that left the group; init would adopt them next.
                let work = move || (0..MAX_ROUNDS).any(|_| sandbox::kill_below(launcher) == 0);
                let _ = tokio::task::spawn_blocking(work).await;
            }
        }
        self.kill();
        let status = self.leader.wait().await;
        self.group = None;
        let launched = self.launcher.take().and_then(|launcher| launcher.status());
        // A killed launcher reports nothing; its own exit status counts then.
        Ok(launched.unwrap_or(status?))
    }

    fn has_ended(&self) -> bool {
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        let ended = self.group.map(|group| waitid(WaitId::Pid(group), how));
        !matches!(ended, Some(Ok(None)))
    }

    /// Sends SIGTERM to the group.
    pub(super) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // Fails only if all processes have ended.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        match self.launcher {
            // The launcher ends when its socket is closed, unless it is stopped.
            Some(_) => self.signal(Signal::CONT),
            None => self.kill(),
        }
    }
}

/// Sets the script's environment, which inherits only `PATH` from the worker.
fn set_environment(command: &mut Command, run: &Run, folder: &Folder) {
    let job = &run.job;
    command.env_clear();
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    command
        .env("HOME", folder.work())
        .env("TMPDIR", folder.work())
        .env("LANG", "C.UTF-8")
        .envs(&job.env_vars)
        .env("CALLER_ID", &job.caller_id)
        .env("CONTEXT_ID", &job.context_id)
        .env("JOB_ID", &job.id)
        .env("MESHWORK_JOB", &job.id);
    if let Some(inputs) = folder.inputs() {
        command.env("MESHWORK_INPUTS", inputs);
    }
    if let Some(trace) = &run.trace {
        command.env("TRACEPARENT", trace.parent());
        command.envs(trace.state().map(|state| ("TRACESTATE", state)));
    }
}
