//! Last step before the interpreter: the launcher's child arranges to end with the launcher, and becomes the
//! interpreter.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use nix::sys::signal::SigSet;
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use super::argument;

/// Becomes the program that the arguments name after the launcher's pid. Returns only on failure.
pub(super) fn run(mut args: impl Iterator<Item = OsString>) -> io::Result<()> {
    let launcher = argument(&mut args)?;
    let program = argument(&mut args)?;
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // If the launcher ended before that call, the signal never comes.
    let parent = getppid().map(Pid::as_raw_pid);
    if parent.is_none_or(|parent| launcher != *parent.to_string()) {
        return Err(io::Error::other("the launcher is gone"));
    }
    // The launcher blocks all signals. Pending ones are delivered to the script now.
    SigSet::empty().thread_set_mask()?;
    let error = Command::new(&program).args(args).exec();
    let program = Path::new(&program).display();
    Err(io::Error::new(
        error.kind(),
        format!("cannot start `{program}`: {error}"),
    ))
}
