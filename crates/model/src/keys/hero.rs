//! Keys of Hero (`hero:…`), and Meshwork's own keys beside them.
//!
//! Hero's names of helpers are kept (`job_hash_key`, `reply_queue_key`, `work_queue_type` …). None of Meshwork's own
//! keys (`own`) begins with `hero:job:`, because legacy clients list jobs by that prefix. `legacy` has the three
//! patterns that Hero's protocol replaces. The same engine serves contexts, whose names [`ContextKeys`] builds:
//! [`JobKeys::of_context`].

mod legacy;
mod own;
mod parse;
mod rows;

use super::context::{ContextKeys, ContextLayout};
use super::suffix;
use crate::name::{Group, Instance, JobId, Namespace, ScriptType};
use crate::route::Priority;

pub use super::suffix::{NoWorkQueue, QueueParts};
pub use legacy::{LegacyList, LegacyListError};
pub use own::ScriptName;

/// Builds the keys of jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobKeys {
    /// Keys of Hero, under a namespace.
    Hero(Namespace),
    /// Keys of a context, and their name for people.
    Context(ContextKeys, Namespace),
}

impl Default for JobKeys {
    fn default() -> Self {
        Self::new(Namespace::default())
    }
}

impl JobKeys {
    /// Returns the keys under `namespace` (Hero's is `hero`).
    #[must_use]
    pub fn new(namespace: Namespace) -> Self {
        Self::Hero(namespace)
    }

    /// Returns the keys of a context, in its layout. There, the id of a job is its key.
    #[must_use]
    pub fn of_context(keys: ContextKeys) -> Self {
        let namespace = Namespace::internal(match keys.layout() {
            ContextLayout::Db => format!("ctx-{}", keys.context()),
            ContextLayout::Prefix => format!("{{ctx:{}}}", keys.context()),
        });
        Self::Context(keys, namespace)
    }

    /// Returns the keys of the context; `None` for a namespace of Hero.
    #[must_use]
    pub fn context(&self) -> Option<&ContextKeys> {
        match self {
            Self::Hero(_) => None,
            Self::Context(context, _) => Some(context),
        }
    }

    /// Returns the prefix of every key: `hero:`; in a context, empty or `{ctx:7}:`.
    #[must_use]
    pub fn prefix(&self) -> String {
        match self {
            Self::Hero(namespace) => format!("{namespace}:"),
            Self::Context(context, _) => context.prefix().to_owned(),
        }
    }

    /// Returns the first part of every key; in a context, a name for people with the hash tag of its keys.
    #[must_use]
    pub fn namespace(&self) -> &Namespace {
        match self {
            Self::Hero(namespace) | Self::Context(_, namespace) => namespace,
        }
    }

    /// Returns the prefix of all jobs' hashes: `hero:job:`.
    #[must_use]
    pub fn job_prefix(&self) -> String {
        format!("{}job:", self.prefix())
    }

    /// Record of a job, a hash: `hero:job:{job_id}`; in a context the id itself.
    #[must_use]
    pub fn job_hash_key(&self, id: &JobId) -> String {
        match self {
            Self::Hero(_) => format!("{}{id}", self.job_prefix()),
            Self::Context(..) => id.to_string(),
        }
    }

    /// Returns the job whose record has this key; `None` for other keys.
    #[must_use]
    pub fn job_of_key(&self, key: &str) -> Option<JobId> {
        let id = key.strip_prefix(&self.job_prefix())?;
        let id = match self {
            Self::Hero(_) => id,
            Self::Context(..) => key,
        };
        Some(JobId::foreign(id.to_owned()))
    }

    /// Returns the prefix of all reply lists: `hero:q:reply:`.
    #[must_use]
    pub fn reply_prefix(&self) -> String {
        self.own("reply:")
    }

    /// Reply list of a job: `hero:q:reply:{job_id}`.
    #[must_use]
    pub fn reply_queue_key(&self, id: &JobId) -> String {
        format!("{}{id}", self.reply_prefix())
    }

    /// Returns the prefix of all queues: `hero:q:work:type:`.
    #[must_use]
    pub fn work_prefix(&self) -> String {
        match self {
            Self::Hero(_) => self.own("work:type:"),
            Self::Context(context, _) => context.work_prefix(),
        }
    }

