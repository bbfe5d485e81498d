//! cancel: stop a job.

use meshwork_model::job::Job;

use super::{REPLY_TTL_MS, word};
use crate::script::Verb;
use crate::{Broker, Error};

/// What became of a job that was to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    /// It ended in error; if a worker runs it, the run is cut off at the worker's next renewal.
    Cancelled,
    /// It had ended already.
    Ended,
    /// There is no such job.
    Missing,
}

impl Broker {
    /// Stops a job that waits or runs: it becomes `error` with `reason` (seed 2: `stopped`).
    ///
    /// # Errors
    /// If the server does not take the call; repeat it then.
    pub async fn cancel(&self, job: &Job, reason: &str) -> Result<Cancelled, Error> {
        let id = job.job_id();
        let answer = self
            .scripts
            .call(Verb::Cancel)
            .key(self.keys.job_hash_key(&id))
            .key(self.keys.lease())
            .key(self.queue_of(job))
            .key(self.keys.reply_queue_key(&id))
            .arg(self.clock.argument())
            .arg(id.as_str())
            .arg(reason)
            .arg(REPLY_TTL_MS)
            .run(&self.conn)
            .await?;
        let known = [
            ("cancelled", Cancelled::Cancelled),
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
}
