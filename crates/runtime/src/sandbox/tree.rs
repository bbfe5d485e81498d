//! Finds the processes below a process in `/proc`, and kills them.

use std::collections::{HashMap, HashSet};
use std::fs;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

/// A running process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    pid: i32,
    parent: i32,
    /// Start time. Pids are reused, but not with the same start time.
    started: u64,
}

/// Kills a process and all processes below it.
pub(super) fn kill_with_descendants(pid: i32) {
    let all = all();
    all.iter().filter(|one| one.pid == pid).for_each(kill);
    below(pid, &all).iter().for_each(kill);
}

/// Returns the pids of the children of a process, also of those that have ended and are not reaped.
pub(super) fn children(parent: i32) -> Vec<i32> {
    let children = pids().filter(|pid| {
        let (process, _) = read(*pid).unzip();
        process.is_some_and(|process| process.parent == parent)
    });
    children.collect()
}

/// Kills all processes below `root`, and returns their number. The next call kills processes that start meanwhile.
pub(in super::super) fn kill_below(root: Pid) -> usize {
    let below = below(root.as_raw_pid(), &all());
    below.iter().for_each(kill);
    below.len()
}

fn kill(process: &Process) {
    let Some(pid) = Pid::from_raw(process.pid) else {
        return;
    };
    let is_it = || look_at(process.pid).is_some_and(|now| now.started == process.started);
    // The pid cannot be reused between the check and the signal. Errors are ignored: the process may belong to another
    // user, or have ended.
    let _ = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(handle) if is_it() => pidfd_send_signal(handle, Signal::KILL),
        // Kernels before 5.3 and some containers: almost as safe.
        Err(Errno::NOSYS | Errno::PERM) if is_it() => kill_process(pid, Signal::KILL),
        _ => Ok(()),
    };
}

/// Returns all running processes.
fn all() -> Vec<Process> {
    pids().filter_map(look_at).collect()
}

fn pids() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Returns a process that runs.
fn look_at(pid: i32) -> Option<Process> {
    let (process, runs) = read(pid)?;
    runs.then_some(process)
}

fn read(pid: i32) -> Option<(Process, bool)> {
    parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Parses the line of a process. Returns it, and whether it runs.
fn parse(pid: i32, stat: &str) -> Option<(Process, bool)> {
    // The name in parentheses may contain anything. The state and numbers follow.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut words = rest.split_ascii_whitespace();
    let state = words.next()?;
    let parent = words.next()?.parse().ok()?;
    let started = words.nth(17)?.parse().ok()?;
    let process = Process {
        pid,
        parent,
        started,
    };
    Some((process, !matches!(state, "Z" | "X")))
}

/// Returns the processes of `all` that are below `root`. Ended processes hide none, since their children have another
/// parent.
fn below(root: i32, all: &[Process]) -> Vec<Process> {
    let mut children: HashMap<i32, Vec<Process>> = HashMap::new();
    for process in all {
        children.entry(process.parent).or_default().push(*process);
    }
    let (mut found, mut seen) = (Vec::new(), HashSet::from([root]));
    let mut parents = vec![root];
    // Data that changes while it is read may contain a cycle.
    while let Some(parent) = parents.pop() {
        for child in children.remove(&parent).unwrap_or_default() {
            if seen.insert(child.pid) {
                parents.push(child.pid);
                found.push(child);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, parent: i32) -> Process {
        Process {
            pid,
            parent,
            started: 7,
        }
    }

    #[test]
    fn the_line_of_a_process_is_read_whatever_its_name() {
        let line = |state| {
            format!("9 (a) (Z 1 b) {state} 4 9 9 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 77 1 2 3\n")
        };
        let expected = Process {
            pid: 9,
            parent: 4,
            started: 77,
        };
        assert_eq!(parse(9, &line('S')), Some((expected, true)));
        assert_eq!(parse(9, &line('Z')), Some((expected, false)));
        assert_eq!(parse(9, "9 (a"), None);
        let own = look_at(std::process::id().cast_signed()).unwrap();
        let parent = rustix::process::getppid().map(Pid::as_raw_pid);
        assert_eq!(Some(own.parent), parent);
    }

    #[test]
    fn all_that_is_below_is_found_and_nothing_else() {
        let all = [(2, 1), (3, 2), (4, 3), (5, 1), (6, 5), (8, 9), (9, 8)];
        let all = all.map(|(pid, parent)| process(pid, parent));
        let mut found: Vec<_> = below(2, &all).into_iter().map(|p| p.pid).collect();
        found.sort_unstable();
        assert_eq!(found, [3, 4]);
        assert_eq!(below(8, &all), [process(9, 8)]);
        assert_eq!(below(4, &all), []);
    }
}
