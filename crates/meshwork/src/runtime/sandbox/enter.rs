//! Last step before the interpreter: the launcher's child arranges to end with the launcher, and becomes the
//! interpreter.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sys::signal::SigSet;
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use super::argument;
use super::handoff::Entry;

/// Becomes the program that the arguments name after the launcher's pid and the descriptor for errors. Returns only on
/// failure.
pub(super) fn run(mut args: impl Iterator<Item = OsString>) -> io::Result<()> {
    let launcher = argument(&mut args)?;
    let entry = Entry::inherited(&argument(&mut args)?)?;
    become_program(&launcher, args).inspect_err(|error| entry.failed(error))
}

fn become_program(launcher: &OsStr, mut args: impl Iterator<Item = OsString>) -> io::Result<()> {
    let program = argument(&mut args)?;
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // If the launcher ended before that call, the signal never comes.
    let parent = getppid().map(Pid::as_raw_pid);
    if parent.is_none_or(|parent| launcher != parent.to_string().as_str()) {
        return Err(io::Error::other("the launcher is gone"));
    }
    // The launcher blocks all signals. Pending ones are delivered to the script now.
    SigSet::empty().thread_set_mask()?;
    Err(Command::new(&program).args(args).exec())
}
