//! Folders of control groups: made for a run and locked, and removed with all processes in them.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::super::wait_for;
use super::write;

/// Start of the names of groups of runs.
pub(super) const RUN: &str = "meshwork-run-";
/// Longest wait until the processes of a group have ended. They end in milliseconds.
const ENDING: Duration = Duration::from_secs(2);
/// Pause before the next look at a group.
const AGAIN: Duration = Duration::from_millis(2);
/// Most groups of the same number.
const MAX_SAME: usize = 100;
/// Most tries to make a group: searches of other workers may remove it before it is locked.
const MAX_TRIES: usize = 100;
/// Most groups of a run that are looked at in a turn: a script may make some.
const MAX_BELOW: usize = 1_000;

/// Makes a folder for a run, and locks it. A sweep of another worker may remove it in between.
pub(super) fn locked_folder(base: &Path) -> io::Result<(PathBuf, File)> {
    let mut tries = 1;
    loop {
        let folder = new_folder(base)?;
        match lock(&folder) {
            Err(error) if tries < MAX_TRIES && is_swept(&error) => tries += 1,
            locked => return Ok((folder, locked?)),
        }
    }
}

/// Returns true if another process has locked or removed a group.
fn is_swept(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::WouldBlock
    )
}

/// Makes a folder for a run. One of its name may be left of a process that had the same number, or be that of a process
/// in another pid namespace.
fn new_folder(base: &Path) -> io::Result<PathBuf> {
    let number = std::process::id();
    let mut names = (0..MAX_SAME).map(|turn| base.join(format!("{RUN}{number}-{turn}")));
    let made = names.find_map(|folder| match fs::create_dir(&folder) {
        Ok(()) => Some(Ok(folder)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => None,
        Err(error) => Some(Err(error)),
    });
    made.unwrap_or_else(|| Err(io::ErrorKind::AlreadyExists.into()))
}

/// Locks a group, if it is still there and nobody else has locked it.
pub(super) fn lock(folder: &Path) -> io::Result<File> {
    let locked = File::open(folder)?;
    flock(&locked, FlockOperation::NonBlockingLockExclusive)?;
    match fs::metadata(folder)?.ino() == locked.metadata()?.ino() {
        true => Ok(locked),
        false => Err(io::ErrorKind::NotFound.into()),
    }
}

/// Ends all processes of a locked group and of those below it, and removes them.
pub(super) fn remove(folder: &Path) {
    let until = Instant::now() + ENDING;
    while let Err(error) = fs::remove_dir(folder) {
        let is_busy = error.raw_os_error() == Some(Errno::BUSY.raw_os_error());
        if !is_busy || Instant::now() > until {
            return;
        }
        let groups = with_those_below(folder);
        // Of version 2, from Linux 5.14 on. It ends those below, too.
        if write(&folder.join("cgroup.kill"), "1").is_err() {
            let kill_all = |group: &PathBuf| pids(group).into_iter().for_each(|it| kill(group, it));
            groups.iter().for_each(kill_all);
        }
        for group in groups.iter().rev() {
            // Fails while it has processes or groups.
            let _ = fs::remove_dir(group);
        }
        if wait_for(&mut [], Some(AGAIN)).is_err() {
            return;
        }
    }
}

/// Returns a group and those below it, each before those below it.
fn with_those_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![folder.to_owned()];
    let mut at = 0;
    while let Some(group) = found.get(at) {
        let entries = fs::read_dir(group).into_iter().flatten().flatten();
        let groups = entries.filter(|entry| entry.file_type().is_ok_and(|it| it.is_dir()));
        let room = MAX_BELOW.saturating_sub(found.len());
        let groups: Vec<_> = groups.take(room).map(|entry| entry.path()).collect();
        found.extend(groups);
        at += 1;
    }
    found
}

pub(super) fn pids(folder: &Path) -> Vec<Pid> {
    let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    let pids = text.lines().filter_map(|line| line.parse().ok());
    pids.filter_map(Pid::from_raw).collect()
}

/// Kills a process while it is in the group: its number may be that of another one by now.
fn kill(folder: &Path, pid: Pid) {
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else {
        return;
    };
    if pids(folder).contains(&pid) {
        // Fails if it has ended.
        let _ = pidfd_send_signal(process, Signal::KILL);
    }
}
