//! Bound of the kernel for the processes of a run. A run can start processes faster than the launcher counts them. So the
//! kernel refuses those far above the limit, and the launcher, which counts exactly, ends the run.

use std::fs;
use std::io;

use meshwork_model::sandbox::{Limit, Limits};
use rustix::process::{Resource, geteuid};

use super::super::usage::seen;
use super::privileges::{can_mount, lower};

/// Greatest number of processes of a pid namespace, while `/proc` is that of the namespace.
const PID_MAX: &str = "/proc/sys/kernel/pid_max";
/// First version of Linux in which [`PID_MAX`] belongs to the namespace. It is that of the host before.
const PID_MAX_OF_NAMESPACE: Version = Version(6, 14);
/// First version of Linux that counts the processes of a user in each user namespace separately.
const COUNT_OF_NAMESPACE: Version = Version(5, 14);
/// Numbers that Linux gives out only once in a pid namespace. A greatest number below is refused.
const RESERVED: u64 = 300;

/// Bounds the processes of this user in its user namespace, which the run does not share. It does not bind root.
pub(in super::super) fn bound_user(limits: &Limits) -> io::Result<()> {
    match limits.get(Limit::Processes) {
        Some(limit) if Version::running() >= COUNT_OF_NAMESPACE => {
            lower(Resource::Nproc, seen(limit))
        }
        _ => Ok(()),
    }
}

/// Bounds the processes of this pid namespace, whose `/proc` can be written.
pub(super) fn bound_namespace(limits: &Limits) {
    let limit = limits.get(Limit::Processes);
    let limit = limit.filter(|_| Version::running() >= PID_MAX_OF_NAMESPACE);
    if let Some(limit) = limit {
        // Refused by some security modules. The launcher ends the run in any case.
        let _ = fs::write(PID_MAX, (RESERVED + seen(limit)).to_string());
    }
}

/// Returns true if one of these bounds holds for a run in namespaces that this process starts.
pub(in super::super) fn is_bounded() -> bool {
    let version = Version::running();
    let has_user_namespace = !can_mount();
    version >= PID_MAX_OF_NAMESPACE
        || version >= COUNT_OF_NAMESPACE && has_user_namespace && !geteuid().is_root()
}

/// Version of Linux.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Version(u32, u32);

impl Version {
    /// Returns the version that runs here.
    fn running() -> Self {
        let system = rustix::system::uname();
        Self::parse(&system.release().to_string_lossy())
    }

    /// Parses a release such as `6.1.0-13-amd64`. One that cannot be read is taken for an old one.
    fn parse(release: &str) -> Self {
        let mut numbers = release.split(|c: char| !c.is_ascii_digit());
        let mut next = || numbers.next().and_then(|number| number.parse().ok());
        Self(next().unwrap_or_default(), next().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_by_their_numbers() {
        for (release, version) in [
            ("6.14.0", Version(6, 14)),
            ("6.1.0-13-amd64", Version(6, 1)),
            ("6.18.44-fc-v669", Version(6, 18)),
            ("7.0-rc1", Version(7, 0)),
            ("unknown", Version(0, 0)),
        ] {
            assert_eq!(Version::parse(release), version, "{release}");
        }
        assert!(Version::parse("6.2.0") < PID_MAX_OF_NAMESPACE);
        assert!(Version::parse("7.0.1") > PID_MAX_OF_NAMESPACE);
        assert!(Version::running() > Version(3, 0));
    }
}
