//! The launcher: a small process between a worker and a script's interpreter, which outlives neither and
//! lets nothing of a run outlive them. It is this very program, started anew as `__sandbox` ([`init`]).
//!
//! A worker starts the launcher as the leader of a process group, with the script's output as its own. The
//! launcher adopts orphans (child subreaper) and starts the interpreter in its group; so it is the parent of
//! whatever the script leaves behind, also of what left the group or the session. It ends all of it when the
//! interpreter has ended, when the worker orders it, and when the worker is gone. The kernel kills the
//! interpreter when the launcher is killed (parent-death signal). Signals that can be blocked do not reach the
//! launcher: SIGTERM to the group is for the script.
//!
//! The worker and the launcher speak over [`control`]; the launcher's work is in [`mod@launcher`], the last step
//! before the interpreter in [`enter`].

mod control;
mod descriptors;
mod enter;
mod launcher;
mod tree;

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, exit};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub(super) use control::Control;
use rustix::event::{PollFd, Timespec, poll};
pub(super) use tree::kill_below;

/// The hidden command that [`init`] looks for.
const COMMAND: &str = "__sandbox";
/// Its stages, each followed by its arguments.
const LAUNCH: &str = "launch";
const ENTER: &str = "enter";
/// This program, also when its file was replaced or removed since it started.
const PROGRAM: &str = "/proc/self/exe";
/// The exit code of a launcher that could not do its work, as of other programs that start programs.
const CANNOT_LAUNCH: i32 = 125;

/// True if this program can be started as the launcher.
static IS_ON: AtomicBool = AtomicBool::new(false);

/// Lets the runners of scripts start this program anew as the launcher of their scripts. Call it first in
/// `main`, before threads are started and arguments are read; `#[tokio::main]` starts threads:
///
/// ```
/// fn main() -> std::io::Result<()> {
///     meshwork::runner::init();
///     let runtime = tokio::runtime::Runtime::new()?;
///     runtime.block_on(async { /* the program itself */ });
///     Ok(())
/// }
/// ```
///
/// In a process that was started as the launcher it does the launcher's work and does not return. Otherwise it
/// returns at once. With the launcher, every process of a Python script ends within milliseconds of its run,
/// its worker or its launcher, whatever the script does, unless a script kills its own launcher: then
/// processes that have left the script's group go on.
///
/// Without this call, or where there is no `/proc`, scripts run as children of the program itself, and less is
/// promised: processes that leave the process group outlive the run, and a killed program takes its scripts
/// along only if their interpreter still runs Python code (not in the midst of a long call of C code, and not
/// after `exec`).
pub fn init() {
    let mut args = env::args_os().skip(1);
    if args.next().is_some_and(|word| word == COMMAND) {
        exit(stage(args));
    }
    IS_ON.store(Path::new(PROGRAM).exists(), Ordering::Relaxed);
}

/// True if [`init`] was called, and the launcher works here.
pub(super) fn is_on() -> bool {
    IS_ON.load(Ordering::Relaxed)
}

/// The launcher of `program` for the run in `folder`, and the worker's way to it. Arguments, environment and
/// output are added to the command as if it were `program`. When the worker is gone the launcher removes the
/// folder, once nobody holds its lock.
pub(super) fn launcher(
    program: &Path,
    folder: &Path,
    input: &File,
) -> io::Result<(Command, Control)> {
    let (control, theirs) = Control::with(input)?;
    let mut command = again(LAUNCH);
    command.arg(folder).arg(program).stdin(theirs);
    Ok((command, control))
}

/// This program, as the launcher in one of its stages.
fn again(stage: &str) -> Command {
    use std::os::unix::process::CommandExt;

    let mut command = Command::new(PROGRAM);
    if let Some(name) = env::args_os().next() {
        command.arg0(name);
    }
    command.args([COMMAND, stage]);
    command
}

/// Does what the hidden command asks for and returns its exit code.
fn stage(mut args: impl Iterator<Item = OsString>) -> i32 {
    let done = match args.next() {
        Some(stage) if stage == LAUNCH => launcher::run(args),
        Some(stage) if stage == ENTER => enter::run(args),
        _ => Err(io::Error::other(
            "it is started by workers only, to run scripts",
        )),
    };
    done.map_or_else(
        |error| {
            // It goes to the script's stderr; if that is closed, the exit code is all that is left.
            let _ = writeln!(io::stderr(), "meshwork {COMMAND}: {error}");
            CANNOT_LAUNCH
        },
        |()| 0,
    )
}

/// The next argument of a stage.
fn argument(args: &mut impl Iterator<Item = OsString>) -> io::Result<OsString> {
    args.next()
        .ok_or_else(|| io::Error::other("an argument is missing"))
}

/// Waits until one of these is ready, or for at most so long.
fn wait_for(ready: &mut [PollFd<'_>], most: Option<Duration>) -> io::Result<()> {
    let most = most.and_then(|most| Timespec::try_from(most).ok());
    match poll(ready, most.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
