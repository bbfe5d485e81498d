//! Rows of the table of keys for a namespace of Hero and for the jobs of a context, with their names in scripts.

use super::JobKeys;
use super::own::ScriptName;
use crate::keys::table::{ANY, CONTEXT, HASH, KeyTable, Kinds, LIST, SET, SORTED, STREAM, STRING};

/// Names in [`OWN`] of keys whose content workers find again by the records, or that only count or report.
const FOUND_AGAIN: [&str; 30] = [
    "actors",
    "backlog:",
    "batches_ended",
    "batches_open",
    "clock",
    "dead",
    "delayed",
    "due",
    "ended",
    "events",
    "feed:",
    "feeds",
    "heads:",
    "held",
    "histories",
    "history:",
    "lease",
    "lists",
    "rate:",
    "request:",
    "schedules",
    "seq",
    "settle",
    "slots:",
    "stale",
    "starts",
    "stops",
    "turn",
    "walk",
    "watch",
];

/// The same of keys of contexts.
const CONTEXT_FOUND_AGAIN: [&str; 4] =
    ["mw:flows-due", "mw:index:", "mw:refused", "mw:runners-seen"];

/// Keys after `hero:q:`, and in a context after `mw:`: the name in scripts (empty: no script uses it), the name, its types.
const OWN: [(&str, &str, Kinds); 49] = [
    ("REPLY", "reply:", LIST),
    ("CONTROL", "ctl:type:", LIST),
    ("LEASES", "lease", SORTED),
    ("PREFETCH_LISTS", "feeds", SORTED),
    ("PREFETCH", "feed:", LIST),
    ("DELAYED", "delayed", SORTED),
    ("DEAD", "dead", SORTED),
    ("ENDED", "ended", SORTED),
    ("WATCHED", "watch", SORTED),
    ("WALK", "walk", HASH),
    ("LISTS", "lists", SORTED),
    ("STALE", "stale", SORTED),
    ("EVENTS", "events", STREAM),
    ("CONFIG", "config", HASH),
    ("ACTORS", "actors", SORTED),
    ("LOG", "log:", STREAM),
    // For each job, the ids of its dependents.
    ("DEPENDENTS", "next:", LIST),
    // Batches: state of each, jobs that have not ended, the first jobs, and all batches.
    ("BATCHES", "batches:", HASH),
    ("MEMBERS", "members:", SET),
    ("JOINED", "joined:", LIST),
    ("BATCHES_OPEN", "batches_open", SORTED),
    ("BATCHES_ENDED", "batches_ended", SORTED),
    // Ended jobs whose dependents have not been notified.
    ("UNRESOLVED", "settle", LIST),
    // Cancellations that no worker has taken yet, by the time at which they were first seen.
    ("STOPS", "stops", SORTED),
    // Jobs that a worker has to begin by a time (milliseconds).
    ("STARTS", "starts", SORTED),
    // Jobs with a slot, of a queue, or of a queue, a blank and a key (by start).
    ("SLOTS", "slots:", SORTED),
    // Counters of each list at each hour, and all lists that have them by the last hour.
    ("HISTORY", "history:", SORTED),
    ("HISTORIES", "histories", SORTED),
    // Consumption of rates, of the same.
    ("RATES", "rate:", STRING),
    // Alert of each queue: its job, and its failures in a row.
    ("ALERTS", "alerts:", HASH),
    // Backlogs, for each list, a blank and key (by submission).
    ("BACKLOG", "backlog:", SORTED),
    // Jobs of a key that are in a fair queue, for the same names.
    ("HEADS", "heads:", SORTED),
    // The same names that have a backlog, by the time of the next check.
    ("BACKLOG_INDEX", "held", SORTED),
    // Job of each unique name.
    ("UNIQUE", "unique:", STRING),
    // Spread queues: generation of each one's layout, its keys by the last check, and for each key, after a blank, its
    // jobs by submission.
    ("SPREADS", "spreads", HASH),
    ("SPREAD", "spread:", SORTED),
    // Counter of jobs with a key.
    ("SEQ", "seq", STRING),
    // Wake-up for the leader.
    ("DUE", "due", LIST),
    ("SCHEDULE", "schedule:", HASH),
    ("SCHEDULES", "schedules", SORTED),
    ("TAKEN", "bananas", SORTED),
    // Time until which one worker does maintenance (milliseconds).
    ("LEADER", "turn", STRING),
    ("OBJECTS", "osis:", &["hash", "list", "zset"]),
    ("USAGE", "osis_usage", HASH),
    // The latest time of the server's clock, and its steps back.
    ("CLOCK", "clock", STRING),
    ("", "api_keys", HASH),
    // Values of another type that were moved away.
    ("", "damaged:", ANY),
    ("", "each:", STRING),
    ("", "request:", STRING),
];

impl JobKeys {
    /// Returns the names in scripts that namespaces and contexts share.
    pub(super) fn common_names(&self) -> Vec<ScriptName> {
        let mut names = vec![
            // Prefix of canonical queues, and metrics of each.
            ("QUEUES", self.queues_prefix()),
            ("STATS", self.queue_stats_prefix()),
            ("WORK", self.work_prefix()),
        ];
        let own = OWN.iter().filter(|(in_scripts, ..)| !in_scripts.is_empty());
        names.extend(own.map(|(in_scripts, name, _)| (*in_scripts, self.own(name))));
        names
    }

