//! The namespaces of a run that its launcher enters: a user namespace where it lacks the capabilities to mount, and a pid
//! namespace for the processes that it starts next.

use std::fs;
use std::io;

use meshwork_model::sandbox::Limits;
use nix::sched::{CloneFlags, unshare};
use rustix::process::{getegid, geteuid};

use super::confine::{bound_user, can_mount, keep_needed};

/// Prepares this process to start the first process of a pid namespace. An ordinary user can do it only while this
/// process is dumpable.
pub(super) fn enter(limits: &Limits) -> io::Result<()> {
    let refused = |error: io::Error| io::Error::other(format!("cannot make namespaces: {error}"));
    if can_mount() {
        return unshare(CloneFlags::CLONE_NEWPID).map_err(|error| refused(error.into()));
    }
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let namespaces = CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWPID;
    unshare(namespaces).map_err(|error| refused(error.into()))?;
    // The ids stay: files belong to the same user inside.
    map("setgroups", "deny")?;
    map("gid_map", &format!("{group} {group} 1"))?;
    map("uid_map", &format!("{user} {user} 1"))?;
    bound_user(limits)?;
    keep_needed()
}

fn map(file: &str, text: &str) -> io::Result<()> {
    let written = fs::write(format!("/proc/self/{file}"), text);
    written.map_err(|error| io::Error::other(format!("cannot write {file}: {error}")))
}
