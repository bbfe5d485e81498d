//! Meshwork's own keys beside Hero's, all under `hero:q:`, and the names of fixed keys in scripts.

use super::JobKeys;
use crate::keys::context::Counter;
use crate::name::{BatchId, JobId, ScheduleName};
use crate::worker_request::WorkerRequest;

/// A name in a script, and its key or prefix of keys.
pub type ScriptName = (&'static str, String);

impl JobKeys {
    pub(super) fn own(&self, name: &str) -> String {
        match self {
            Self::Hero(namespace) => format!("{namespace}:q:{name}"),
            Self::Context(context, _) => context.own(name),
        }
    }

    /// Jobs that run, by the end of their lease (a sorted set, milliseconds).
    #[must_use]
    pub fn lease(&self) -> String {
        self.own("lease")
    }

    /// Registered prefetch lists, by the time at which their worker counts as dead (a sorted set, milliseconds).
    /// [`Self::prefetch_member`] builds the members.
    #[must_use]
    pub fn prefetch_registry(&self) -> String {
        self.own("feeds")
    }

    /// Returns the prefix of prefetch lists; a member of [`Self::prefetch_registry`] follows.
    #[must_use]
    pub fn prefetch_prefix(&self) -> String {
        self.own("feed:")
    }

    /// Returns the member of a worker in [`Self::prefetch_registry`]: the worker's incarnation, a blank, the queue.
    #[must_use]
    pub fn prefetch_member(incarnation: &str, queue: &str) -> String {
        format!("{incarnation} {queue}")
    }

    /// Prefetch list of one worker for one queue. Ids move there from the queue, so that every id is in a list at
    /// every moment.
    #[must_use]
    pub fn feed(&self, incarnation: &str, queue: &str) -> String {
        format!(
            "{}{}",
            self.prefetch_prefix(),
            Self::prefetch_member(incarnation, queue)
        )
    }

    /// The latest time that the server's clock has shown, and how far scripts are ahead of it since it went back (a
    /// string: see `lua/lib/base.lua`).
    #[must_use]
    pub fn clock(&self) -> String {
        self.own("clock")
    }

    /// State of unfinished work of `run --each`, by the digest of its arguments.
    #[must_use]
    pub fn each(&self, digest: &str) -> String {
        self.own(&format!("each:{digest}"))
    }

    /// Returns the prefix of the objects that scripts store; a space, a colon and a part of it follow: `object:{id}` (a hash),
    /// `history:{id}` (a list of its versions), and the sets of an index (`type:`, `field:`, `word:`; sorted by creation).
    #[must_use]
    pub fn objects_prefix(&self) -> String {
        self.own("osis:")
    }

    /// Number and size of all objects (a hash).
    #[must_use]
    pub fn objects_usage(&self) -> String {
        self.own("osis_usage")
    }

    /// State of a batch, a hash: `hero:q:batches:{batch}`.
    #[must_use]
    pub fn batch(&self, id: &BatchId) -> String {
        format!("{}{id}", self.batch_prefix())
    }

    /// Returns the prefix of all batches; an id follows.
    #[must_use]
    pub fn batch_prefix(&self) -> String {
        self.own("batches:")
    }

    /// Jobs of a batch that have not ended (a set).
    #[must_use]
    pub fn members(&self, id: &BatchId) -> String {
        self.own(&format!("members:{id}"))
    }

    /// The first jobs of a batch, for its callbacks (a list).
    #[must_use]
    pub fn joined(&self, id: &BatchId) -> String {
        self.own(&format!("joined:{id}"))
    }

    /// Batches that have not ended, by the time of their next check (a sorted set, milliseconds).
    #[must_use]
    pub fn batches_open(&self) -> String {
        self.own("batches_open")
    }

    /// Ended batches, by time of their end, for retention (a sorted set, milliseconds).
    #[must_use]
    pub fn batches_ended(&self) -> String {
        self.own("batches_ended")
    }

    /// Delayed jobs, by due time (a sorted set, milliseconds).
    #[must_use]
    pub fn delayed(&self) -> String {
        self.own("delayed")
    }

    /// Wake-up for the leader, when a job is due earlier than the leader knows (a list).
    #[must_use]
    pub fn due(&self) -> String {
        self.own("due")
    }

    /// Dead letters, by time of failure (a sorted set, milliseconds).
    #[must_use]
    pub fn dead(&self) -> String {
        self.own("dead")
    }

    /// Other ended jobs, by time of their end, for retention (a sorted set, milliseconds).
    #[must_use]
    pub fn ended(&self) -> String {
        self.own("ended")
    }

    /// Jobs with a check at a certain time (a sorted set, milliseconds).
    #[must_use]
    pub fn watch(&self) -> String {
        self.own("watch")
    }

    /// State of the scan of all keys, shared by all workers (a hash). `next` is the cursor; `began` is the start of
    /// this scan, and `whole` that of the last complete one (milliseconds).
    #[must_use]
    pub fn walk(&self) -> String {
        self.own("walk")
    }

    /// Queues that had jobs, by the last time at which a scan found some or a push came to the empty queue (a sorted set,
    /// milliseconds).
    #[must_use]
    pub fn known_lists(&self) -> String {
        self.own("lists")
    }

    /// Jobs that no worker runs and no list contains, by the time at which they count as stale (a sorted set,
    /// milliseconds). A member is `away` or `started`, a blank, the id.
    #[must_use]
    pub fn stale(&self) -> String {
        self.own("stale")
    }

    /// Events of jobs (a stream, bounded).
    #[must_use]
    pub fn events(&self) -> String {
        self.own("events")
    }

    /// Keys of the API (a hash by name).
    #[must_use]
    pub fn api_keys(&self) -> String {
        self.own("api_keys")
    }

    /// Limits of queues, and phases of migrations (a hash).
    #[must_use]
    pub fn config(&self) -> String {
        self.own("config")
    }

    /// Jobs with a slot of a queue without its priority, or of one of its keys ([`Self::of_key`]) (a sorted set by
    /// start, milliseconds).
    #[must_use]
    pub fn slots(&self, of: &str) -> String {
        self.own(&format!("slots:{of}"))
    }

    /// Consumption of the rate of a queue, or of one of its keys (a string).
    #[must_use]
    pub fn rate_state(&self, of: &str) -> String {
        self.own(&format!("rate:{of}"))
    }

    /// Returns the name of a concurrency key in a queue: the queue, a blank, the key.
    #[must_use]
    pub fn of_key(queue: &str, key: &str) -> String {
        format!("{queue} {key}")
    }

    /// Returns a queue without its priority. Settings of a queue apply to all its priorities.
    #[must_use]
    pub fn without_priority(queue: &str) -> &str {
        match queue.rsplit_once(":prio:") {
            Some((before, level)) if level.bytes().all(|c| c.is_ascii_digit()) => before,
            _ => queue,
        }
    }

    /// Registration keys of Meshwork's workers, by the time at which they expire (a sorted set, milliseconds).
    #[must_use]
    pub fn registrations(&self) -> String {
        self.own("actors")
    }

    /// Concurrency keys of fair and limited queues that have a backlog, each after its queue and a blank, by the time
    /// of the next check (a sorted set, milliseconds).
    #[must_use]
    pub fn backlog_index(&self) -> String {
        self.own("held")
    }

    /// Jobs by the time until which they have to start (a sorted set).
    #[must_use]
    pub fn starts(&self) -> String {
        self.own("starts")
    }

    /// Backlog of a member of [`Self::backlog_index`]: jobs in the order of their submission (a sorted set).
    #[must_use]
    pub fn backlog(&self, member: &str) -> String {
        self.own(&format!("backlog:{member}"))
    }

    /// Output of a job while it runs (a stream, bounded).
    #[must_use]
    pub fn log(&self, id: &JobId) -> String {
        self.own(&format!("log:{id}"))
    }

    /// A schedule and its state, a hash.
    #[must_use]
    pub fn schedule(&self, name: &ScheduleName) -> String {
        format!("{}{name}", self.schedule_prefix())
    }

    /// Jobs that were imported from Bananas, in the order of the import (a sorted set).
    #[must_use]
    pub fn taken_over(&self) -> String {
        self.own("bananas")
    }

    /// Returns the prefix of all schedules; a name follows.
    #[must_use]
    pub fn schedule_prefix(&self) -> String {
        self.own("schedule:")
    }

    /// Names of all schedules, by their next slot (a sorted set, milliseconds; `inf`: never).
    #[must_use]
    pub fn schedules(&self) -> String {
        self.own("schedules")
    }

    /// Alert of a queue: its job, and its failures in a row (a hash). The queue has no priority.
    #[must_use]
    pub fn alert(&self, queue: &str) -> String {
        self.own(&format!("alerts:{queue}"))
    }

    /// Ended jobs whose dependents have not been notified (a list): `hero:q:settle`.
    #[must_use]
    pub fn unresolved(&self) -> String {
        self.own("settle")
    }

    /// Request to a running worker, by its name with the incarnation (a string with a time to live).
    #[must_use]
    pub fn worker_request(&self, worker: &str, request: WorkerRequest) -> String {
        self.own(&request.name(worker))
    }

    /// Returns names that scripts use without receiving them in each call. Those of a context have gates instead of
    /// legacy lists. There, `JOB` is empty, because the id of a job is its key.
    #[must_use]
    pub fn script_names(&self) -> Vec<ScriptName> {
        let mut names = self.common_names();
        names.extend(match self {
            Self::Hero(_) => vec![
                ("JOB", self.job_prefix()),
                ("OLD_REPLY", self.legacy_reply_prefix()),
                ("OLD_STOP", self.legacy_stop_prefix()),
                ("OLD_TYPE", self.legacy_type_prefix()),
                ("OLD_WORK", self.legacy_work_prefix()),
            ],
            Self::Context(context, _) => vec![
                ("JOB", String::new()),
                ("OLD_REPLY", self.reply_prefix()),
                ("PREFIX", context.prefix().to_owned()),
                ("GATES", context.gates()),
                ("OPEN", context.open()),
                ("AUDIT", context.audit()),
                ("FLOW", context.flow_prefix()),
                ("FLOWS", context.flow_part_prefix()),
                ("FLOWS_DUE", context.flows_due()),
                ("FLOWS_LIST", context.flows()),
                ("FLOW_QUEUE", context.flow_queue()),
                ("FLOW_ID", context.next_id(Counter::Flow)),
                ("JOB_ID", context.next_id(Counter::Job)),
                ("INDEX", context.index(Counter::Job)),
            ],
        });
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::context::{ContextId, ContextKeys, ContextLayout};

    #[test]
    fn our_own_keys_are_not_jobs() {
        let keys = JobKeys::default();
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
            let keys = JobKeys::of_context(context.clone());
            let names = keys.script_names();
            let key = |name| &names.iter().find(|it| it.0 == name).unwrap().1;
            assert_eq!(key("JOB"), "");
            assert_eq!(*key("LEASES"), context.lease());
            assert_eq!(*key("WORK"), context.work_prefix());
            assert_eq!(*key("QUEUES"), context.work_prefix());
            assert_eq!(*key("EVENTS"), context.events());
            assert_eq!(*key("CONTROL"), context.own("ctl:type:"));
            for (name, key) in &names {
                let own = key.starts_with(&context.own("")) || *key == context.work_prefix();
                let of_catalogue = ["JOB", "PREFIX", "FLOW", "FLOW_QUEUE"];
                assert!(own || of_catalogue.contains(name), "{name} {key}");
            }
        }
    }

    #[test]
    fn the_id_of_a_job_of_a_context_is_its_key() {
        let context = ContextKeys::new(ContextId::new(7).unwrap(), ContextLayout::Prefix);
        let keys = JobKeys::of_context(context);
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
            JobKeys::default().job_of_key("hero:job:a"),
            Some("a".parse().unwrap())
        );
    }

    #[test]
    fn each_name_of_a_script_is_one_and_stands_for_one_key() {
        let names = JobKeys::default().script_names();
        for (at, (name, key)) in names.iter().enumerate() {
            for (other, others_key) in &names[at + 1..] {
                assert!(name != other && key != others_key, "{name} {other}");
            }
        }
    }
}
