//! The browser Chromium, for tests of the dashboard.

use super::{Found, look, package_manager};
use crate::process::Failure;

const PROGRAM: &str = "chromium";
const VARIABLE: &str = "MESHWORK_TEST_CHROMIUM";

pub(super) fn find_or_install(install: bool) -> Result<Found, Failure> {
    let found = |note: &str| {
        let path = look(PROGRAM, VARIABLE)?;
        let note = note.to_owned();
        Some(Found { path, note })
    };
    if let Some(found) = found("found") {
        return Ok(found);
    }
    if !install {
        return Err(Failure::new("not in PATH"));
    }
    let note = package_manager::install(PROGRAM)?;
    found(&note).ok_or_else(|| Failure::new("installed, but not into PATH"))
}
