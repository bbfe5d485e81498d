//! Last step before the program of a run, and its confinement. With namespaces this is the first process of a pid namespace:
//! it builds a root folder of its own, confines itself, and starts the program as its child. Without, it confines itself and
//! becomes the program. In `open` it becomes the program at once. The program alone has the variables of the job.
//!
//! It communicates with the launcher as the launcher does with the worker: over [`control`](super::control).

mod filter;
mod privileges;
mod processes;
mod root;
mod rules;
mod view;

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use meshwork_model::sandbox::{Limit, Profile};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::SigSet;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{FileType, fstat};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{
    DumpableBehavior, Signal, set_dumpable_behavior, set_parent_process_death_signal, setsid,
};

use filter::{Surroundings, UnixSockets};
use privileges::limit;
pub(super) use privileges::{can_mount, keep_needed};
pub(super) use processes::{bound_user, is_bounded};
use root::Run;
use rules::Enforced;
pub(super) use view::SYSTEM;
use view::View;

use super::control::Worker;
use super::orders::{Isolation, Orders};
use super::script::{Script, Signals};
use super::usage::LimitExceeded;
use super::{CALLS_SOCKET_VARIABLE, argument, wait_for};

/// Pause between two measurements of a file system of limited size.
const FULL: Duration = Duration::from_millis(50);

/// Confines this process as the launcher orders, and runs the program that the arguments name after the folder of the run.
pub(super) fn run(args: impl Iterator<Item = OsString>) -> io::Result<()> {
    let launcher = Worker::on_stdin()?;
    let started = start(&launcher, args);
    // The launcher reports it to the worker.
    if let Err(error) = started {
        launcher.cannot_confine(&error);
    }
    Ok(())
}

/// Files of a run.
struct Place {
    folder: PathBuf,
    work: PathBuf,
}

fn start(launcher: &Worker, mut args: impl Iterator<Item = OsString>) -> io::Result<()> {
    // Its descriptors and its memory contain the variables of the script.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // If the launcher ended before that call, the signal never comes. Its pid cannot tell: it is in another namespace.
    if launcher.is_gone() {
        return Err(io::Error::other("the launcher is gone"));
    }
    let (inherited, orders) = launcher.orders()?;
    let place = Place {
        folder: argument(&mut args)?.into(),
        work: std::env::current_dir()?,
    };
    let (limited, enforced) = confine(&orders, &place)?;
    let program = argument(&mut args)?;
    if program.is_empty() {
        // A trial of the confinement itself.
        launcher.report(trial(enforced));
        return Ok(());
    }
    let mut command = Command::new(&program);
    command.args(args).stdin(own_input(inherited.input)?);
    command.envs(inherited.environment.read()?);
    if let Some(calls) = &inherited.calls {
        pass_on(calls, &mut command)?;
    }
    if orders.isolation == Isolation::Namespaces {
        return attend(command, launcher, limited.as_ref(), &orders);
    }
    let error = become_it(command);
    launcher.refuse(&error);
    Ok(())
}

/// Confines this process. Returns its file system of limited size, if it has one.
fn confine(orders: &Orders, place: &Place) -> io::Result<(Option<File>, Enforced)> {
    if orders.isolation == Isolation::None {
        limit(&orders.confinement.limits)?;
        return Ok((None, Enforced::default()));
    }
    let view = View::of(orders)?;
    let is_first = orders.isolation == Isolation::Namespaces;
    let limited = match is_first {
        true => separate(&view, orders, place)?,
        false => None,
    };
    limit(&orders.confinement.limits)?;
    privileges::leave_no_dump()?;
    privileges::drop_all()?;
    Ok((limited, restrict(&view, orders, place, is_first)?))
}

/// Returns the input of the program. `/dev/null` is opened anew: by the descriptor of the worker, a run of root could change
/// the mode of the host's device.
fn own_input(input: OwnedFd) -> io::Result<OwnedFd> {
    match FileType::from_raw_mode(fstat(&input)?.st_mode) {
        FileType::CharacterDevice => Ok(File::open("/dev/null")?.into()),
        _ => Ok(input),
    }
}

