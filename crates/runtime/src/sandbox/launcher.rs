//! The launcher, in a process with a single thread.

use std::ffi::{CStr, OsString};
use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::signal::SigSet;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Signal, getpid, kill_process, kill_process_group, set_child_subreaper,
    set_dumpable_behavior,
};

use super::control::{Control, Launched, Order, Worker};
use super::disk::Disk;
use super::groups::Group;
use super::orders::Isolation;
use super::script::{Script, Signals};
use super::usage::LimitExceeded;
use super::watch::Watch;
use super::{CONFINE, again, argument, descriptors, namespaces, tree, wait_for};
use crate::workdir::Root;

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
    match start(args) {
        Ok(run) => run.attend(),
        Err(fault) => {
            // The caller prints the error if there is no socket.
            let _ = Worker::on_stdin().map(|worker| match &fault {
                Fault::System(error) => worker.refuse(error),
                Fault::Confinement(error) => worker.cannot_confine(error),
            });
            let (Fault::System(error) | Fault::Confinement(error)) = fault;
            Err(error)
        }
    }
}

/// Reason why a run has not started.
enum Fault {
    System(io::Error),
    Confinement(io::Error),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl From<Errno> for Fault {
    fn from(error: Errno) -> Self {
        Self::System(error.into())
    }
}

impl From<nix::errno::Errno> for Fault {
    fn from(error: nix::errno::Errno) -> Self {
        Self::System(error.into())
    }
}

/// A started run.
struct Launch {
    folder: Root,
    worker: Worker,
    signals: Signals,
    script: Script,
    /// Connection to the process that becomes or starts the program.
    control: Control,
    /// True if the program is a child of the first process of its namespace.
    has_namespace: bool,
    /// True if that process may have started it.
    has_begun: bool,
    watch: Watch,
}

/// Reason why the wait for a script has ended.
enum Followed {
    Ended,
    Ordered(Order),
    Exceeded(LimitExceeded),
}

fn start(mut args: impl Iterator<Item = OsString>) -> Result<Launch, Fault> {
    has_one_thread()?;
    descriptors::close_all_but_standard()?;
    let worker = Worker::on_stdin()?;
    let (inherited, orders) = worker.orders()?;
    let group = Group::create(&orders.groups, &orders.confinement.limits);
    let group = group.map_err(Fault::Confinement)?;
    if orders.isolation == Isolation::Namespaces {
        namespaces::enter(&orders.confinement.limits).map_err(Fault::Confinement)?;
    }
    let folder = argument(&mut args)?;
    let disk = Disk::of(Path::new(&folder), &orders);
    let watch = Watch::new(orders.confinement.limits, disk, group);
    // Its descriptors contain the script's variables, so no other process may open them.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    rustix::thread::set_name(NAME)?;
    set_child_subreaper(Some(getpid()))?;
    // Also signals that would stop this process, and those that a script sends to its group.
    SigSet::all().thread_block()?;
    let signals = Signals::watch()?;
    // Opened before the script can replace it.
    let root = Root::open(Path::new(&folder))?;
    let (control, theirs) = Control::with(&inherited, &orders)?;
    let mut command = again(CONFINE);
    command.arg(&folder).args(args).stdin(theirs);
    worker.begin(None);
    let script = watch.group().start(|| command.spawn());
    let script = script.map_err(Fault::Confinement)??;
    let script = Script::of(&script)?;
    Ok(Launch {
        folder: root,
        worker,
        signals,
        script,
        control,
        has_namespace: orders.isolation == Isolation::Namespaces,
        has_begun: false,
        watch,
    })
}

impl Launch {
    /// Notes that the script may have started, if the first process of its namespace says so.
    fn hear(&mut self) {
        let begun = (!self.has_begun).then(|| self.control.begun()).flatten();
        if let Some(in_memory) = begun {
            self.has_begun = true;
            self.watch.add(in_memory);
        }
    }

    /// Waits for the end of the script or the worker, ends all processes, and reports.
    fn attend(mut self) -> io::Result<()> {
        let followed = follow(&mut self)?;
        end(&mut self.script, &self.signals)?;
        let report = self.control.report();
        if let Some(exceeded) = &report.exceeded {
            self.worker.exceed(exceeded);
        }
        let exceeded = match &followed {
            Followed::Exceeded(exceeded) => Some(*exceeded),
            Followed::Ended | Followed::Ordered(_) => self.watch.ran_out(),
        };
        if let Some(exceeded) = &exceeded {
            self.worker.exceed(exceeded);
        }
        self.worker.used(&self.watch.usage());
        match (report.end, self.script.status) {
            (Some(Launched::NotStarted(error)), _) => self.worker.refuse(&error),
            (Some(Launched::NotConfined(error)), _) => self.worker.cannot_confine(&error),
            (Some(Launched::Ended(status)), _) => self.worker.report(status.into_raw()),
            (Some(Launched::Killed(_)) | None, Some(status)) => self.worker.report(status),
            (Some(Launched::Killed(_)) | None, None) => {}
        }
        if matches!(followed, Followed::Ordered(Order::Gone)) {
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

/// Waits until the script has ended or exceeded a limit, or the worker has sent an order.
fn follow(launch: &mut Launch) -> io::Result<Followed> {
    let mut is_to_end = false;
    let mut next = Instant::now() + launch.watch.pause();
    loop {
        let now = Instant::now();
        launch.hear();
        if now >= next {
            // Without namespaces it has not begun: the process is the script itself.
            let helpers = u64::from(launch.has_begun);
            if let Some(exceeded) = launch.watch.measure(helpers) {
                return Ok(Followed::Exceeded(exceeded));
            }
            next = Instant::now() + launch.watch.pause();
        }

        let is_awaited = is_to_end && launch.has_namespace && !launch.has_begun;
        let starts = is_awaited.then_some(&launch.control);
        let mut ready = vec![
            PollFd::new(&launch.signals, PollFlags::IN),
            PollFd::new(&launch.worker, PollFlags::IN),
        ];
        ready.extend(starts.map(|control| PollFd::new(control, PollFlags::IN)));
        wait_for(&mut ready, Some(next.saturating_duration_since(now)))?;
        let [signal, order] = [0, 1].map(|at: usize| !ready[at].revents().is_empty());
        if signal {
            is_to_end |= launch.signals.heard();
            launch.script.reap()?;
            if launch.script.status.is_some() {
                return Ok(Followed::Ended);
            }
        }
        if order {
            return Ok(Followed::Ordered(launch.worker.order()));
        }
        launch.hear();
        if is_to_end && launch.has_begun {
            // The script is in a session of its own, so the signal to the launcher's group has not reached it. Fails if
            // the script has ended.
            let _ = kill_process_group(launch.script.pid, Signal::TERM);
            is_to_end = false;
        }
    }
}

/// Kills the script and all processes that it started. As a subreaper this process adopts orphaned ones, so none remain
/// when it has no children.
fn end(script: &mut Script, signals: &Signals) -> io::Result<()> {
    if script.status.is_none() {
        // Its pid is not reused before it is reaped. Fails if it has just ended.
        let _ = kill_process(script.pid, Signal::KILL);
    }
    let until = Instant::now() + ENDING;
    while script.reap()? && Instant::now() < until {
        tree::kill_below(getpid());
        wait_for(&mut [PollFd::new(signals, PollFlags::IN)], Some(AGAIN))?;
        signals.heard();
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
