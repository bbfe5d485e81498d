//! python3, for the tests of the Python runner and to unpack the wheel of Valkey.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Found, QUESTION, look, package_manager};
use crate::process::{Failure, ask};

/// Oldest version with all features that the runner needs.
const AT_LEAST: (u32, u32) = (3, 8);

pub(super) fn find_or_install(install: bool) -> Result<Found, Failure> {
    let note = match look("python3", "MESHWORK_TEST_PYTHON") {
        Some(path) => return checked(&path, ""),
        None if install => package_manager::install("python3")?,
        None => return Err(Failure::new("not in PATH")),
    };
    match look("python3", "MESHWORK_TEST_PYTHON") {
        Some(path) => checked(&path, &format!(", {note}")),
        None => Err(Failure::new(
            "the package manager installed it, but not into PATH",
        )),
    }
}

/// Checks the version and returns the interpreter itself, not a shim before it that costs a quarter of a second each
/// time.
fn checked(path: &Path, note: &str) -> Result<Found, Failure> {
    let question = "import sys; print('%d %d %s' % (sys.version_info[:2] + (sys.executable,)))";
    let answer = ask(Command::new(path).args(["-I", "-c", question]), QUESTION)?;
    let mut words = answer.splitn(3, ' ');
    let mut number = || {
        words
            .next()
            .and_then(|word| word.parse::<u32>().ok())
            .unwrap_or(0)
    };
    let version = (number(), number());
    let real = PathBuf::from(words.next().unwrap_or_default());
    let name = format!("Python {}.{}", version.0, version.1);
    if version < AT_LEAST {
        let (major, minor) = AT_LEAST;
        let path = path.display();
        return Err(Failure::new(format!(
            "{path} is {name}, and {major}.{minor} is needed"
        )));
    }
    Ok(Found {
        path: real,
        note: format!("{name}{note}"),
    })
}
