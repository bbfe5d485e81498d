//! Memory of the host, from which limits follow.

use std::fs;

/// Returns the memory of this host in bytes, or that of its container if it has a limit.
pub(super) fn host_memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let host = line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024;
    let limit = fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let limit = limit.and_then(|text| text.trim().parse().ok());
    Some(limit.map_or(host, |limit: u64| limit.min(host)))
}
