//! cancel: stop a job.

use meshwork_model::job::Job;
use meshwork_model::name::{ActorId, ScriptType};

use super::word;
use crate::script::Verb;
use crate::{Broker, Error};

/// What became of a job that was to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    /// It ended in error.
    Cancelled,
    /// A worker runs it, and is told; when it has stopped the run, the job ends in error.
    Stopping,
    /// It had ended already.
    Ended,
    /// There is no such job.
    Missing,
}

impl Broker {
    /// Stops a job. One that waits becomes `error` with `reason` (seed 2: `stopped`) at once. Of one that
    /// runs, its worker is told through the control queue of its type, or through the stop queue of seed 2
    /// if it is run without a lease. With `force` a running job ends at once, and its worker learns so when
    /// it renews.
    ///
    /// # Errors
    /// If the server does not take the call; repeat it then.
    pub async fn cancel(&self, job: &Job, reason: &str, force: bool) -> Result<Cancelled, Error> {
        let id = job.job_id();
        let answer = self
            .scripts
            .call(Verb::Cancel)
            .key(self.keys.job_hash_key(&id))
            .key(self.queue_of(job))
            .key(self.keys.control_queue_type(&self.type_of(job)))
            .key(
                self.keys
                    .legacy_stop_queue(&ActorId::foreign(job.worker_id.clone())),
            )
            .arg(self.clock.argument())
            .arg(&*self.who)
            .arg(id.as_str())
            .arg(reason)
            .arg(u8::from(force))
            .run(&self.conn)
            .await?;
        let known = [
            ("cancelled", Cancelled::Cancelled),
            ("stopping", Cancelled::Stopping),
            ("ended", Cancelled::Ended),
            ("missing", Cancelled::Missing),
        ];
        word("cancel", answer, &known)
    }

    /// The queue that a job waits in: the one it was claimed from last, else where its record sends it. A
    /// record that says neither (another client's) waits where we cannot know; the key is then one that
    /// holds nothing.
    pub(super) fn queue_of(&self, job: &Job) -> String {
        job.queue
            .clone()
            .or_else(|| job.route().map(|route| route.queue(&self.keys)))
            .unwrap_or_else(|| self.keys.work_prefix())
    }

    /// The type whose workers run a job: its record's, else that of the queue it was claimed from.
    fn type_of(&self, job: &Job) -> ScriptType {
        let of_queue = || {
            let behind = job
                .queue
                .as_deref()?
                .strip_prefix(&self.keys.work_prefix())?;
            behind.split(':').next()
        };
        let name = job
            .script_type
            .as_deref()
            .or_else(of_queue)
            .unwrap_or_default();
        ScriptType::foreign(name.to_owned())
    }
}
