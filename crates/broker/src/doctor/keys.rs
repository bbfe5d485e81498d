//! Meshwork's keys with values of another type. Scripts that need such a key fail, and cannot name it.

use meshwork_model::keys::hero::JobKeys;

use super::{Finding, Level};
use crate::conn::Conn;

/// Types of the keys by their names in scripts. The names of many keys of a kind end with a colon.
const KINDS: [(&str, &[&str]); 53] = [
    ("QUEUES", &["list"]),
    ("STATS", &["hash"]),
    ("WORK", &["list"]),
    ("REPLY", &["list"]),
    ("CONTROL", &["list"]),
    ("LEASES", &["zset"]),
    ("PREFETCH_LISTS", &["zset"]),
    ("PREFETCH", &["list"]),
    ("DELAYED", &["zset"]),
    ("DEAD", &["zset"]),
    ("ENDED", &["zset"]),
    ("WATCHED", &["zset"]),
    ("WALK", &["hash"]),
    ("LISTS", &["zset"]),
    ("STALE", &["zset"]),
    ("EVENTS", &["stream"]),
    ("CONFIG", &["hash"]),
    ("ACTORS", &["zset"]),
    ("LOG", &["stream"]),
    ("DEPENDENTS", &["list"]),
    ("BATCHES", &["hash"]),
    ("MEMBERS", &["set"]),
    ("JOINED", &["list"]),
    ("BATCHES_OPEN", &["zset"]),
    ("BATCHES_ENDED", &["zset"]),
    ("UNRESOLVED", &["list"]),
    ("STOPS", &["zset"]),
    ("STARTS", &["zset"]),
    ("SLOTS", &["zset"]),
    ("RATES", &["string"]),
    ("ALERTS", &["hash"]),
    ("BACKLOG", &["zset"]),
    ("HEADS", &["zset"]),
    ("BACKLOG_INDEX", &["zset"]),
    ("UNIQUE", &["string"]),
    ("SPREADS", &["hash"]),
    ("SPREAD", &["zset"]),
    ("SEQ", &["string"]),
    ("DUE", &["list"]),
    ("SCHEDULE", &["hash"]),
    ("SCHEDULES", &["zset"]),
    ("TAKEN", &["zset"]),
    ("LEADER", &["string"]),
    ("CLOCK", &["string"]),
    ("HISTORY", &["zset"]),
    ("HISTORIES", &["zset"]),
    ("OBJECTS", &["hash", "list", "zset"]),
    ("USAGE", &["hash"]),
    // Old clients have lists under the names of jobs.
    ("JOB", &["hash", "list"]),
    ("OLD_REPLY", &["list"]),
    ("OLD_STOP", &["list"]),
    ("OLD_TYPE", &["list"]),
    ("OLD_WORK", &["list"]),
];

/// Greatest number of keys that are looked at, as for queues. Keys with a fixed name are looked at in any case.
const MOST: usize = 20_000;
/// Keys in one page of the scan, and in one call for their types.
const PAGE: usize = 1_000;
/// Greatest number of keys that are named.
const MOST_NAMED: usize = 20;

const CHECK: &str = "keys";
const WHY: &str = "scripts that need it fail with WRONGTYPE";

/// The names of keys, with their types.
struct Names(Vec<(String, &'static [&'static str])>);

impl Names {
    fn of(keys: &JobKeys) -> Self {
        let names = keys.script_names();
        let typed = names.into_iter().filter_map(|(name, key)| {
            let (_, kinds) = KINDS.iter().find(|(known, _)| *known == name)?;
            Some((key, *kinds))
        });
        Self(typed.collect())
    }

    /// Returns the names that are whole.
    fn fixed(&self) -> Vec<String> {
        let whole = self.0.iter().filter(|(name, _)| !name.ends_with(':'));
        whole.map(|(name, _)| name.clone()).collect()
    }

    /// Returns the types that a key may have; `None` for other keys.
    fn kinds(&self, key: &str) -> Option<&'static [&'static str]> {
        let named = self.0.iter().filter(|(name, _)| {
            key == name || name.ends_with(':') && key.starts_with(name.as_str())
        });
        let longest = named.max_by_key(|(name, _)| name.len());
        longest.map(|(_, kinds)| *kinds)
    }
}

/// Checks the types of Meshwork's keys. Keys that this user may not read are skipped.
pub(super) async fn check(conn: &Conn, keys: &JobKeys) -> Vec<Finding> {
    let names = Names::of(keys);
    let mut findings = Vec::new();
    let mut found = names.fixed();
    look(conn, &names, &found, &mut findings).await;
    let (mut cursor, mut looked) = (0_u64, 0);
    while looked < MOST && findings.len() < MOST_NAMED {
        let mut scan = redis::cmd("SCAN");
        scan.arg(cursor).arg("MATCH");
        scan.arg(format!("{}*", keys.prefix()));
        scan.arg("COUNT").arg(PAGE);
        let Ok((next, page)) = super::facts::ask::<(u64, Vec<Vec<u8>>)>(conn, &scan).await else {
            break;
        };
        looked += PAGE;
        let fixed = names.fixed();
        // A name that is no text is no key of Meshwork, but may have a prefix of one.
        let page = page
            .into_iter()
            .filter_map(|key| String::from_utf8(key).ok());
        found = page.filter(|key| !fixed.contains(key)).collect();
        look(conn, &names, &found, &mut findings).await;
        cursor = next;
        if cursor == 0 {
            break;
        }
    }
    findings.truncate(MOST_NAMED);
    findings
}

/// Reads the types of these keys, and adds a finding for each wrong one.
async fn look(conn: &Conn, names: &Names, found: &[String], findings: &mut Vec<Finding>) {
    let known: Vec<_> = found
        .iter()
        .filter_map(|key| Some((key, names.kinds(key)?)))
        .collect();
    for page in known.chunks(PAGE) {
        let mut types = redis::pipe();
        for (key, _) in page {
            types.cmd("TYPE").arg(key);
        }
        let types: Result<Vec<String>, _> = types.query_async(&mut conn.clone()).await;
        for ((key, kinds), found) in page.iter().zip(types.unwrap_or_default()) {
            if found != "none" && !kinds.contains(&found.as_str()) {
                let what = format!(
                    "{key} is a {found}, and has to be a {}",
                    kinds.join(" or a ")
                );
                let remedy = format!("RENAME {key} to a name that is not Meshwork's, or DEL {key}");
                findings.push(Finding::bad(Level::Problem, CHECK, what, WHY, remedy));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_has_a_type_and_each_type_a_name() {
        let names = JobKeys::default().script_names();
        for (name, _) in &names {
            let kinds = KINDS.iter().filter(|(known, _)| known == name);
            assert_eq!(kinds.count(), 1, "{name}");
        }
        assert_eq!(names.len(), KINDS.len());
    }

    #[test]
    fn the_longest_name_decides() {
        let names = Names::of(&JobKeys::default());
        for (key, kinds) in [
            ("hero:job:j", Some(&["hash", "list"][..])),
            ("hero:job:actor_queue:osis", Some(&["list"])),
            ("hero:q:lease", Some(&["zset"])),
            ("hero:q:leases", None),
            ("hero:q:schedule:a", Some(&["hash"])),
            ("other:job:j", None),
        ] {
            assert_eq!(names.kinds(key), kinds, "{key}");
        }
    }
}
