//! The names of seeds 0 and 2 (`hero:…`), and those of our own beside them.
//!
//! The seeds' helper names are kept (`job_hash_key`, `reply_queue_key`, `work_queue_type` …). None of our
//! own keys begins with `hero:job:`, since old clients list jobs by that prefix.

use crate::name::{Group, Instance, JobId, Namespace, ScriptType};

/// Builds the keys of one namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hero {
    namespace: Namespace,
}

impl Hero {
    /// Keys under `namespace` (the seeds' is `hero`).
    #[must_use]
    pub fn new(namespace: Namespace) -> Self {
        Self { namespace }
    }

    /// The first part of every key.
    #[must_use]
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// What every job hash begins with: `hero:job:`.
    #[must_use]
    pub fn job_prefix(&self) -> String {
        format!("{}:job:", self.namespace)
    }

    /// The job's record, a hash: `hero:job:{job_id}`.
    #[must_use]
    pub fn job_hash_key(&self, id: &JobId) -> String {
        format!("{}:job:{id}", self.namespace)
    }

    /// What every reply list begins with: `hero:q:reply:`.
    #[must_use]
    pub fn reply_prefix(&self) -> String {
        format!("{}:q:reply:", self.namespace)
    }

    /// The list on which a result is announced: `hero:q:reply:{job_id}`.
    #[must_use]
    pub fn reply_queue_key(&self, id: &JobId) -> String {
        format!("{}:q:reply:{id}", self.namespace)
    }

    /// What every work queue begins with: `hero:q:work:type:`.
    #[must_use]
    pub fn work_prefix(&self) -> String {
        format!("{}:q:work:type:", self.namespace)
    }

    /// The queue that all workers of a type share: `hero:q:work:type:{script_type}`.
    #[must_use]
    pub fn work_queue_type(&self, script_type: &ScriptType) -> String {
        format!("{}:q:work:type:{script_type}", self.namespace)
    }

    /// The queue of one group: `hero:q:work:type:{script_type}:group:{group}`.
    #[must_use]
    pub fn work_queue_group(&self, script_type: &ScriptType, group: &Group) -> String {
        format!("{}:group:{group}", self.work_queue_type(script_type))
    }

    /// The queue of one worker: `hero:q:work:type:{script_type}:group:{group}:inst:{instance}`.
    #[must_use]
    pub fn work_queue_instance(
        &self,
        script_type: &ScriptType,
        group: &Group,
        instance: &Instance,
    ) -> String {
        format!(
            "{}:inst:{instance}",
            self.work_queue_group(script_type, group)
        )
    }

    /// Ours: the jobs that run, by the time at which their lease ends (a sorted set, milliseconds).
    #[must_use]
    pub fn lease(&self) -> String {
        format!("{}:q:lease", self.namespace)
    }

    /// Ours: who listens where, by the time at which the listener counts as gone (a sorted set,
    /// milliseconds). A member is what [`Self::feed_member`] builds.
    #[must_use]
    pub fn feeds(&self) -> String {
        format!("{}:q:feeds", self.namespace)
    }

    /// Ours: what every feed list begins with; a member of [`Self::feeds`] follows.
    #[must_use]
    pub fn feed_prefix(&self) -> String {
        format!("{}:q:feed:", self.namespace)
    }

    /// Ours: a listener's entry in [`Self::feeds`]: the worker's incarnation, a blank, the queue.
    #[must_use]
    pub fn feed_member(incarnation: &str, queue: &str) -> String {
        format!("{incarnation} {queue}")
    }

    /// Ours: the list into which one worker waits for ids of one queue, so that an id is in a list at every
    /// moment.
    #[must_use]
    pub fn feed(&self, incarnation: &str, queue: &str) -> String {
        format!(
            "{}{}",
            self.feed_prefix(),
            Self::feed_member(incarnation, queue)
        )
    }

    /// Ours: what is known of an unfinished batch (`run --each`), by the digest of what was asked for.
    #[must_use]
    pub fn batch(&self, digest: &str) -> String {
        format!("{}:q:batch:{digest}", self.namespace)
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
        let keys = Hero::default();
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
    fn our_own_keys_are_not_jobs() {
        let keys = Hero::default();
        for key in [
            keys.lease(),
            keys.feeds(),
            keys.feed("w", "q"),
            keys.batch("d"),
        ] {
            assert!(!key.starts_with(&keys.job_prefix()), "{key}");
            assert!(!key.starts_with(&keys.work_prefix()), "{key}");
        }
    }
}
