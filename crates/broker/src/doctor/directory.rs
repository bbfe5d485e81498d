//! A data directory before it is opened: write access of other users.

use std::path::Path;

use meshwork_embedded::{OpenError, Survey, check_place, check_store, open_parents};

use super::{Finding, Level, such_as};
use crate::conn::ConnectError;

const CHECK: &str = "directory";

/// Greatest size of a log, in bytes, that a new owner loads within some 20 s.
const LARGE: u64 = 1 << 30;

const WHY: &str = "what others put there would be loaded as data, or talked to as its owner";

/// Checks the directory. A missing one has no findings, because it is created for this user only.
pub(super) fn check(path: &Path) -> Vec<Finding> {
    if !path.exists() {
        return Vec::new();
    }
    if let Err(error) = check_place(path) {
        return Vec::from_iter(fault(&error));
    }
    let mut findings = vec![parents(path)];
    findings.extend(survey(path));
    findings
}

/// Checks who may put another directory in its place.
fn parents(path: &Path) -> Finding {
    let shown = path.display();
    let parents = open_parents(path).unwrap_or_default();
    let [parent, ..] = &parents[..] else {
        return Finding::ok(CHECK, format!("only this user may write to {shown}"));
    };
    let parent = parent.display();
    let what = format!("everybody may write to {parent}, above the data directory {shown}");
    let why = "users with write access there can replace the directory";
    let remedy = format!("chmod +t {parent}, or chmod o-w {parent}");
    Finding::bad(Level::Warning, CHECK, what, why, remedy)
}

/// Describes what lies in the directory: its owner, its size, and files that no process needs.
fn survey(path: &Path) -> Vec<Finding> {
    let Ok(found) = meshwork_embedded::survey(path) else {
        return Vec::new();
    };
    let owner = match &found.owner {
        Some(owner) => format!("{owner}; this command is a client of it"),
        None => "no process; this command opens it for itself".to_owned(),
    };
    let mut findings = vec![Finding::ok("owner", owner), size(&found)];
    if found.owner.is_none() && (1..LARGE).contains(&found.log_bytes) {
        findings.extend(log(path));
    }
    let mut hint = |check, names: &[String], why, remedy: String| {
        if !names.is_empty() {
            let finding =
                Finding::bad(Level::Hint, check, such_as(names.len(), names), why, remedy);
            findings.push(finding);
        }
    };
    let why = "a process was killed while it rewrote the log; no data is missing";
    let remedy = "nothing: the next process that opens the directory removes them";
    hint("leftovers", &found.left_over, why, remedy.to_owned());
    let why = "no process of Meshwork reads them, and they take space";
    let remedy = format!("look at them, and move them out of {}", path.display());
    hint("other files", &found.foreign, why, remedy);
    findings
}

/// Compares the log with its checksums, while no process writes it. A new owner compares a larger one.
fn log(path: &Path) -> Option<Finding> {
    // A process may own it by now, and has looked at it.
    let check = check_store(path).ok()?;
    let faults: Vec<_> = check.faults.iter().map(|fault| &*fault.what).collect();
    if faults.is_empty() {
        let what = format!("{} bytes agree with their checksums", check.checked);
        return Some(Finding::ok("log", what));
    }
    let why = "the data behind the first fault is lost, or may have changed";
    let remedy = "restore a backup, or see what `meshwork store repair` would cut";
    let what = such_as(faults.len(), &faults);
    Some(Finding::bad(Level::Problem, "log", what, why, remedy))
}

fn size(found: &Survey) -> Finding {
    const CHECK: &str = "size";
    let mega = |bytes: u64| format!("{:.1} MB", bytes as f64 / 1e6);
    let what = format!(
        "{}, of which the log has {}",
        mega(found.bytes),
        mega(found.log_bytes)
    );
    if found.log_bytes < LARGE {
        return Finding::ok(CHECK, what);
    }
    let why = "each new owner loads the whole log first, about 50 MB a second, and all data is in its memory";
    let remedy = "delete ended jobs sooner (`meshwork worker --retain-age`), or move to a server: docs/embedded-to-redis.md";
    Finding::bad(Level::Hint, CHECK, what, why, remedy)
}

/// Returns the finding, if unsafe permissions are why a directory cannot be opened; else the error.
pub(super) fn stranger(error: ConnectError) -> Result<Vec<Finding>, ConnectError> {
    let found = match &error {
        ConnectError::Directory { source, .. } => source.downcast_ref().and_then(fault),
        _ => None,
    };
    found.map(|finding| vec![finding]).ok_or(error)
}

fn fault(error: &OpenError) -> Option<Finding> {
    let (what, remedy) = match error {
        OpenError::Foreign { path, owner, own } => (
            format!(
                "the data directory {} belongs to user {owner}, and this is user {own}",
                path.display()
            ),
            format!(
                "run as user {owner}; or set MESHWORK_DATA to another directory; or chown -R {own} {}",
                path.display()
            ),
        ),
        OpenError::Writable { path, mode } => (
            format!(
                "other users may write to the data directory {} (mode {mode:04o})",
                path.display()
            ),
            format!("look at what is in it, then chmod go-w {}", path.display()),
        ),
        OpenError::Stranger { path, user, own } => (
            format!(
                "user {user} answers for the data directory {}, and this is user {own}",
                path.display()
            ),
            "stop that process, and see who could write to the directory".to_owned(),
        ),
        _ => return None,
    };
    Some(Finding::bad(Level::Problem, CHECK, what, WHY, remedy))
}
