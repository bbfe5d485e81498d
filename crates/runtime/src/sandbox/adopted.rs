//! Processes that a worker adopts: a script may kill its launcher, and its processes in other groups and sessions then
//! become children of the worker, which is their subreaper. The worker knows its own children, and ends all others.

use std::collections::HashSet;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitId, WaitIdOptions, getpid, set_child_subreaper, waitid};

use super::{tree, wait_for};

/// Longest search for adopted processes. They end in milliseconds.
const ENDING: Duration = Duration::from_secs(2);
/// Pause before the next search.
const AGAIN: Duration = Duration::from_millis(5);

/// True if all children of this process that no runtime has started are adopted ones.
static IS_ON: AtomicBool = AtomicBool::new(false);

/// Children that runtimes have started. Locked while one is started, so that a search finds it in the set.
static OWN: Mutex<Option<HashSet<i32>>> = Mutex::new(None);

/// Lets this process adopt the processes of scripts that have killed their launcher, and ends them. For programs whose
/// only child processes are those of runtimes: any other child would be ended, too. Call it after
/// [`init`](super::init). Without it, such processes survive.
///
/// # Errors
/// The system does not allow it.
pub fn adopt_orphans() -> io::Result<()> {
    set_child_subreaper(Some(getpid()))?;
    IS_ON.store(true, Ordering::Relaxed);
    Ok(())
}

fn own() -> MutexGuard<'static, Option<HashSet<i32>>> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A child that a runtime has started, as long as this exists.
#[derive(Debug)]
pub(in super::super) struct Own(i32);

impl Own {
    /// Starts a child whose pid `pid` returns.
    pub(in super::super) fn start<T>(
        start: impl FnOnce() -> io::Result<T>,
        pid: impl FnOnce(&T) -> Option<u32>,
    ) -> io::Result<(T, Option<Self>)> {
        let mut own = own();
        let child = start()?;
        let pid = pid(&child).map(u32::cast_signed);
        if let Some(pid) = pid {
            own.get_or_insert_default().insert(pid);
        }
        Ok((child, pid.map(Self)))
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        own().get_or_insert_default().remove(&self.0);
    }
}

/// Ends all adopted processes. To be called when a launcher was killed, on a thread for blocking calls.
pub(in super::super) fn end_adopted() {
    if !IS_ON.load(Ordering::Relaxed) {
        return;
    }
    let until = Instant::now() + ENDING;
    while Instant::now() < until {
        let adopted = adopted();
        if adopted.is_empty() {
            return;
        }
        for pid in adopted {
            tree::kill_with_descendants(pid);
            if let Some(pid) = Pid::from_raw(pid) {
                let how = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
                // It may not have ended yet: the next round reaps it.
                let _ = waitid(WaitId::Pid(pid), how);
            }
        }
        if wait_for(&mut [], Some(AGAIN)).is_err() {
            return;
        }
    }
}

fn adopted() -> Vec<i32> {
    let own = own();
    let mut children = tree::children(getpid().as_raw_pid());
    children.retain(|pid| own.as_ref().is_none_or(|own| !own.contains(pid)));
    children
}