    /// Returns the name that a key of another type gets when it is moved away.
    #[must_use]
    pub fn damaged(&self, key: &str) -> String {
        let name = key.strip_prefix(&self.prefix()).unwrap_or(key);
        self.own(&format!("damaged:{name}"))
    }

    /// Returns the table of these keys.
    #[must_use]
    pub fn table(&self) -> KeyTable {
        KeyTable::new(self.rows())
    }

    /// Returns all rows: each key, its types, and whether its content is found again.
    fn rows(&self) -> Vec<(String, Kinds, bool)> {
        let mut rows = vec![
            (self.queues_prefix(), LIST, false),
            (self.queue_stats_prefix(), HASH, true),
            (self.presence_prefix(), STRING, true),
        ];
        rows.extend(OWN.iter().map(|(_, name, kinds)| {
            let is_found_again = FOUND_AGAIN.contains(name);
            (self.own(name), *kinds, is_found_again)
        }));
        match self {
            Self::Hero(_) => rows.extend([
                // Old clients have lists under the names of jobs.
                (self.job_prefix(), &["hash", "list"][..], false),
                (self.legacy_reply_prefix(), LIST, false),
                (self.legacy_stop_prefix(), LIST, false),
                (self.legacy_type_prefix(), LIST, false),
                (self.legacy_work_prefix(), LIST, false),
            ]),
            Self::Context(context, _) => rows.extend(CONTEXT.iter().map(|(name, kinds)| {
                let is_found_again = CONTEXT_FOUND_AGAIN.contains(name);
                (context.named(name), *kinds, is_found_again)
            })),
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::context::{ContextId, ContextKeys, ContextLayout, NodeKeys};

    fn tables() -> [(JobKeys, KeyTable); 3] {
        let context = |layout| {
            let id = ContextId::new(7).unwrap();
            JobKeys::of_context(ContextKeys::new(id, layout))
        };
        let [db, prefix] = ContextLayout::ALL.map(context);
        [JobKeys::default(), db, prefix].map(|keys| (keys.clone(), keys.table()))
    }

    /// A new key without a row fails here.
    #[test]
    fn each_key_that_is_built_has_a_row() {
        let sources = [
            include_str!("../hero.rs"),
            include_str!("own.rs"),
            include_str!("../context/mod.rs"),
            include_str!("../context/own.rs"),
        ];
        let [_, (_, db), _] = &tables();
        let node = KeyTable::of_node(NodeKeys::PLAIN);
        let hero = JobKeys::default().table();
        let mut found = 0;
        for source in sources {
            let product = source.split("#[cfg(test)]").next().unwrap();
            for call in ["own(", "named(", "format_args!("] {
                for part in product.split(call).skip(1) {
                    let literal = part
                        .trim_start()
                        .trim_start_matches("&format!(")
                        .trim_start();
                    let Some(literal) = literal.strip_prefix('"') else {
                        continue;
                    };
                    let name = literal.split(['"', '{']).next().unwrap();
                    let forms = [
                        (&hero, format!("hero:q:{name}")),
                        (db, format!("mw:{name}")),
                        (db, name.to_owned()),
                        (&node, name.to_owned()),
                    ];
                    let known = |(table, key): &(&KeyTable, String)| table.row(key).is_some();
                    assert!(
                        name == "mw:" || forms.iter().any(known),
                        "{name:?} has no row"
                    );
                    found += 1;
                }
            }
        }
        assert!(found > 80, "{found}");
    }

    #[test]
    fn each_name_of_a_script_has_a_row() {
        for (keys, table) in tables() {
            for (name, key) in keys.script_names() {
                let is_beginning = matches!(name, "JOB" | "PREFIX") && keys.context().is_some();
                assert!(is_beginning || table.row(&key).is_some(), "{name} {key}");
            }
            for (at, row) in table.rows().iter().enumerate() {
                let others = &table.rows()[at + 1..];
                assert!(others.iter().all(|other| other.key != row.key), "{row:?}");
            }
        }
    }

    #[test]
    fn the_longest_name_decides() {
        let [(_, hero), (_, db), (_, prefix)] = tables();
        for (table, key, kinds) in [
            (&hero, "hero:job:j", Some(&["hash", "list"][..])),
            (&hero, "hero:job:actor_queue:osis", Some(LIST)),
            (&hero, "hero:q:lease", Some(SORTED)),
            (&hero, "hero:q:leases", None),
            (&hero, "hero:q:schedule:a", Some(HASH)),
            (&hero, "other:job:j", None),
            (&db, "job:1:1", Some(HASH)),
            (&db, "msg_in:7", Some(LIST)),
            (&db, "mw:deployed", Some(SORTED)),
            (&db, "mw:deployed:f", Some(HASH)),
            (&prefix, "{ctx:7}:queue:osis", Some(LIST)),
            (&prefix, "queue:osis", None),
        ] {
            assert_eq!(table.row(key).map(|row| row.kinds), kinds, "{key}");
        }
        assert_eq!(hero.expected("hero:q:lease", "string"), Some(SORTED));
        assert_eq!(hero.expected("hero:q:lease", "none"), None);
    }

    #[test]
    fn names_with_the_same_end_are_related() {
        let hero = JobKeys::default().table();
        let related = hero.related(["hero:job:j", "hero:q:lease"].into_iter());
        for key in ["hero:q:next:j", "hero:q:log:j", "hero:q:reply:j"] {
            assert!(related.iter().any(|it| it == key), "{related:?}");
        }
    }
}
