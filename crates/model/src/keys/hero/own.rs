//! Keys of our own beside those of the seeds, all under `hero:q:`, and the names by which the scripts know
//! those that are the same in every call.

use super::Hero;
use crate::name::{BatchId, JobId, ScheduleName};

/// A name in a script, and the key or the beginning of keys that it stands for.
pub type ScriptName = (&'static str, String);

impl Hero {
    pub(super) fn own(&self, name: &str) -> String {
        match &self.context {
            Some(context) => context.own(name),
            None => format!("{}:q:{name}", self.namespace),
        }
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

    /// What is known of unfinished work of `run --each`, by the digest of what was asked for.
    #[must_use]
    pub fn each(&self, digest: &str) -> String {
        self.own(&format!("each:{digest}"))
    }

    /// How a batch goes, a hash: `hero:q:batches:{batch}`.
    #[must_use]
    pub fn batch(&self, id: &BatchId) -> String {
        self.own(&format!("batches:{id}"))
    }

    /// The jobs of a batch that are still to end (a set).
    #[must_use]
    pub fn members(&self, id: &BatchId) -> String {
        self.own(&format!("members:{id}"))
    }

    /// Batches that have not ended, by when one looks at them again (a sorted set, milliseconds).
    #[must_use]
    pub fn batches_open(&self) -> String {
        self.own("batches_open")
    }

    /// Batches that have ended, by time, for retention (a sorted set, milliseconds).
    #[must_use]
    pub fn batches_ended(&self) -> String {
        self.own("batches_ended")
    }

    /// Jobs that wait for their next run, by the time at which it is due (a sorted set, milliseconds).
    #[must_use]
    pub fn delayed(&self) -> String {
        self.own("delayed")
    }

    /// Wakes whoever looks after delays, when something is due before what it knew of (a list).
    #[must_use]
    pub fn due(&self) -> String {
        self.own("due")
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

    /// How far the walk through all keys is, for all workers together (a hash): `next`, where it goes on; `began`,
    /// when it began; `whole`, when the last one began that came to its end (milliseconds).
    #[must_use]
    pub fn walk(&self) -> String {
        self.own("walk")
    }

    /// Canonical queues that a walk has met, by when it met them last (a sorted set, milliseconds).
    #[must_use]
    pub fn known_lists(&self) -> String {
        self.own("lists")
    }

    /// Jobs that nobody has and that stand on no list, by when they count as stale (a sorted set, milliseconds). A
    /// member is `away` or `started`, a blank, the id.
    #[must_use]
    pub fn stale(&self) -> String {
        self.own("stale")
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

    /// The jobs of a queue without its priority, or of one of its keys ([`Self::of_key`]), that hold a slot
    /// (a sorted set by start, milliseconds).
    #[must_use]
    pub fn slots(&self, of: &str) -> String {
        self.own(&format!("slots:{of}"))
    }

    /// What the rate of a queue, or of one of its keys, has let start (a string).
    #[must_use]
    pub fn rate_state(&self, of: &str) -> String {
        self.own(&format!("rate:{of}"))
    }

    /// A key of a queue: the queue, a blank, the key.
    #[must_use]
    pub fn of_key(queue: &str, key: &str) -> String {
        format!("{queue} {key}")
    }

    /// A queue without its priority: what is set holds for all its priorities.
    #[must_use]
    pub fn without_priority(queue: &str) -> &str {
        match queue.rsplit_once(":prio:") {
            Some((before, level)) if level.bytes().all(|c| c.is_ascii_digit()) => before,
            _ => queue,
        }
    }

    /// The presence keys of our workers, by the time at which they end (a sorted set, milliseconds).
    #[must_use]
    pub fn actors(&self) -> String {
        self.own("actors")
    }

    /// The keys of fair and limited queues for which jobs are set aside, each after its queue and a blank, by the
    /// time at which one looks again (a sorted set, milliseconds).
    #[must_use]
    pub fn held(&self) -> String {
        self.own("held")
    }

    /// The jobs set aside for a member of [`Self::held`], in the order in which they were submitted (a sorted
    /// set).
    #[must_use]
    pub fn backlog(&self, member: &str) -> String {
        self.own(&format!("backlog:{member}"))
    }

    /// What a job prints while it runs (a stream, bounded).
    #[must_use]
    pub fn log(&self, id: &JobId) -> String {
        self.own(&format!("log:{id}"))
    }

    /// A schedule and how far it is, a hash.
    #[must_use]
    pub fn schedule(&self, name: &ScheduleName) -> String {
        format!("{}{name}", self.schedule_prefix())
    }

    /// Jobs that were taken over from Bananas, in the order in which they were (a sorted set).
    #[must_use]
    pub fn taken_over(&self) -> String {
        self.own("bananas")
    }

    /// What every schedule begins with; its name follows.
    #[must_use]
    pub fn schedule_prefix(&self) -> String {
        self.own("schedule:")
    }

    /// The names of all schedules, by when they are due (a sorted set, milliseconds; `inf`: never).
    #[must_use]
    pub fn schedules(&self) -> String {
        self.own("schedules")
    }

    /// Jobs that have ended and whose dependents wait for the news (a list): `hero:q:settle`.
    #[must_use]
    pub fn settle(&self) -> String {
        self.own("settle")
    }

    /// The names that scripts use without being given them in each call. Those of a context have no old lists, and
    /// gates instead; `JOB` is empty there, since the id of a job is its key.
    #[must_use]
    pub fn script_names(&self) -> Vec<ScriptName> {
        let mut names = self.common_names();
        names.extend(match &self.context {
            None => vec![
                ("JOB", self.job_prefix()),
                ("OLD_REPLY", self.legacy_reply_prefix()),
                ("OLD_STOP", self.legacy_stop_prefix()),
                ("OLD_TYPE", self.legacy_type_prefix()),
                ("OLD_WORK", self.legacy_work_prefix()),
            ],
            Some(context) => vec![
                ("JOB", String::new()),
                ("OLD_REPLY", self.reply_prefix()),
                ("PREFIX", context.prefix().to_owned()),
                ("GATES", context.gates()),
            ],
        });
        names
    }

    fn common_names(&self) -> Vec<ScriptName> {
        vec![
            // What every canonical queue begins with, and the figures of each.
            ("QUEUES", self.queues_prefix()),
            ("STATS", self.queue_stats_prefix()),
            ("WORK", self.work_prefix()),
            ("REPLY", self.reply_prefix()),
            ("CONTROL", self.control_prefix()),
            ("LEASES", self.lease()),
            ("FEEDS", self.feeds()),
            ("FEED", self.feed_prefix()),
            ("DELAYED", self.delayed()),
            ("DEAD", self.dead()),
            ("ENDED", self.ended()),
            ("WATCH", self.watch()),
            ("WALK", self.walk()),
            ("LISTS", self.known_lists()),
            ("STALE", self.stale()),
            ("EVENTS", self.events()),
            ("CONFIG", self.config()),
            ("ACTORS", self.actors()),
            ("LOG", self.own("log:")),
            // Per job, the ids that wait for it (a list).
            ("NEXT", self.own("next:")),
            // Batches: how each goes, its jobs that are still to end, and all batches.
            ("BATCHES", self.own("batches:")),
            ("MEMBERS", self.own("members:")),
            ("BATCHES_OPEN", self.batches_open()),
            ("BATCHES_ENDED", self.batches_ended()),
            // Ended jobs whose dependants are still to be told (a list).
            ("SETTLE", self.settle()),
            // Requests to stop that nobody has taken yet, by the time they were first seen (a sorted set).
            ("STOPS", self.own("stops")),
            // Jobs that hold a slot, of a queue, or of a queue, a blank and a key (sorted sets by start).
            ("SLOTS", self.own("slots:")),
            // What a rate has let start, of the same (strings).
            ("RATES", self.own("rate:")),
            // Jobs set aside for their key's sake, per list, a blank and key (sorted sets by submission).
            ("BACKLOG", self.own("backlog:")),
            // Those of a key that stand in a fair queue, per the same (sorted sets).
            ("HEADS", self.own("heads:")),
            // The same names of which something is set aside, by when one looks again (a sorted set).
            ("HELD", self.held()),
            // Which job has a unique name (strings).
            ("UNIQUE", self.own("unique:")),
            // Counts jobs with a key (a string).
            ("SEQ", self.own("seq")),
            // Wakes whoever looks after delays (a list).
            ("DUE", self.due()),
            ("SCHEDULE", self.schedule_prefix()),
            ("SCHEDULES", self.schedules()),
            ("TAKEN", self.taken_over()),
            // Until when one worker does the duties of all (a string, milliseconds).
            ("TURN", self.own("turn")),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::context::{ContextId, ContextKeys, ContextLayout};

    #[test]
    fn our_own_keys_are_not_jobs() {
        let keys = Hero::default();
        let mut own = vec![
            keys.feed("w", "q"),
            keys.each("d"),
            keys.log(&"j".parse().unwrap()),
        ];
        own.extend(keys.common_names().into_iter().skip(4).map(|(_, key)| key));
        for key in own {
            assert!(key.starts_with("hero:q:"), "{key}");
            assert!(!key.starts_with(&keys.work_prefix()), "{key}");
            assert!(!key.starts_with(&keys.reply_prefix()), "{key}");
        }
    }

    #[test]
    fn the_scripts_find_the_names_of_a_context() {
        for layout in ContextLayout::ALL {
            let context = ContextKeys::new(ContextId::new(7).unwrap(), layout);
            let keys = Hero::of_context(context.clone());
            let names = keys.script_names();
            let key = |name| &names.iter().find(|it| it.0 == name).unwrap().1;
            assert_eq!(key("JOB"), "");
            assert_eq!(*key("LEASES"), context.lease());
            assert_eq!(*key("WORK"), context.work_prefix());
            assert_eq!(*key("QUEUES"), context.work_prefix());
            assert_eq!(*key("EVENTS"), context.events());
            assert_eq!(
                *key("CONTROL"),
                format!("{}ctl:type:", context.own_prefix())
            );
            for (name, key) in &names {
                let own = key.starts_with(&context.own_prefix()) || *key == context.work_prefix();
                assert!(own || ["JOB", "PREFIX"].contains(name), "{name} {key}");
            }
        }
    }

    #[test]
    fn the_id_of_a_job_of_a_context_is_its_key() {
        let context = ContextKeys::new(ContextId::new(7).unwrap(), ContextLayout::Prefix);
        let keys = Hero::of_context(context);
        let id = JobId::foreign("{ctx:7}:job:12:2001".to_owned());
        assert_eq!(keys.job_hash_key(&id), id.as_str());
        assert_eq!(keys.job_of_key(id.as_str()), Some(id.clone()));
        assert_eq!(
            keys.reply_queue_key(&id),
            "{ctx:7}:mw:reply:{ctx:7}:job:12:2001"
        );
        assert_eq!(
            keys.queue_of_stats("{ctx:7}:mw:stats:v").as_deref(),
            Some("{ctx:7}:queue:v")
        );
        let osis = "osis".parse().unwrap();
        assert_eq!(keys.work_queue_type(&osis), "{ctx:7}:queue:osis");
        assert_eq!(
            Hero::default().job_of_key("hero:job:a"),
            Some("a".parse().unwrap())
        );
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
