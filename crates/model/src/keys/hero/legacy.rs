//! The names that seed 0 replaces: seed 2's queues by worker, and the two under `hero:job:` beside the job
//! hashes. They are lists, the hashes are not; a name that could be taken for a job's is told apart by that.

use super::Hero;
use crate::name::{ActorId, JobId, ScriptType};

impl Hero {
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

    /// Where one old worker is asked to stop jobs: `hero:stop_queue:{worker_id}`.
    #[must_use]
    pub fn legacy_stop_queue(&self, worker: &ActorId) -> String {
        format!("{}:stop_queue:{worker}", self.namespace)
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
