//! The launcher, in a process with a single thread.

use std::ffi::{CStr, OsString};
use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal as Number};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper,
    set_dumpable_behavior, wait,
};

use super::control::{Order, Worker};
use super::handoff::{self, Handoff};
use super::{ENTER, again, argument, descriptors, tree, wait_for};
use crate::runtime::workdir::Root;

/// Longest wait for killed processes. They end in milliseconds, unless they are stuck in the kernel or belong to
/// another user.
const ENDING: Duration = Duration::from_secs(2);
/// Pause before the next search for processes that started meanwhile.
const AGAIN: Duration = Duration::from_millis(5);
/// Longest wait until the files of a dead worker are closed, which include the lock of the folder.
const CLOSING: Duration = Duration::from_secs(5);
/// Name of the process, at most 15 bytes. Without it the name would be `exe`.
const NAME: &CStr = c"meshwork-launch";

/// Runs the program that the arguments name after the folder of the run, until it or the worker has ended.
pub(super) fn run(args: impl Iterator<Item = OsString>) -> io::Result<()> {
    let run = start(args).inspect_err(|error| {
        // The caller prints the error if there is no socket.
        let _ = Worker::on_stdin().map(|worker| worker.refuse(error));
    })?;
    run.attend()
}

/// A started run.
struct Launch {
    folder: Root,
    worker: Worker,
    children: Children,
    script: Script,
    handoff: Handoff,
}

fn start(mut args: impl Iterator<Item = OsString>) -> io::Result<Launch> {
    has_one_thread()?;
    descriptors::close_all_but_standard()?;
    // The memory contains the script's environment, so no other process may read it.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    rustix::thread::set_name(NAME)?;
    set_child_subreaper(Some(getpid()))?;
    // Also signals that would stop this process, and those that a script sends to its group.
    SigSet::all().thread_block()?;
    let children = Children::watch()?;
    let worker = Worker::on_stdin()?;
    // Opened before the script can replace it.
    let folder = Root::open(Path::new(&argument(&mut args)?))?;
    let (handoff, writer) = Handoff::pipe()?;
    let mut command = again(ENTER);
    command.arg(getpid().as_raw_pid().to_string());
    command.arg(handoff::number(&writer)).args(args);
    command.stdin(worker.input()?);
    worker.begin();
    let script = command.spawn()?;
    let Some(pid) = Pid::from_raw(script.id().cast_signed()) else {
        return Err(io::Error::other("the script's process has no number"));
    };
    let script = Script { pid, status: None };
    Ok(Launch {
        folder,
        worker,
        children,
        script,
        handoff,
    })
}

impl Launch {
    /// Waits for the end of the script or the worker, ends all processes, and reports.
    fn attend(mut self) -> io::Result<()> {
        let order = follow(&mut self.script, &self.worker, &self.children)?;
        end(&mut self.script, &self.children)?;
        match (self.handoff.error(), self.script.status) {
            (Some(error), _) => self.worker.refuse(&error),
            (None, Some(status)) => self.worker.report(status),
            (None, None) => {}
        }
        if order == Some(Order::Gone) {
            clear_away(&self.folder);
        }
        Ok(())
    }
}

/// Returns true if the process has one thread; others would receive the blocked signals.
fn has_one_thread() -> io::Result<()> {
    match fs::read_dir("/proc/self/task")?.count() {
        1 => Ok(()),
        _ => Err(io::Error::other(
            "there are threads before meshwork::runtime::init(): call it first in `main`, not in an `async` one",
        )),
    }
}

/// The interpreter's process.
struct Script {
    pid: Pid,
    /// Wait status, after it has ended.
    status: Option<i32>,
}

impl Script {
    /// Reaps all children that have ended. Returns true if others remain.
    fn reap(&mut self) -> io::Result<bool> {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.pid => self.status = Some(status.as_raw()),
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return Ok(true),
                Err(Errno::CHILD) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Descriptor that becomes readable when children end.
struct Children(SignalFd);

impl Children {
    fn watch() -> io::Result<Self> {
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let ends = SignalFd::with_flags(&SigSet::from(Number::SIGCHLD), flags)?;
        Ok(Self(ends))
    }

    /// Reads all pending signals.
    fn heard(&self) {
        while matches!(self.0.read_signal(), Ok(Some(_))) {}
    }
}

/// Waits until the script has ended, or the worker has sent an order.
fn follow(script: &mut Script, worker: &Worker, children: &Children) -> io::Result<Option<Order>> {
    loop {
        let mut ready = [
            PollFd::new(&children.0, PollFlags::IN),
            PollFd::new(worker, PollFlags::IN),
        ];
        wait_for(&mut ready, None)?;
        let [child, order] = ready.map(|ready| !ready.revents().is_empty());
        if child {
            children.heard();
            script.reap()?;
            if script.status.is_some() {
                return Ok(None);
            }
        }
        if order {
            return Ok(Some(worker.order()));
        }
    }
}

/// Kills the script and all processes that it started. As a subreaper this process adopts orphaned ones, so none remain
/// when it has no children.
fn end(script: &mut Script, children: &Children) -> io::Result<()> {
    if script.status.is_none() {
        // Its pid is not reused before it is reaped. Fails if it has just ended.
        let _ = kill_process(script.pid, Signal::KILL);
    }
    let until = Instant::now() + ENDING;
    while script.reap()? && Instant::now() < until {
        tree::kill_below(getpid());
        wait_for(&mut [PollFd::new(&children.0, PollFlags::IN)], Some(AGAIN))?;
        children.heard();
    }
    Ok(())
}

/// Removes the folder of a run whose worker was killed.
fn clear_away(folder: &Root) {
    let until = Instant::now() + CLOSING;
    while !folder.remove_orphan() && Instant::now() < until {
        // The next worker removes the rest.
        if wait_for(&mut [], Some(AGAIN)).is_err() {
            return;
        }
    }
}
