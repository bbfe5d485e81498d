//! Legacy keys, which Hero's protocol replaces: queues by worker, and two names under `hero:job:` beside the jobs'
//! hashes. These keys are lists, which tells them from hashes of jobs with similar names.

use super::JobKeys;
use crate::name::{ActorId, JobId, NameError, ScriptType};

/// Placeholder of the worker in the name of a [`LegacyList`].
const WORKER: &str = "{worker_id}";
/// The same placeholder by Hero's later word.
const ACTOR: &str = "{actor_id}";

/// A legacy list, or a pattern with `{worker_id}` for a list per worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LegacyList(String);

/// The reason why a text is not a legacy list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LegacyListError {
    /// The name has another form.
    #[error(
        "`{given}` is none of the old lists: give {namespace}:job:actor_queue:TYPE, \
         {namespace}:job:ACTOR_ID or {namespace}:work_queue:WORKER_ID, or one of the last two with \
         {{worker_id}} for a list per worker"
    )]
    Unknown {
        /// The given text.
        given: String,
        /// First part of valid names.
        namespace: String,
    },
    /// The name of the type or worker is not valid.
    #[error(transparent)]
    Name(#[from] NameError),
}

impl LegacyList {
    /// Returns the name, with `{worker_id}` in a pattern.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether each worker has a list of its own.
    #[must_use]
    pub fn is_per_worker(&self) -> bool {
        self.0.contains(WORKER)
    }

    /// Returns the list of one worker.
    #[must_use]
    pub fn of(&self, worker: &ActorId) -> String {
        self.0.replacen(WORKER, worker.as_str(), 1)
    }

    /// Returns a list with a name that is in use already, unchecked.
    #[must_use]
    pub fn foreign(text: String) -> Self {
        Self(text)
    }
}

impl JobKeys {
    /// Returns the prefix of every [`Self::legacy_type_queue`].
    #[must_use]
    pub fn legacy_type_prefix(&self) -> String {
        format!("{}:job:actor_queue:", self.namespace())
    }

    /// Parses the name of a legacy list.
    ///
    /// # Errors
    /// The name has none of the three patterns of this namespace.
    pub fn legacy_list(&self, text: &str) -> Result<LegacyList, LegacyListError> {
        let text = text.replacen(ACTOR, WORKER, 1);
        if let Some(suffix) = text.strip_prefix(&self.legacy_type_prefix()) {
            suffix.parse::<ScriptType>()?;
            return Ok(LegacyList(text));
        }
        let of_worker = text
            .strip_prefix(&self.legacy_work_prefix())
            .or_else(|| text.strip_prefix(&self.job_prefix()));
        let worker = of_worker.ok_or_else(|| LegacyListError::Unknown {
            given: text.clone(),
            namespace: self.namespace().to_string(),
        })?;
        if worker != WORKER {
            worker.parse::<ActorId>()?;
        }
        Ok(LegacyList(text))
    }

    /// Queue of one legacy actor: `hero:job:{actor_id}`.
    #[must_use]
    pub fn legacy_actor_queue(&self, actor: &ActorId) -> String {
        format!("{}:job:{actor}", self.namespace())
    }

    /// Queue of all legacy actors of a type: `hero:job:actor_queue:{suffix}`; the suffix is the type.
    #[must_use]
    pub fn legacy_type_queue(&self, suffix: &ScriptType) -> String {
        format!("{}:job:actor_queue:{suffix}", self.namespace())
    }

    /// Queue of one legacy worker: `hero:work_queue:{worker_id}`.
    #[must_use]
    pub fn legacy_work_queue(&self, worker: &ActorId) -> String {
        format!("{}:work_queue:{worker}", self.namespace())
    }

    /// Returns the prefix of every [`Self::legacy_work_queue`].
    #[must_use]
    pub fn legacy_work_prefix(&self) -> String {
        format!("{}:work_queue:", self.namespace())
    }

    /// Returns the prefix of legacy workers' stop queues: `hero:stop_queue:`.
    pub(super) fn legacy_stop_prefix(&self) -> String {
        format!("{}:stop_queue:", self.namespace())
    }

    /// List of requests to one legacy worker to stop jobs: `hero:stop_queue:{worker_id}`.
    #[must_use]
    pub fn legacy_stop_queue(&self, worker: &ActorId) -> String {
        format!("{}{worker}", self.legacy_stop_prefix())
    }

    /// Returns the prefix of every [`Self::legacy_reply_queue`].
    #[must_use]
    pub fn legacy_reply_prefix(&self) -> String {
        format!("{}:reply:", self.namespace())
    }

    /// List on which a legacy client waits for a result: `hero:reply:{job_id}`.
    #[must_use]
    pub fn legacy_reply_queue(&self, id: &JobId) -> String {
        format!("{}:reply:{id}", self.namespace())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_lists_are_told_from_others() {
        let keys = JobKeys::default();
        for good in [
            "hero:job:actor_queue:osis",
            "hero:job:osis_runner_1",
            "hero:work_queue:osis-runner-1",
            "hero:work_queue:{worker_id}",
            "hero:job:{worker_id}",
        ] {
            assert_eq!(keys.legacy_list(good).unwrap().as_str(), good);
        }
        for bad in [
            "",
            "osis",
            "hero:q:work:type:osis",
            "hero:job:",
            "hero:job:a:b",
            "hero:job:actor_queue:{worker_id}",
            "hero:work_queue:x{worker_id}",
            "zero:work_queue:w",
        ] {
            assert!(keys.legacy_list(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_list_per_worker_is_filled_in() {
        let keys = JobKeys::new("{hero}".parse().unwrap());
        let list = keys.legacy_list("{hero}:work_queue:{actor_id}").unwrap();
        assert!(list.is_per_worker());
        let worker = "w1".parse().unwrap();
        assert_eq!(list.of(&worker), keys.legacy_work_queue(&worker));
        let shared = keys.legacy_list("{hero}:job:actor_queue:v").unwrap();
        assert!(!shared.is_per_worker());
    }

    #[test]
    fn the_names_of_seed_2() {
        let keys = JobKeys::default();
        let actor: ActorId = "osis_runner_1".parse().unwrap();
        let id: JobId = "j1".parse().unwrap();
        assert_eq!(keys.legacy_actor_queue(&actor), "hero:job:osis_runner_1");
        assert_eq!(
            keys.legacy_work_queue(&actor),
            "hero:work_queue:osis_runner_1"
        );
        assert_eq!(
            keys.legacy_stop_queue(&actor),
            "hero:stop_queue:osis_runner_1"
        );
        assert_eq!(keys.legacy_reply_queue(&id), "hero:reply:j1");
        for suffix in ["osis", "sal", "v", "python"] {
            let key = keys.legacy_type_queue(&suffix.parse().unwrap());
            assert_eq!(key, format!("hero:job:actor_queue:{suffix}"));
        }
    }
}
