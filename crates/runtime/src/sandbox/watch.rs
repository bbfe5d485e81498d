//! Measures the processes of a run several times a second, and compares them with its limits.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use meshwork_model::sandbox::{Limit, Limits, Usage};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use rustix::fs::fstatvfs;
use rustix::param::{clock_ticks_per_second, page_size};

use super::disk::Disk;
use super::groups::Group;
use super::ticks::{Sample, Samples};
use super::usage::LimitExceeded;

/// Pause between two measurements of a run with limits. A process takes a few hundred MiB in this time.
const OFTEN: Duration = Duration::from_millis(50);
/// Pause between two measurements of a run without limits, only for its greatest memory.
const SELDOM: Duration = Duration::from_millis(500);
/// Pause between two measurements of a folder.
const FOLDER: Duration = Duration::from_millis(250);
/// Most processes of one measurement: a tenth of a second.
const MAX_LISTED: u64 = 10_000;

/// The measurements of one run.
#[derive(Debug)]
pub(super) struct Watch {
    limits: Limits,
    disk: Disk,
    disk_measured: Option<Instant>,
    group: Group,
    samples: Samples,
    /// File system in memory of the run.
    in_memory: Option<OwnedFd>,
    peak: u64,
    /// Numbers of this process about bytes. Opened while it is dumpable: others cannot read it afterwards.
    bytes: Option<File>,
    written_before: u64,
}

/// Sum of all processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sum {
    memory: u64,
    cpu_ms: u64,
    threads: u64,
}

/// One process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    parent: i32,
    sample: Sample,
    threads: u64,
    pages: u64,
}

impl Watch {
    /// Starts the measurements of a run in a control group, before its first process.
    pub(super) fn new(limits: Limits, disk: Disk, group: Group) -> Self {
        let bytes = File::open("/proc/self/io").ok();
        // Read once per process, from a file that an ordinary user cannot open afterwards with Linux before 6.4.
        let _ = (page_size(), clock_ticks_per_second());
        let mut watch = Self {
            limits,
            disk,
            disk_measured: None,
            group,
            samples: Samples::default(),
            in_memory: None,
            peak: 0,
            bytes,
            written_before: 0,
        };
        watch.written_before = watch.written();
        watch
    }

    /// Adds the file system in memory of the run.
    pub(super) fn add(&mut self, in_memory: Option<OwnedFd>) {
        self.in_memory = in_memory;
    }

    /// Returns the control group of the run.
    pub(super) fn group(&self) -> &Group {
        &self.group
    }

    /// Returns the limit for which the kernel has ended a process of the run.
    pub(super) fn ran_out(&self) -> Option<LimitExceeded> {
        let limit = Limit::Memory;
        let value = self.limits.get(limit)?;
        let ran_out = self.group.ran_out_of_memory();
        ran_out.then_some(LimitExceeded { limit, value })
    }

    /// Returns the pause before the next measurement.
    pub(super) fn pause(&self) -> Duration {
        match self.limits.is_empty() {
            true => SELDOM,
            false => OFTEN,
        }
    }

    /// Measures all processes below this one, and returns the first limit that they exceed. `helpers` of them are not
    /// the run's.
    pub(super) fn measure(&mut self, helpers: u64) -> Option<LimitExceeded> {
        // A fork bomb starts processes faster than they can be listed.
        let most = self.limits.get(Limit::Processes).unwrap_or(u64::MAX);
        let most = most.saturating_add(helpers + 1).min(MAX_LISTED);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let pids = below_this(most);
        let mut sum = self.sum(&pids, pids.len() < most);
        let counted = self.group.memory();
        let files = match counted {
            Some(_) => 0,
            None => self.in_memory.as_ref().map_or(0, used),
        };
        sum.memory = self.whole(sum.memory, files, &pids);
        self.peak = self.peak.max(sum.memory).max(counted.unwrap_or(0));
        let threads = sum.threads.saturating_sub(helpers);
        let exceeds = |limit: Limit, used: u64| {
            let value = self.limits.get(limit).filter(|value| used > *value)?;
            Some(LimitExceeded { limit, value })
        };
        self.ran_out()
            .or_else(|| exceeds(Limit::Memory, sum.memory))
            .or_else(|| exceeds(Limit::Processes, threads))
            .or_else(|| exceeds(Limit::Cpu, sum.cpu_ms))
            .or_else(|| self.measure_disk(&pids))
    }

