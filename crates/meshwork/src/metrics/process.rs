//! Metrics of this process from Linux' `/proc`.

use std::fs;

/// Values of a process; `None` if the system has no value.
#[derive(Debug, Clone, Default)]
pub(crate) struct Process {
    /// Processor time, in seconds.
    pub(crate) cpu_seconds: Option<f64>,
    /// Memory in use, in bytes.
    pub(crate) resident: Option<u64>,
    /// Address space, in bytes.
    pub(crate) virtual_size: Option<u64>,
    /// Number of open files and connections.
    pub(crate) open_files: Option<u64>,
    /// Limit of open files and connections.
    pub(crate) most_files: Option<u64>,
    /// Time of the start, in seconds since 1970.
    pub(crate) started: Option<f64>,
}

/// Reads `/proc`.
pub(crate) fn read() -> Process {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name in parentheses may contain anything. The state follows.
    let words = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let words: Vec<_> = words.split_ascii_whitespace().collect();
    let number = |at: usize| words.get(at)?.parse::<u64>().ok();
    let ticks = |ticks: u64| ticks as f64 / rustix::param::clock_ticks_per_second() as f64;
    let cpu = number(11).zip(number(12));
    Process {
        cpu_seconds: cpu.map(|(user, system)| ticks(user + system)),
        resident: number(21).map(|pages| pages * rustix::param::page_size() as u64),
        virtual_size: number(20),
        open_files: fs::read_dir("/proc/self/fd")
            .ok()
            .map(|files| files.count() as u64),
        most_files: most_files(),
        started: number(19).zip(boot()).map(|(at, boot)| boot + ticks(at)),
    }
}

/// Returns the current limit of open files.
fn most_files() -> Option<u64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"))?;
    line.split_ascii_whitespace().nth(3)?.parse().ok()
}

/// Returns the time of the system's boot, in seconds since 1970.
fn boot() -> Option<f64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let line = stat.lines().find_map(|line| line.strip_prefix("btime "))?;
    line.trim().parse().ok()
}
