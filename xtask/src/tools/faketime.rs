//! libfaketime, which gives a process a wrong clock.

use std::path::PathBuf;

use super::{Found, look, package_manager};
use crate::process::Failure;

const PACKAGE: &str = "faketime";
const LIBRARY: &str = "libfaketime.so.1";
const VARIABLE: &str = "MESHWORK_TEST_FAKETIME";

pub(super) fn find_or_install(install: bool) -> Result<Found, Failure> {
    let found = |path: PathBuf, note: String| Found { path, note };
    if let Some(path) = library() {
        return Ok(found(path, "found".to_owned()));
    }
    if !install {
        return Err(Failure::new(format!("no {LIBRARY} under /usr/lib")));
    }
    let note = package_manager::install(PACKAGE)?;
    let path = library();
    let path = path.ok_or_else(|| Failure::new("installed, but not under /usr/lib"))?;
    Ok(found(path, note))
}

/// Returns the path of the library. Packages use a folder of its own, below one for the architecture on some systems.
fn library() -> Option<PathBuf> {
    if std::env::var_os(VARIABLE).is_some_and(|value| !value.is_empty()) {
        return look(LIBRARY, VARIABLE);
    }
    let libraries = std::fs::read_dir("/usr/lib")
        .ok()?
        .flatten()
        .map(|entry| entry.path());
    let folders = libraries.chain(["/usr/lib", "/usr/lib64", "/usr/local/lib"].map(PathBuf::from));
    folders
        .map(|folder| folder.join("faketime").join(LIBRARY))
        .find(|path| path.is_file())
}
