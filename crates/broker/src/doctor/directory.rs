//! A data directory before it is opened: write access of other users.

use std::path::Path;

use meshwork_embedded::{OpenError, check_place, open_parents};

use super::{Finding, Level};
use crate::conn::ConnectError;

const CHECK: &str = "directory";

const WHY: &str = "what others put there would be loaded as data, or talked to as its owner";

/// Checks the directory. A missing one has no findings, because it is created for this user only.
pub(super) fn check(path: &Path) -> Vec<Finding> {
    if !path.exists() {
        return Vec::new();
    }
    if let Err(error) = check_place(path) {
        return Vec::from_iter(fault(&error));
    }
    let shown = path.display();
    let parents = open_parents(path).unwrap_or_default();
    let [parent, ..] = &parents[..] else {
        return vec![Finding::ok(
            CHECK,
            format!("only this user may write to {shown}"),
        )];
    };
    let parent = parent.display();
    let what = format!("everybody may write to {parent}, above the data directory {shown}");
    let why = "whoever may write there can put another directory in its place";
    let remedy = format!("chmod +t {parent}, or chmod o-w {parent}");
    vec![Finding::bad(Level::Warning, CHECK, what, why, remedy)]
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
