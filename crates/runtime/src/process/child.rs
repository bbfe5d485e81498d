//! Processes of one run: a process group that ends with the run. Its leader is the launcher of [`sandbox`], which also
//! ends processes that left the group. In programs without a launcher, the leader is the interpreter.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use meshwork_model::sandbox::Usage;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::process::{ChildStderr, ChildStdout, Command};
use tokio_util::sync::CancellationToken;

use super::super::blocking::blocking;
use super::super::sandbox;
use super::super::sandbox::{Inherited, Launched, LimitExceeded};
use super::super::workdir::Folder;
use super::start::{Executable, NotStarted};

/// Stack of the thread that waits for a process, in bytes.
const WAITER_STACK: usize = 128 * 1024;

/// Longest time that a launcher needs to end a run: usually milliseconds, 2 s if processes cannot be killed. A script
/// may have stopped the launcher.
const LAUNCHER_ENDS: Duration = Duration::from_secs(4);
/// Greatest number of rounds of kills below a launcher that does not answer. One round suffices unless processes fork
/// endlessly.
const MAX_ROUNDS: usize = 100;

/// The end of a run's processes.
#[derive(Debug)]
pub(super) struct Ending {
    /// True if the script may have started: an error is that of its program.
    pub(super) has_begun: bool,
    pub(super) launched: Launched,
    /// The limit for which the run was ended.
    pub(super) exceeded: Option<LimitExceeded>,
    /// `None` without a launcher, and if it was killed.
    pub(super) usage: Option<Usage>,
}

/// A process group. It is killed when this is dropped.
#[derive(Debug)]
pub(super) struct Child {
    leader: tokio::process::Child,
    _own: Option<sandbox::Own>,
    waiter: Waiter,
    /// Until the leader is reaped, no other process gets its pid.
    group: Option<Pid>,
    /// Connection to the launcher, if the leader is one.
    launcher: Option<sandbox::Control>,
}

impl Child {
    /// Starts `program`, confined by `orders`.
    pub(super) fn start(
        (program, handed): (Executable<'_>, &str),
        folder: &Folder,
        inherited: Inherited,
        orders: &sandbox::Orders,
    ) -> Result<Self, NotStarted> {
        let cannot = |error: io::Error| NotStarted::of_system("start the script", &error);
        let (command, launcher) = if sandbox::is_on() {
            let launcher = sandbox::launcher(program.path, folder.root(), &inherited, orders);
            let (command, control) = launcher.map_err(cannot)?;
            (command, Some(control))
        } else {
            let mut command = std::process::Command::new(program.path);
            let variables = inherited.environment.read().map_err(cannot)?;
            command.env_clear().envs(variables).stdin(inherited.input);
            (command, None)
        };
        let waiter = Waiter::start().map_err(cannot)?;
        let mut command = Command::from(command);
        command
            .args(program.args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .current_dir(folder.work())
            .process_group(0)
            // A launcher ends by itself, and ends all processes.
            .kill_on_drop(launcher.is_none());
        let spawn = || match launcher {
            Some(_) => sandbox::shielded(|| command.spawn()),
            None => command.spawn(),
        };
        let started = sandbox::Own::start(spawn, tokio::process::Child::id);
        let (leader, own) = started
            .map_err(|error| NotStarted::of_spawn(&error, program, handed, command.as_std()))?;
        let group = leader.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        waiter.watch(group);
        Ok(Self {
            leader,
            _own: own,
            waiter,
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
    pub(super) async fn ended(&self) {
        self.waiter.ended.cancelled().await;
    }

    /// Kills all processes of the run, and returns the end of the script.
    pub(super) async fn end(&mut self) -> io::Result<Ending> {
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
        let Some(launcher) = self.launcher.take() else {
            return status.map(|status| Ending {
                has_begun: true,
                launched: Launched::Ended(status),
                exceeded: None,
                usage: None,
            });
        };
        let mut report = launcher.report();
        let launched = match report.end.take() {
            Some(launched) => launched,
            None => end_of_killed(status?, report.has_begun).await,
        };
        Ok(Ending {
            has_begun: report.has_begun,
            launched,
            exceeded: report.exceeded,
            usage: report.usage,
        })
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

/// Returns the end of a script whose launcher was killed. It reports none; its own exit status counts then.
async fn end_of_killed(status: ExitStatus, has_begun: bool) -> Launched {
    let swept = blocking(|| {
        sandbox::sweep();
        Ok(())
    });
    let _ = swept.await;
    if !has_begun && status.signal().is_some() {
        return Launched::Killed(status);
    }
    let _ = tokio::task::spawn_blocking(sandbox::end_adopted).await;
    if status.code() == Some(sandbox::CANNOT_LAUNCH) {
        return Launched::NotStarted(io::Error::other("its launcher failed"));
    }
    Launched::Ended(status)
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

/// Thread that waits for a process without reaping it, which only a thread can. It exists before the process: a host that
/// has no thread left starts no script.
#[derive(Debug)]
struct Waiter {
    process: mpsc::Sender<Pid>,
    ended: CancellationToken,
}

impl Waiter {
    fn start() -> io::Result<Self> {
        let (process, started) = mpsc::channel();
        let ended = CancellationToken::new();
        let tell = ended.clone();
        let thread = std::thread::Builder::new()
            .name("script".to_owned())
            .stack_size(WAITER_STACK);
        thread.spawn(move || {
            // Without a process, the sender is dropped.
            if let Ok(process) = started.recv() {
                let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
                while matches!(waitid(WaitId::Pid(process), how), Err(Errno::INTR)) {}
            }
            tell.cancel();
        })?;
        Ok(Self { process, ended })
    }

    /// Waits for the process. Without one, it has ended already.
    fn watch(&self, process: Option<Pid>) {
        match process {
            // The thread waits for it.
            Some(process) => drop(self.process.send(process)),
            None => self.ended.cancel(),
        }
    }
}