    /// Adds up processes, which are all of the run if they are complete.
    fn sum(&mut self, pids: &[i32], are_complete: bool) -> Sum {
        let mut sum = Sum::default();
        let mut samples = Vec::new();
        for process in pids.iter().filter_map(|pid| read(&pid.to_string())) {
            samples.push(process.sample);
            sum.threads += process.threads;
            sum.memory += process.pages * page_size() as u64;
        }
        sum.cpu_ms = match self.group.cpu() {
            Some(cpu) => cpu
                .map(milliseconds)
                .into_iter()
                .fold(0, u64::saturating_add),
            None if are_complete => {
                // This process last: it has by then what those have used that end meanwhile.
                samples.extend(reaped_by_this());
                let all = self.samples.add(&samples).map(in_ms);
                all.into_iter().fold(0, u64::saturating_add)
            }
            // The run has too many processes.
            None => 0,
        };
        sum
    }

    /// Returns the memory of processes and files. `mapped` is the sum of all pages of the processes.
    fn whole(&self, mapped: u64, files: u64, pids: &[i32]) -> u64 {
        let most = self.limits.get(Limit::Memory);
        if most.is_none_or(|most| mapped + files <= most) {
            return mapped + files;
        }
        // Pages that processes share were counted several times, and mapped files twice.
        let all = pids.iter().map(|pid| proportional(*pid));
        let [own, shared] = all.fold([0, 0], |[own, shared], share| {
            [own + share.own, shared + share.shared]
        });
        (mapped + files).min(own + shared.max(files))
    }

    fn measure_disk(&mut self, pids: &[i32]) -> Option<LimitExceeded> {
        let value = self.limits.get(Limit::Disk)?;
        let now = Instant::now();
        if self
            .disk_measured
            .is_some_and(|last| now.duration_since(last) < FOLDER)
        {
            return None;
        }
        self.disk_measured = Some(now);
        let limit = Limit::Disk;
        (self.disk.used(pids) > value).then_some(LimitExceeded { limit, value })
    }

    /// Returns the usage after the last process has ended and was reaped.
    pub(super) fn usage(&mut self) -> Usage {
        let mut usage = Usage {
            peak_memory: self.peak,
            written: self.written().saturating_sub(self.written_before),
            ..Usage::default()
        };
        if let Ok(used) = getrusage(UsageWho::RUSAGE_CHILDREN) {
            let time = |time: i64| time.max(0).unsigned_abs();
            usage.user_ms = time(used.user_time().num_milliseconds());
            usage.system_ms = time(used.system_time().num_milliseconds());
            let [user, system] = match self.group.cpu() {
                Some(cpu) => cpu.map(milliseconds),
                None => {
                    // Those of the last sample have ended since.
                    self.samples.add(reaped_by_this().as_slice());
                    let [user, system] = self.samples.lost().map(in_ms);
                    [
                        usage.user_ms.saturating_add(user),
                        usage.system_ms.saturating_add(system),
                    ]
                }
            };
            usage.user_ms = usage.user_ms.max(user);
            usage.system_ms = usage.system_ms.max(system);
            // In KiB.
            let largest = used.max_rss().max(0).unsigned_abs() * 1024;
            // Between two measurements the kernel may have seen more.
            let reached = self.ran_out().map_or(0, |exceeded| exceeded.value);
            usage.peak_memory = usage.peak_memory.max(largest).max(reached);
        }
        usage
    }

    /// Returns the bytes that this process and its reaped children have written.
    fn written(&self) -> u64 {
        let mut text = [0; 1024];
        let read = self.bytes.as_ref().map(|file| file.read_at(&mut text, 0));
        let Some(Ok(length)) = read else {
            return 0;
        };
        let text = String::from_utf8_lossy(&text[..length]);
        let line = text.lines().find_map(|line| line.strip_prefix("wchar: "));
        line.and_then(|number| number.parse().ok()).unwrap_or(0)
    }
}