/// Lets the program inherit the socket for its requests, and names it.
fn pass_on(calls: &OwnedFd, command: &mut Command) -> io::Result<()> {
    fcntl_setfd(calls, FdFlags::empty())?;
    let (number, inode) = (calls.as_raw_fd(), fstat(calls)?.st_ino);
    command.env(CALLS_SOCKET_VARIABLE, format!("{number}:{inode}"));
    Ok(())
}

/// Returns the wait status of a trial, whose exit code is the version of Landlock.
fn trial(enforced: Enforced) -> i32 {
    enforced.0.cast_signed() << 8
}

/// Enters namespaces and builds the root folder.
fn separate(view: &View, orders: &Orders, place: &Place) -> io::Result<Option<File>> {
    // A session of its own has no terminal, and its group does not contain the launcher.
    setsid()?;
    let mut namespaces =
        CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWIPC | CloneFlags::CLONE_NEWUTS;
    if orders.confinement.profile == Profile::Strict {
        namespaces |= CloneFlags::CLONE_NEWNET;
    }
    unshare(namespaces)
        .map_err(|error| io::Error::other(format!("cannot make namespaces: {error}")))?;
    let run = Run {
        folder: &place.folder,
        work: &place.work,
        limits: &orders.confinement.limits,
    };
    root::build(view, &run)
}

/// Applies Landlock and the filters.
fn restrict(view: &View, orders: &Orders, place: &Place, has_root: bool) -> io::Result<Enforced> {
    let profile = orders.confinement.profile;
    let enforced = rules::restrict(view, profile, &place.folder, has_root);
    let enforced = enforced.map_err(io::Error::other)?;
    let hides_sockets =
        has_root && (profile == Profile::Strict || enforced.hides_abstract_sockets());
    let unix = match hides_sockets {
        true => UnixSockets::All,
        false => UnixSockets::Pairs,
    };
    let surroundings = Surroundings {
        unix,
        shares_host: !has_root,
        counts_memory: orders.groups.count_memory(),
    };
    filter::install(surroundings).map_err(io::Error::other)?;
    Ok(enforced)
}

/// Becomes the program. Returns only on failure.
fn become_it(mut command: Command) -> io::Error {
    if let Err(error) = SigSet::empty().thread_set_mask() {
        return error.into();
    }
    command.exec()
}

/// Starts the program as a child, and waits for it. As the first process of its namespace, this one adopts all orphans,
/// and the kernel ends all others with it.
fn attend(
    mut command: Command,
    launcher: &Worker,
    limited: Option<&File>,
    orders: &Orders,
) -> io::Result<()> {
    let signals = Signals::watch()?;
    // The child inherits the mask. Signals do not reach this process without a handler.
    SigSet::empty().thread_set_mask()?;
    let started = command.spawn();
    drop(command);
    SigSet::all().thread_set_mask()?;
    let started = match started {
        Ok(started) => started,
        Err(error) => {
            launcher.refuse(&error);
            return Ok(());
        }
    };
    launcher.begin(limited.map(AsFd::as_fd));
    let mut script = Script::of(&started)?;
    let pause = limited.map(|_| FULL);
    loop {
        // Signals that came while none was blocked are lost.
        script.reap()?;
        let is_full = limited.is_some_and(root::is_full);
        let has_failed = script.status.is_some_and(|status| status != 0);
        if is_full
            && (script.status.is_none() || has_failed)
            && let Some(value) = orders.confinement.limits.get(Limit::Disk)
        {
            let limit = Limit::Disk;
            launcher.exceed(&LimitExceeded { limit, value });
            return Ok(());
        }
        if let Some(status) = script.status {
            launcher.report(status);
            return Ok(());
        }
        let mut ready = [PollFd::new(&signals, PollFlags::IN)];
        wait_for(&mut ready, pause)?;
        signals.heard();
    }
}
