//! Keys of our own in a context, all under `mw:`, and the names by which the scripts know those that are the same in
//! every call.

use super::ContextKeys;
use crate::keys::hero::{Hero, ScriptName};

/// What the objects of a context are numbered by, one counter for each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Counter {
    /// Flows.
    Flow,
    /// Jobs, of all callers.
    Job,
    /// Messages, of all callers.
    Message,
    /// Runners.
    Runner,
}

impl Counter {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Flow, Self::Job, Self::Message, Self::Runner];

    /// The word in the key.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Flow => "flow",
            Self::Job => "job",
            Self::Message => "message",
            Self::Runner => "runner",
        }
    }
}

impl ContextKeys {
    /// What every key of our own begins with: `mw:`.
    #[must_use]
    pub fn own_prefix(&self) -> String {
        self.named("mw:")
    }

    fn own(&self, name: &str) -> String {
        self.named(format_args!("mw:{name}"))
    }

    /// The number that was given last to an object of a kind (a string): `mw:id:{kind}`.
    #[must_use]
    pub fn next_id(&self, counter: Counter) -> String {
        self.own(&format!("id:{}", counter.as_str()))
    }

    /// Every change to the context (a stream, bounded): `mw:audit`.
    #[must_use]
    pub fn audit(&self) -> String {
        self.own("audit")
    }

    /// The jobs that run, by the time at which their lease ends (a sorted set, milliseconds): `mw:lease`.
    #[must_use]
    pub fn lease(&self) -> String {
        self.own("lease")
    }

    /// Workers that wait on a queue, by when they count as gone (a sorted set, milliseconds): `mw:feeds`.
    #[must_use]
    pub fn feeds(&self) -> String {
        self.own("feeds")
    }

    /// What every feed list begins with; a member of [`Self::feeds`] follows: `mw:feed:`.
    #[must_use]
    pub fn feed_prefix(&self) -> String {
        self.own("feed:")
    }

    /// Jobs that wait for their next run, by when it is due (a sorted set, milliseconds): `mw:delayed`.
    #[must_use]
    pub fn delayed(&self) -> String {
        self.own("delayed")
    }

    /// Dead letters: jobs that failed for good, by time (a sorted set, milliseconds): `mw:dead`.
    #[must_use]
    pub fn dead(&self) -> String {
        self.own("dead")
    }

    /// All other jobs that ended, by time, for retention (a sorted set, milliseconds): `mw:ended`.
    #[must_use]
    pub fn ended(&self) -> String {
        self.own("ended")
    }

    /// Jobs that somebody has to look at by a certain time (a sorted set, milliseconds): `mw:watch`.
    #[must_use]
    pub fn watch(&self) -> String {
        self.own("watch")
    }

    /// What happened to jobs (a stream, bounded): `mw:events`.
    #[must_use]
    pub fn events(&self) -> String {
        self.own("events")
    }

    /// Limits of queues and settings of the context (a hash): `mw:config`.
    #[must_use]
    pub fn config(&self) -> String {
        self.own("config")
    }

    /// The names that scripts use without being given them in each call: those of [`Hero::script_names`], but for the
    /// old lists, which a context never had. `JOB` is the prefix of the layout's ids, so it is empty: the id of a job
    /// is its key.
    #[must_use]
    pub fn script_names(&self) -> Vec<ScriptName> {
        let hero = Hero::default();
        let (begins, jobs) = (hero.own(""), hero.job_prefix());
        let translated = |(name, key): ScriptName| {
            let key = match name {
                "JOB" => String::new(),
                "QUEUES" | "WORK" => self.work_prefix(),
                "STATS" => self.own("stats:"),
                _ if name.starts_with("OLD_") || key.starts_with(&jobs) => return None,
                _ => self.own(key.strip_prefix(&begins)?),
            };
            Some((name, key))
        };
        let names = hero.script_names().into_iter();
        names.filter_map(translated).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::context::{ContextId, ContextLayout};

    fn keys(layout: ContextLayout) -> ContextKeys {
        ContextKeys::new(ContextId::new(7).unwrap(), layout)
    }

    #[test]
    fn our_own_keys_stand_after_the_prefix() {
        let db = keys(ContextLayout::Db);
        let names = [
            (db.lease(), "mw:lease"),
            (db.feeds(), "mw:feeds"),
            (db.feed_prefix(), "mw:feed:"),
            (db.delayed(), "mw:delayed"),
            (db.dead(), "mw:dead"),
            (db.ended(), "mw:ended"),
            (db.watch(), "mw:watch"),
            (db.events(), "mw:events"),
            (db.audit(), "mw:audit"),
            (db.config(), "mw:config"),
            (db.next_id(Counter::Job), "mw:id:job"),
        ];
        for (key, expected) in names {
            assert_eq!(key, expected);
        }
        let prefix = keys(ContextLayout::Prefix);
        assert_eq!(prefix.next_id(Counter::Flow), "{ctx:7}:mw:id:flow");
    }

    #[test]
    fn the_scripts_find_every_name_but_those_of_old_lists() {
        for layout in ContextLayout::ALL {
            let keys = keys(layout);
            let names = keys.script_names();
            let hero = Hero::default().script_names();
            let missing: Vec<_> = hero
                .iter()
                .map(|(name, _)| *name)
                .filter(|name| names.iter().all(|(other, _)| other != name))
                .collect();
            assert_eq!(missing, ["OLD_REPLY", "OLD_STOP", "OLD_TYPE", "OLD_WORK"]);
            let key = |name| &names.iter().find(|it| it.0 == name).unwrap().1;
            assert_eq!(key("JOB"), "");
            assert_eq!(*key("LEASES"), keys.lease());
            assert_eq!(*key("WORK"), keys.work_prefix());
            assert_eq!(*key("QUEUES"), keys.work_prefix());
            assert_eq!(*key("EVENTS"), keys.events());
            assert_eq!(*key("CONTROL"), format!("{}ctl:type:", keys.own_prefix()));
        }
    }

    #[test]
    fn no_name_of_a_script_is_the_beginning_of_an_object() {
        let keys = keys(ContextLayout::Prefix);
        for (name, key) in keys.script_names() {
            let own = key.starts_with(&keys.own_prefix()) || key == keys.work_prefix();
            assert!(own || name == "JOB", "{name} {key}");
        }
    }
}
