//! The names that Hero's protocol replaces: Hero's queues by worker, and the two under `hero:job:` beside the job
//! hashes. They are lists, the hashes are not; a name that could be taken for a job's is told apart by that.

use super::Hero;
use crate::name::{ActorId, JobId, NameError, ScriptType};

/// What stands for the job's worker in the name of a [`LegacyList`].
const WORKER: &str = "{worker_id}";
/// The same by Hero's later word.
const ACTOR: &str = "{actor_id}";

/// One of the old lists, or one per worker: then `{worker_id}` stands in its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LegacyList(String);

/// A list that is none of the old ones.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LegacyListError {
    /// It is called otherwise.
    #[error(
        "`{given}` is none of the old lists: give {namespace}:job:actor_queue:TYPE, \
         {namespace}:job:ACTOR_ID or {namespace}:work_queue:WORKER_ID, or one of the last two with \
         {{worker_id}} for a list per worker"
    )]
    Unknown {
        /// What was given.
        given: String,
        /// The first part of the names that it might have.
        namespace: String,
    },
    /// The part that names the type or the worker is no name.
    #[error(transparent)]
    Name(#[from] NameError),
}

impl LegacyList {
    /// The name, perhaps with `{worker_id}` in it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether each worker has a list of its own.
    #[must_use]
    pub fn is_per_worker(&self) -> bool {
        self.0.contains(WORKER)
    }

    /// The list of one worker.
    #[must_use]
    pub fn of(&self, worker: &ActorId) -> String {
        self.0.replacen(WORKER, worker.as_str(), 1)
    }

    /// A name that is in use already.
    #[must_use]
    pub fn foreign(text: String) -> Self {
        Self(text)
    }
}

impl Hero {
    /// What every [`Self::legacy_type_queue`] begins with.
    #[must_use]
    pub fn legacy_type_prefix(&self) -> String {
        format!("{}:job:actor_queue:", self.namespace)
    }

    /// The old list of that name.
    ///
    /// # Errors
    /// If it is none of the three patterns of this namespace.
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
            namespace: self.namespace.to_string(),
        })?;
        if worker != WORKER {
            worker.parse::<ActorId>()?;
        }
        Ok(LegacyList(text))
    }

    /// The queue of one old actor: `hero:job:{actor_id}`.
    #[must_use]
    pub fn legacy_actor_queue(&self, actor: &ActorId) -> String {
        format!("{}:job:{actor}", self.namespace)
    }

    /// The queue of all old actors of a type: `hero:job:actor_queue:{suffix}`; the suffix is the type.
    #[must_use]
    pub fn legacy_type_queue(&self, suffix: &ScriptType) -> String {
        format!("{}:job:actor_queue:{suffix}", self.namespace)
    }

    /// The queue of one old worker: `hero:work_queue:{worker_id}`.
    #[must_use]
    pub fn legacy_work_queue(&self, worker: &ActorId) -> String {
        format!("{}:work_queue:{worker}", self.namespace)
    }

    /// What every [`Self::legacy_work_queue`] begins with.
    #[must_use]
    pub fn legacy_work_prefix(&self) -> String {
        format!("{}:work_queue:", self.namespace)
    }

    /// What the stop queues of old workers begin with: `hero:stop_queue:`.
    pub(super) fn legacy_stop_prefix(&self) -> String {
        format!("{}:stop_queue:", self.namespace)
    }

    /// Where one old worker is asked to stop jobs: `hero:stop_queue:{worker_id}`.
    #[must_use]
    pub fn legacy_stop_queue(&self, worker: &ActorId) -> String {
        format!("{}{worker}", self.legacy_stop_prefix())
    }

    /// What every [`Self::legacy_reply_queue`] begins with.
    #[must_use]
    pub fn legacy_reply_prefix(&self) -> String {
        format!("{}:reply:", self.namespace)
    }

    /// Where an old client waits for a result: `hero:reply:{job_id}`.
    #[must_use]
    pub fn legacy_reply_queue(&self, id: &JobId) -> String {
        format!("{}:reply:{id}", self.namespace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_lists_are_told_from_others() {
        let keys = Hero::default();
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
        let keys = Hero::new("{hero}".parse().unwrap());
        let list = keys.legacy_list("{hero}:work_queue:{actor_id}").unwrap();
        assert!(list.is_per_worker());
        let worker = "w1".parse().unwrap();
        assert_eq!(list.of(&worker), keys.legacy_work_queue(&worker));
        let shared = keys.legacy_list("{hero}:job:actor_queue:v").unwrap();
        assert!(!shared.is_per_worker());
    }

    #[test]
    fn the_names_of_seed_2() {
        let keys = Hero::default();
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
