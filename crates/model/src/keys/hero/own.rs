//! Keys of our own beside those of the seeds, all under `hero:q:`, and the names by which the scripts know
//! those that are the same in every call.

use super::Hero;
use crate::name::JobId;

/// A name in a script, and the key or the beginning of keys that it stands for.
pub type ScriptName = (&'static str, String);

impl Hero {
    fn own(&self, name: &str) -> String {
        format!("{}:q:{name}", self.namespace)
    }

    /// The jobs that run, by the time at which their lease ends (a sorted set, milliseconds).
    #[must_use]
    pub fn lease(&self) -> String {
        self.own("lease")
    }

    /// Who listens where, by the time at which the listener counts as gone (a sorted set, milliseconds). A
    /// member is what [`Self::feed_member`] builds.
    #[must_use]
    pub fn feeds(&self) -> String {
        self.own("feeds")
    }

    /// What every feed list begins with; a member of [`Self::feeds`] follows.
    #[must_use]
    pub fn feed_prefix(&self) -> String {
        self.own("feed:")
    }

    /// A listener's entry in [`Self::feeds`]: the worker's incarnation, a blank, the queue.
    #[must_use]
    pub fn feed_member(incarnation: &str, queue: &str) -> String {
        format!("{incarnation} {queue}")
    }

    /// The list into which one worker waits for ids of one queue, so that an id is in a list at every
    /// moment.
    #[must_use]
    pub fn feed(&self, incarnation: &str, queue: &str) -> String {
        format!(
            "{}{}",
            self.feed_prefix(),
            Self::feed_member(incarnation, queue)
        )
    }

    /// What is known of an unfinished batch (`run --each`), by the digest of what was asked for.
    #[must_use]
    pub fn batch(&self, digest: &str) -> String {
        self.own(&format!("batch:{digest}"))
    }

    /// Jobs that wait for their next run, by the time at which it is due (a sorted set, milliseconds).
    #[must_use]
    pub fn delayed(&self) -> String {
        self.own("delayed")
    }

    /// Dead letters: jobs that failed for good, by time (a sorted set, milliseconds).
    #[must_use]
    pub fn dead(&self) -> String {
        self.own("dead")
    }

    /// All other jobs that ended, by time, for retention (a sorted set, milliseconds).
    #[must_use]
    pub fn ended(&self) -> String {
        self.own("ended")
    }

    /// Jobs that somebody has to look at by a certain time (a sorted set, milliseconds).
    #[must_use]
    pub fn watch(&self) -> String {
        self.own("watch")
    }

    /// What happened to jobs (a stream, bounded).
    #[must_use]
    pub fn events(&self) -> String {
        self.own("events")
    }

    /// Limits of queues, and how far migrations are (a hash).
    #[must_use]
    pub fn config(&self) -> String {
        self.own("config")
    }

    /// The presence keys of our workers, by the time at which they end (a sorted set, milliseconds).
    #[must_use]
    pub fn actors(&self) -> String {
        self.own("actors")
    }

    /// What a job prints while it runs (a stream, bounded).
    #[must_use]
    pub fn log(&self, id: &JobId) -> String {
        self.own(&format!("log:{id}"))
    }

    /// The names that scripts use without being given them in each call.
    #[must_use]
    pub fn script_names(&self) -> Vec<ScriptName> {
        vec![
            ("JOB", self.job_prefix()),
            ("WORK", self.work_prefix()),
            ("REPLY", self.reply_prefix()),
            ("OLD_REPLY", self.legacy_reply_prefix()),
            ("OLD_TYPE", self.legacy_type_prefix()),
            ("OLD_WORK", self.legacy_work_prefix()),
            ("LEASES", self.lease()),
            ("FEEDS", self.feeds()),
            ("FEED", self.feed_prefix()),
            ("DELAYED", self.delayed()),
            ("DEAD", self.dead()),
            ("ENDED", self.ended()),
            ("WATCH", self.watch()),
            ("EVENTS", self.events()),
            ("CONFIG", self.config()),
            ("ACTORS", self.actors()),
            ("LOG", self.own("log:")),
            // Per job, the ids that wait for it (a list).
            ("NEXT", self.own("next:")),
            // Ended jobs whose dependants are still to be told (a list).
            ("SETTLE", self.own("settle")),
            // Requests to stop that nobody has taken yet, by the time they were first seen (a sorted set).
            ("STOPS", self.own("stops")),
            // Until when one worker does the duties of all (a string, milliseconds).
            ("TURN", self.own("turn")),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_keys_are_not_jobs() {
        let keys = Hero::default();
        let mut own = vec![
            keys.feed("w", "q"),
            keys.batch("d"),
            keys.log(&"j".parse().unwrap()),
        ];
        own.extend(keys.script_names().into_iter().skip(6).map(|(_, key)| key));
        for key in own {
            assert!(key.starts_with("hero:q:"), "{key}");
            assert!(!key.starts_with(&keys.work_prefix()), "{key}");
            assert!(!key.starts_with(&keys.reply_prefix()), "{key}");
        }
    }

    #[test]
    fn each_name_of_a_script_is_one_and_stands_for_one_key() {
        let names = Hero::default().script_names();
        for (at, (name, key)) in names.iter().enumerate() {
            for (other, others_key) in &names[at + 1..] {
                assert!(name != other && key != others_key, "{name} {other}");
            }
        }
    }
}