/// Returns the sample of this process, without its own time.
fn reaped_by_this() -> Option<Sample> {
    let this = read("self")?.sample;
    Some(Sample {
        own: [0; 2],
        ..this
    })
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn in_ms(ticks: u64) -> u64 {
    ticks.saturating_mul(1000) / clock_ticks_per_second().max(1)
}

/// Returns the pids of the processes below this one, at most `most`.
fn below_this(most: usize) -> Vec<i32> {
    let mut found = Vec::new();
    let Ok(mut pending) = children("self") else {
        return below_by_parents();
    };
    let mut seen = HashSet::new();
    // Processes move while they are listed.
    while let Some(pid) = pending.pop().filter(|_| found.len() < most) {
        if seen.insert(pid) {
            found.push(pid);
            pending.extend(children(&pid.to_string()).unwrap_or_default());
        }
    }
    found
}

/// Returns the children of all threads of a process. Kernels without this list fail.
fn children(pid: &str) -> io::Result<Vec<i32>> {
    let mut all = Vec::new();
    for thread in fs::read_dir(format!("/proc/{pid}/task"))?.flatten() {
        let list = fs::read_to_string(thread.path().join("children"))?;
        all.extend(
            list.split_ascii_whitespace()
                .filter_map(|pid| pid.parse::<i32>().ok()),
        );
    }
    Ok(all)
}

/// Returns the same from the parents of all processes of the host.
fn below_by_parents() -> Vec<i32> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if let Some(process) = read(&format!("{pid}")) {
            children.entry(process.parent).or_default().push(pid);
        }
    }
    let mut found = Vec::new();
    let mut pending = vec![std::process::id().cast_signed()];
    while let Some(parent) = pending.pop() {
        let next = children.remove(&parent).unwrap_or_default();
        found.extend(&next);
        pending.extend(next);
    }
    found
}

fn read(pid: &str) -> Option<Process> {
    parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Parses the line of a process.
fn parse(stat: &str) -> Option<Process> {
    // The name in parentheses may contain anything. The state follows.
    let (before, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(Process {
        parent: fields.get(1)?.parse().ok()?,
        sample: Sample {
            pid: before.split(' ').next()?.parse().ok()?,
            started: number(19)?,
            own: [number(11)?, number(12)?],
            reaped: [number(13)?, number(14)?],
        },
        threads: number(17)?,
        pages: number(21)?,
    })
}

/// Memory of a process, with its share of pages that others use as well.
#[derive(Debug, Clone, Copy, Default)]
struct Share {
    /// Without shared memory.
    own: u64,
    /// Shared memory, and files in memory.
    shared: u64,
}

/// Returns the share of a process. All of its pages if that is unknown.
fn proportional(pid: i32) -> Share {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let number = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
    };
    let shared = number("Pss_Shmem:").unwrap_or(0);
    let all = number("Pss:").or_else(|| Some(read(&pid.to_string())?.pages * page_size() as u64));
    Share {
        own: all.unwrap_or(0).saturating_sub(shared),
        shared,
    }
}

/// Returns the bytes that a file system has used.
fn used(files: &OwnedFd) -> u64 {
    fstatvfs(files).map_or(0, |state| {
        state.f_blocks.saturating_sub(state.f_bfree) * state.f_frsize
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_a_process_is_read_whatever_its_name() {
        let line = "9 (a) (Z 1 b) S 4 9 9 0 -1 0 0 0 0 0 1 2 3 4 20 0 5 0 77 1000 6 7\n";
        let expected = Process {
            parent: 4,
            sample: Sample {
                pid: 9,
                started: 77,
                own: [1, 2],
                reaped: [3, 4],
            },
            threads: 5,
            pages: 6,
        };
        assert_eq!(parse(line), Some(expected));
        assert_eq!(parse("9 (a"), None);
        assert!(read("self").unwrap().pages > 0);
    }

    #[test]
    fn children_are_found_in_both_ways() {
        let mut child = std::process::Command::new("sleep")
            .arg("100")
            .spawn()
            .unwrap();
        let pid = child.id().cast_signed();
        let found = [
            below_this(1000).contains(&pid),
            below_by_parents().contains(&pid),
        ];
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found, [true, true]);
    }
}
