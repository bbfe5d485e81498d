//! Privileges and limits of the kernel that a run loses before it starts.

use std::fs;
use std::io;

use caps::{CapSet, Capability, CapsHashSet};
use meshwork_model::sandbox::{Limit, Limits};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::set_no_new_privs;

/// Capabilities that a process needs to build a root folder and to drop all capabilities.
const NEEDED: [Capability; 2] = [Capability::CAP_SYS_ADMIN, Capability::CAP_SETPCAP];

/// Share of the memory limit that one process may reserve. Programs reserve more than they use, and the use of all
/// processes is measured. This bounds what one process takes between two measurements.
const RESERVED: u64 = 4;
/// Least memory that a process may reserve: the heaps of Node and Java.
const MIN_RESERVED: u64 = 4 << 30;

/// The kernel ends the processes of runs first if the host has no memory left.
const OOM_SCORE: &str = "1000";

/// Returns true if this process has the capabilities to build a root folder.
pub(in super::super) fn can_mount() -> bool {
    NEEDED
        .iter()
        .all(|cap| caps::has_cap(None, CapSet::Effective, *cap).unwrap_or(false))
}

/// Passes the needed capabilities on to the next program, which has none otherwise unless it runs as root.
pub(in super::super) fn keep_needed() -> io::Result<()> {
    let needed: CapsHashSet = NEEDED.into_iter().collect();
    caps::set(None, CapSet::Inheritable, &needed).map_err(io::Error::other)?;
    caps::set(None, CapSet::Ambient, &needed).map_err(io::Error::other)
}

/// Drops all capabilities for good.
pub(super) fn drop_all() -> io::Result<()> {
    set_no_new_privs(true)?;
    // Fails without CAP_SETPCAP. Without new privileges, no program gains a capability either way.
    let _ = caps::clear(None, CapSet::Bounding);
    // A kernel without ambient capabilities has none to drop.
    let _ = caps::clear(None, CapSet::Ambient);
    for set in [CapSet::Inheritable, CapSet::Effective, CapSet::Permitted] {
        caps::clear(None, set).map_err(io::Error::other)?;
    }
    Ok(())
}

/// Sets the limits that the kernel enforces for each process.
pub(super) fn limit(limits: &Limits) -> io::Result<()> {
    if let Some(memory) = limits.get(Limit::Memory) {
        lower(
            Resource::Data,
            memory.saturating_mul(RESERVED).max(MIN_RESERVED),
        )?;
        // Not there in some containers.
        let _ = fs::write("/proc/self/oom_score_adj", OOM_SCORE);
    }
    if let Some(files) = limits.get(Limit::Files) {
        lower(Resource::Nofile, files)?;
    }
    Ok(())
}

/// Lets the kernel write no memory of crashed processes to files. They would be on the host, or take the work folder.
pub(super) fn leave_no_dump() -> io::Result<()> {
    lower(Resource::Core, 0)
}

/// Lowers a limit of the kernel. A lower one that is in force stays.
pub(super) fn lower(resource: Resource, to: u64) -> io::Result<()> {
    let now = getrlimit(resource);
    let least = |limit: Option<u64>| Some(limit.map_or(to, |limit| limit.min(to)));
    let lowered = Rlimit {
        current: least(now.current),
        maximum: least(now.maximum),
    };
    Ok(setrlimit(resource, lowered)?)
}
