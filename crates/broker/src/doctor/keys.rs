//! Meshwork's keys with values of another type. Scripts that need such a key fail, and cannot name it.

use meshwork_model::keys::hero::JobKeys;

use super::{Finding, Level};
use crate::conn::Conn;

/// Types of the keys by their names in scripts. The names of many keys of a kind end with a colon.
const KINDS: [(&str, &[&str]); 64] = [
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
    // Of contexts alone.
    ("GATES", &["set"]),
    ("OPEN", &["zset"]),
    ("AUDIT", &["stream"]),
    ("FLOW", &["hash"]),
    ("FLOWS", &["string", "hash"]),
    ("FLOWS_DUE", &["zset"]),
    ("FLOWS_LIST", &["zset"]),
    ("FLOW_QUEUE", &["list"]),
    ("FLOW_ID", &["string"]),
    ("JOB_ID", &["string"]),
    ("INDEX", &["zset"]),
];

/// Greatest number of keys that are looked at, as for queues, and in all contexts together. Keys with a fixed name are looked
/// at in any case.
pub(super) const MOST: usize = 20_000;
/// Keys in one page of the scan, and in one call for their types.
const PAGE: usize = 1_000;
/// Greatest number of keys that are named.
pub(super) const MOST_NAMED: usize = 20;

const CHECK: &str = "keys";
const WHY: &str = "scripts that need it fail with WRONGTYPE";

/// The names of keys, with their types.
struct Names(Vec<(String, &'static [&'static str])>);

impl Names {
    fn of(keys: &JobKeys) -> Self {
        let names = keys.script_names();
        let typed = names.into_iter().filter_map(|(name, key)| {
            // In a context, the id of a job is its key.
            let key = if key.is_empty() {
                keys.job_prefix()
            } else {
                key
            };
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

/// Checks the types of Meshwork's keys, of `left` keys at most. Keys that this user may not read are skipped.
pub(super) async fn check(conn: &Conn, keys: &JobKeys, left: &mut usize) -> Vec<Finding> {
    let names = Names::of(keys);
    let mut findings = Vec::new();
    let mut found = names.fixed();
    look(conn, &names, &found, &mut findings).await;
    let mut cursor = 0_u64;
    while *left > 0 && findings.len() < MOST_NAMED {
        let mut scan = redis::cmd("SCAN");
        scan.arg(cursor).arg("MATCH");
        scan.arg(format!("{}*", keys.prefix()));
        scan.arg("COUNT").arg(PAGE);
        let Ok((next, page)) = super::facts::ask::<(u64, Vec<Vec<u8>>)>(conn, &scan).await else {
            break;
        };
        *left = left.saturating_sub(PAGE);
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
    use meshwork_model::keys::context::{ContextId, ContextKeys, ContextLayout};

    use super::*;

    #[test]
    fn each_name_has_a_type_and_each_type_a_name() {
        let context = ContextId::new(7).expect("it is from 1");
        let context = ContextKeys::new(context, ContextLayout::Prefix);
        let mut names = JobKeys::default().script_names();
        names.extend(JobKeys::of_context(context).script_names());
        let mut names: Vec<_> = names.into_iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        names.dedup();
        // The beginning of all keys of a context.
        names.retain(|name| *name != "PREFIX");
        for name in &names {
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