    /// Returns the name of a queue for people: its key without the prefix of all queues. A legacy list has no other name
    /// than its key. [`Self::parse_work_queue`] reads both forms.
    #[must_use]
    pub fn queue_name<'a>(&self, queue: &'a str) -> &'a str {
        queue.strip_prefix(&self.work_prefix()).unwrap_or(queue)
    }

    /// The queue that all workers of a type share: `hero:q:work:type:{script_type}`.
    #[must_use]
    pub fn work_queue_type(&self, script_type: &ScriptType) -> String {
        format!("{}{script_type}", self.work_prefix())
    }

    /// The queue of one group: `hero:q:work:type:{script_type}:group:{group}`.
    #[must_use]
    pub fn work_queue_group(&self, script_type: &ScriptType, group: &Group) -> String {
        let suffix = suffix::of_group(script_type, group);
        format!("{}{suffix}", self.work_prefix())
    }

    /// The queue of one worker: `hero:q:work:type:{script_type}:group:{group}:inst:{instance}`.
    #[must_use]
    pub fn work_queue_instance(
        &self,
        script_type: &ScriptType,
        group: &Group,
        instance: &Instance,
    ) -> String {
        let suffix = suffix::of_instance(script_type, group, instance);
        format!("{}{suffix}", self.work_prefix())
    }

    /// Returns the list of one of the three kinds of queue for one priority: `…:prio:{level}`.
    #[must_use]
    pub fn work_queue_priority(queue: &str, priority: Priority) -> String {
        suffix::with_priority(queue, priority)
    }

    /// Returns whether a list is a queue, or a legacy list, of this namespace. Others write names of lists into records
    /// too; scripts apply the same rule (`lua/lib/layout_hero/own_queues.lua`).
    #[must_use]
    pub fn is_queue(&self, list: &str) -> bool {
        let is_legacy = || {
            let legacy = [self.legacy_work_prefix(), self.job_prefix()];
            legacy.iter().any(|prefix| list.starts_with(prefix))
        };
        list.starts_with(&self.queues_prefix()) || (matches!(self, Self::Hero(_)) && is_legacy())
    }

    /// Returns the prefix of the control queues of types: `hero:q:ctl:type:`.
    pub(super) fn control_prefix(&self) -> String {
        self.own("ctl:type:")
    }

    /// Requests to the workers of a type: `hero:q:ctl:type:{script_type}`.
    #[must_use]
    pub fn control_queue_type(&self, script_type: &ScriptType) -> String {
        format!("{}{script_type}", self.control_prefix())
    }

    /// Requests to one worker: `hero:q:ctl:type:{script_type}:group:{group}:inst:{instance}`.
    #[must_use]
    pub fn control_queue_instance(
        &self,
        script_type: &ScriptType,
        group: &Group,
        instance: &Instance,
    ) -> String {
        let of_type = self.control_queue_type(script_type);
        format!("{of_type}:group:{group}:inst:{instance}")
    }

    /// Returns the prefix of all registrations: `hero:meta:actor:inst:`.
    #[must_use]
    pub fn presence_prefix(&self) -> String {
        match self {
            Self::Hero(namespace) => format!("{namespace}:meta:actor:inst:"),
            Self::Context(..) => self.own("actor:"),
        }
    }

    /// Registration of a live worker, a string with a time to live:
    /// `hero:meta:actor:inst:{script_type}:{group}:{instance}`.
    #[must_use]
    pub fn presence_key(
        &self,
        script_type: &ScriptType,
        group: &Group,
        instance: &Instance,
    ) -> String {
        format!("{}{script_type}:{group}:{instance}", self.presence_prefix())
    }

    /// Returns the prefix of all hashes with metrics of queues: `hero:meta:queue:stats:`.
    #[must_use]
    pub fn queue_stats_prefix(&self) -> String {
        match self {
            Self::Hero(namespace) => format!("{namespace}:meta:queue:stats:"),
            Self::Context(..) => self.own("stats:"),
        }
    }

    /// Returns the queue of a key of [`Self::queue_stats_key`]; `None` for other keys.
    #[must_use]
    pub fn queue_of_stats(&self, key: &str) -> Option<String> {
        let short = key.strip_prefix(&self.queue_stats_prefix())?;
        // Only names of queues are shortened.
        let is_short = matches!(self, Self::Context(..)) || short.starts_with("type:");
        Some(if is_short {
            format!("{}{short}", self.queues_prefix())
        } else {
            short.to_owned()
        })
    }

    /// Metrics of a queue, for dashboards: `hero:meta:queue:stats:{queue}`, with the part of the queue's name after
    /// `hero:q:work:`.
    #[must_use]
    pub fn queue_stats_key(&self, queue: &str) -> String {
        let short = queue.strip_prefix(&self.queues_prefix()).unwrap_or(queue);
        format!("{}{short}", self.queue_stats_prefix())
    }

    /// History of a list: its counters at each hour (a sorted set by hour).
    #[must_use]
    pub fn history_key(&self, queue: &str) -> String {
        let short = queue.strip_prefix(&self.queues_prefix()).unwrap_or(queue);
        self.own(&format!("history:{short}"))
    }

    /// Returns the prefix of all canonical queues.
    pub(super) fn queues_prefix(&self) -> String {
        match self {
            Self::Hero(_) => self.own("work:"),
            Self::Context(context, _) => context.work_prefix(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word<T: std::str::FromStr<Err = crate::name::NameError>>(text: &str) -> T {
        text.parse().unwrap()
    }

    #[test]
    fn the_examples_of_seed_0() {
        let keys = JobKeys::default();
        let osis = word::<ScriptType>("osis");
        let (sal, io) = (word::<ScriptType>("sal"), word::<Group>("io"));
        let id = word::<JobId>("job_id");
        assert_eq!(keys.job_hash_key(&id), "hero:job:job_id");
        assert_eq!(keys.reply_queue_key(&id), "hero:q:reply:job_id");
        for name in ScriptType::KNOWN {
            let key = keys.work_queue_type(&word(name));
            assert_eq!(key, format!("hero:q:work:type:{name}"));
        }
        let group = Group::default();
        assert_eq!(
            keys.work_queue_group(&osis, &group),
            "hero:q:work:type:osis:group:default"
        );
        assert_eq!(
            keys.work_queue_group(&sal, &io),
            "hero:q:work:type:sal:group:io"
        );
        let one = word::<Instance>("1");
        assert_eq!(
            keys.work_queue_instance(&osis, &group, &one),
            "hero:q:work:type:osis:group:default:inst:1"
        );
        assert_eq!(
            keys.work_queue_instance(&sal, &io, &word("3")),
            "hero:q:work:type:sal:group:io:inst:3"
        );
    }

    #[test]
    fn the_figures_of_a_queue_tell_which_it_is() {
        let keys = JobKeys::default();
        for queue in ["hero:q:work:type:osis:prio:0", "hero:work_queue:w", "x"] {
            let key = keys.queue_stats_key(queue);
            assert_eq!(keys.queue_of_stats(&key).as_deref(), Some(queue));
        }
        assert_eq!(
            keys.queue_stats_key("hero:q:work:type:a"),
            "hero:meta:queue:stats:type:a"
        );
        assert_eq!(keys.queue_of_stats("hero:meta:actor:inst:a"), None);
    }

    #[test]
    fn lists_of_others_are_no_queues() {
        let hero = JobKeys::default();
        for list in [
            "hero:q:work:type:osis:prio:0",
            "hero:work_queue:w",
            "hero:job:actor_queue:osis",
        ] {
            assert!(hero.is_queue(list), "{list}");
        }
        let context = |layout| {
            let id = crate::keys::context::ContextId::new(7).unwrap();
            JobKeys::of_context(ContextKeys::new(id, layout))
        };
        let (db, prefix) = (context(ContextLayout::Db), context(ContextLayout::Prefix));
        assert!(db.is_queue("queue:osis") && prefix.is_queue("{ctx:7}:queue:osis"));
        for list in ["hero:q:lease", "{ctx:8}:queue:osis", "msg_out", "job:1:1"] {
            assert!(![&hero, &db, &prefix].iter().any(|keys| keys.is_queue(list)));
        }
    }

    #[test]
    fn our_own_keys_are_not_jobs() {
        let keys = JobKeys::default();
        for key in [
            keys.lease(),
            keys.prefetch_registry(),
            keys.feed("w", "q"),
            keys.each("d"),
        ] {
            assert!(!key.starts_with(&keys.job_prefix()), "{key}");
            assert!(!key.starts_with(&keys.work_prefix()), "{key}");
        }
    }
}
