//! The process of a script, and the wait for its end. Used by the launcher and by the first process of a namespace.

use std::io;
use std::process::Child;

use nix::sys::signal::{SigSet, Signal as Number};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, wait};

/// The process that runs the script.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) pid: Pid,
    /// Wait status, after it has ended.
    pub(super) status: Option<i32>,
}

impl Script {
    /// Returns the script of a started process.
    pub(super) fn of(child: &Child) -> io::Result<Self> {
        let pid = Pid::from_raw(child.id().cast_signed());
        let pid = pid.ok_or_else(|| io::Error::other("the script's process has no number"))?;
        Ok(Self { pid, status: None })
    }

    /// Reaps all children that have ended. Returns true if others remain.
    pub(super) fn reap(&mut self) -> io::Result<bool> {
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

/// Descriptor that becomes readable when children end, or when this process should end.
#[derive(Debug)]
pub(super) struct Signals(SignalFd);

impl Signals {
    /// Watches signals, which have to be blocked.
    pub(super) fn watch() -> io::Result<Self> {
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let mut signals = SigSet::from(Number::SIGCHLD);
        signals.add(Number::SIGTERM);
        Ok(Self(SignalFd::with_flags(&signals, flags)?))
    }

    /// Reads all pending signals. Returns true if SIGTERM is among them.
    pub(super) fn heard(&self) -> bool {
        let mut is_told_to_end = false;
        while let Ok(Some(signal)) = self.0.read_signal() {
            is_told_to_end |= i32::try_from(signal.ssi_signo) == Ok(Number::SIGTERM as i32);
        }
        is_told_to_end
    }
}

impl std::os::fd::AsFd for Signals {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}
