//! The launcher: a small process between a worker and a script's interpreter. It ends all processes of a run, and ends
//! with the worker. It is this program, started again as `__sandbox` ([`init`](super::init)).
//!
//! A worker starts the launcher as the leader of a process group, with the script's output as its own. The launcher
//! adopts orphaned processes (child subreaper), and starts the interpreter in its group. So it becomes the parent of
//! all processes that the script leaves behind, also of those that left the group or the session. It ends all of them
//! when the interpreter has ended, when the worker orders it, and when the worker has ended. The kernel kills the
//! interpreter when the launcher is killed (parent-death signal), and the worker ends the rest ([`adopted`]). The
//! launcher blocks all signals, from its start on ([`shielded`]): SIGTERM to the group is for the script.
//!
//! The worker and the launcher communicate over [`control`]. The launcher is in [`mod@launcher`], the last step before
//! the interpreter in [`confine`]. Both have an empty environment: the variables of a job act only in the interpreter
//! ([`mod@environment`]). [`host`] finds out which isolation works here. Where it can, the launcher starts the script in control
//! groups of its own ([`groups`]).

mod adopted;
mod confine;
mod control;
mod descriptors;
mod disk;
mod environment;
mod groups;
mod handoff;
mod hint;
mod host;
mod launcher;
mod mountinfo;
mod namespaces;
mod orders;
mod script;
mod ticks;
mod tree;
mod usage;
mod watch;

use std::env;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, exit};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub use adopted::adopt_orphans;
pub(super) use adopted::{Own, end_adopted};
pub(super) use control::{Control, Inherited, Launched};
pub(super) use environment::Environment;
pub use host::{SandboxHost, sandbox_host};
pub(super) use host::{Unconfined, orders, sweep};
use nix::sys::signal::{SigSet, SigmaskHow};
pub(super) use orders::Orders;
use rustix::event::{PollFd, Timespec, poll};
pub(super) use tree::kill_below;
pub(super) use usage::LimitExceeded;

/// Variable with the descriptor of the inherited socket for requests, a colon, and its inode. Set where processes cannot
/// connect to a path. Also used in `bootstrap.py`.
pub(super) const CALLS_SOCKET_VARIABLE: &str = "MESHWORK_CALLS_SOCKET";
/// Hidden command that [`init()`] handles.
pub(super) const COMMAND: &str = "__sandbox";
/// Names of its stages, which take arguments.
const LAUNCH: &str = "launch";
const CONFINE: &str = "confine";
const PROBE: &str = "probe";
/// Path of this program, also after its file was replaced or removed.
const PROGRAM: &str = "/proc/self/exe";
/// Exit code of a launcher that could not run its program, as of similar programs.
pub(super) const CANNOT_LAUNCH: i32 = 125;

/// True if this program can be started as the launcher.
static IS_ON: AtomicBool = AtomicBool::new(false);

/// Process of a script that is this program: the name of its stage, and the function that returns its exit code.
pub(super) type ScriptStage = (&'static str, fn(&mut dyn Iterator<Item = OsString>) -> i32);

/// Enables the launcher, or does the work of a stage. `scripts` are the stages that run scripts.
pub(super) fn init(scripts: &[ScriptStage]) {
    let mut args = env::args_os().skip(1);
    if args.next().is_some_and(|word| word == COMMAND) {
        exit(stage(args, scripts));
    }
    IS_ON.store(Path::new(PROGRAM).exists(), Ordering::Relaxed);
}

/// Returns true if [`init()`] was called and the launcher works here.
pub(super) fn is_on() -> bool {
    IS_ON.load(Ordering::Relaxed)
}

/// Returns the command of a launcher of `program` for the run in `folder`, and its control socket. An empty `program`
/// only tries the confinement. Arguments and output are added to the command as for `program`. After the worker's end, the
/// launcher removes the folder when its lock is free.
pub(super) fn launcher(
    program: &Path,
    folder: &Path,
    inherited: &Inherited,
    orders: &Orders,
) -> io::Result<(Command, Control)> {
    let (control, theirs) = Control::with(inherited, orders)?;
    let mut command = again(LAUNCH);
    command.arg(folder).arg(program).stdin(theirs);
    Ok((command, control))
}

/// Returns the command of a launcher that ends at once, to check that processes can be started.
pub(super) fn probe() -> Command {
    again(PROBE)
}

/// Starts a stage with all signals blocked, as it inherits the mask. Ctrl-C in a terminal would otherwise kill a stage
/// that is not yet in a group of its own.
pub(super) fn shielded<T>(start: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK)?;
    let started = start();
    before.thread_set_mask()?;
    started
}

/// Returns the command of this program as one stage of the launcher, without variables.
fn again(stage: &str) -> Command {
    use std::os::unix::process::CommandExt;

    let mut command = Command::new(PROGRAM);
    if let Some(name) = env::args_os().next() {
        command.arg0(name);
    }
    command.args([COMMAND, stage]).env_clear();
    command
}

/// Runs a stage, and returns its exit code.
fn stage(mut args: impl Iterator<Item = OsString>, scripts: &[ScriptStage]) -> i32 {
    let name = args.next();
    let script = scripts
        .iter()
        .find(|(stage, _)| name.as_ref().is_some_and(|name| name == stage));
    if let Some((_, run)) = script {
        return run(&mut args);
    }
    let done = match name {
        Some(stage) if stage == LAUNCH => launcher::run(args),
        Some(stage) if stage == CONFINE => confine::run(args),
        Some(stage) if stage == PROBE => Ok(()),
        _ => Err(io::Error::other(
            "it is started by workers only, to run scripts",
        )),
    };
    done.map_or_else(
        |error| {
            // Written to the script's stderr. If that is closed, only the exit code remains.
            let _ = writeln!(io::stderr(), "meshwork {COMMAND}: {error}");
            CANNOT_LAUNCH
        },
        |()| 0,
    )
}

/// Returns the next argument of a stage.
fn argument(args: &mut impl Iterator<Item = OsString>) -> io::Result<OsString> {
    args.next()
        .ok_or_else(|| io::Error::other("an argument is missing"))
}

/// Waits until one of these is ready, at most for `most`.
fn wait_for(ready: &mut [PollFd<'_>], most: Option<Duration>) -> io::Result<()> {
    let most = most.and_then(|most| Timespec::try_from(most).ok());
    match poll(ready, most.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
