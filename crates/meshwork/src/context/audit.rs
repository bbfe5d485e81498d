//! Audit trail: changes and refused requests, with their actors.

use data_encoding::HEXLOWER;
use meshwork_broker::context::{Commit, Entry};
use meshwork_model::context::limits::{MAX_AUDIT, MAX_AUDIT_VALUE};
use meshwork_model::time;
use serde::Serialize;
use sha2::{Digest, Sha256};

/// Author of a coordinator's actions.
pub(super) const COORDINATOR: &str = "coordinator";

/// An entry of an audit trail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditEntry {
    /// Id in the stream, from which the next read continues.
    pub id: String,
    /// Time, in seconds since 1970.
    pub at: u32,
    /// Time, in milliseconds since 1970.
    pub at_ms: u64,
    /// Author: `actor 12`, or the program.
    pub who: String,
    /// Action, such as `grant`, `create` or `refuse`.
    pub what: String,
    /// Key of the changed object.
    pub object: String,
    /// The value before. A value over 200 bytes is its length and SHA-256.
    pub before: String,
    /// The value after, in the same way.
    pub after: String,
}

impl AuditEntry {
    pub(super) fn of(entry: Entry) -> Self {
        let field = |name: &str| {
            let found = entry.fields.iter().find(|(field, _)| field == name);
            found.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        let at: u32 = field("at").parse().unwrap_or_default();
        // The server begins the id with its time in milliseconds.
        let id_ms = entry.id.split('-').next().and_then(|ms| ms.parse().ok());
        Self {
            at,
            at_ms: time::exact(at.into(), id_ms),
            who: field("who"),
            what: field("what"),
            object: field("object"),
            before: field("before"),
            after: field("after"),
            id: entry.id,
        }
    }
}

/// A change to record.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Change<'a> {
    pub(super) who: &'a str,
    pub(super) what: &'a str,
    pub(super) object: &'a str,
    pub(super) before: &'a str,
    pub(super) after: &'a str,
}

impl Change<'_> {
    /// Adds the entry to a commit.
    pub(super) fn noted(self, commit: Commit, trail: &str) -> Commit {
        let (before, after) = (shown(self.before), shown(self.after));
        let fields = [
            ("who", self.who),
            ("what", self.what),
            ("object", self.object),
            ("before", &before),
            ("after", &after),
        ];
        commit.note(trail, MAX_AUDIT, &fields)
    }
}

/// Returns a value in the form of the trail.
fn shown(value: &str) -> String {
    if value.len() <= MAX_AUDIT_VALUE {
        return value.to_owned();
    }
    let digest = HEXLOWER.encode(&Sha256::digest(value));
    format!("{} bytes, sha256 {digest}", value.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_value_is_its_length_and_digest() {
        assert_eq!(shown("[1,2]"), "[1,2]");
        let long = shown(&"x".repeat(201));
        assert!(long.starts_with("201 bytes, sha256 "), "{long}");
        assert_eq!(long.len(), "201 bytes, sha256 ".len() + 64);
    }
}
