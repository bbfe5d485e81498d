//! redis-server, 7.0 or newer.

use std::path::{Path, PathBuf};

use super::{Found, look, package_manager, server_version, version};
use crate::process::Failure;

/// Oldest version that supports scripts with `#!lua flags=…`.
const AT_LEAST: (u32, u32) = (7, 0);

const PROGRAM: &str = "redis-server";
const VARIABLE: &str = "MESHWORK_TEST_REDIS_SERVER";

pub(super) fn find_or_install(install: bool) -> Result<Found, Failure> {
    let found = look(PROGRAM, VARIABLE);
    if let Some(path) = found {
        return checked(path, "");
    }
    if !install {
        return Err(Failure::new("not in PATH"));
    }
    let note = package_manager::install(PROGRAM)?;
    match look(PROGRAM, VARIABLE) {
        Some(path) => checked(path, &format!(", {note}")),
        None => Err(Failure::new(
            "the package manager installed it, but not into PATH",
        )),
    }
}

fn checked(path: PathBuf, note: &str) -> Result<Found, Failure> {
    let line = version(&path)?;
    match fault(&path, &line) {
        Some(fault) => Err(Failure::new(fault)),
        None => Ok(Found {
            path,
            note: format!("{line}{note}"),
        }),
    }
}

fn fault(path: &Path, line: &str) -> Option<String> {
    let path = path.display();
    // Some systems have another server under this name.
    if !line.starts_with("Redis") {
        return Some(format!("{path} is no Redis: {line}"));
    }
    let (major, minor) = AT_LEAST;
    match server_version(line) {
        Some(version) if version >= AT_LEAST => None,
        _ => Some(format!(
            "{path} is too old, {major}.{minor} is needed: {line}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_and_other_servers_are_refused() {
        let of = |line| fault(Path::new("/usr/bin/redis-server"), line);
        assert_eq!(of("Redis server v=7.0.15 sha=0"), None);
        assert_eq!(of("Redis server v=8.2.1 sha=0"), None);
        assert!(
            of("Redis server v=6.2.14 sha=0")
                .unwrap()
                .contains("too old")
        );
        assert!(
            of("Valkey server v=9.1.2 sha=0")
                .unwrap()
                .contains("no Redis")
        );
    }
}
