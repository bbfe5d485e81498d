//! retry: runs a job again that has ended, or is stale.

use meshwork_macros::boxed;
use meshwork_model::job::Job;

use crate::broker::Broker;
use crate::error::Error;
use crate::script::Verb;
use crate::verb::word;

/// The result of a retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retried {
    /// The job is at the end of its queue, with all its attempts.
    Queued,
    /// The job has not ended, and is not stale ([`Broker::list_stale`]).
    Unfinished,
    /// The job does not exist, or its record names no queue.
    Missing,
    /// The job belongs to a flow, which is retried as a whole.
    OfFlow,
}

impl Broker {
    /// Queues an ended or stale job again, as if it had never run.
    ///
    /// # Errors
    /// The server refuses the call. Before repeating it, check whether the job waits or has run.
    #[boxed]
    pub async fn retry(&self, job: &Job) -> Result<Retried, Error> {
        if self.is_of_flow(job).await? {
            return Ok(Retried::OfFlow);
        }
        if job.queue.is_none() && job.route().is_none() {
            return Ok(Retried::Missing);
        }
        let control = self.keys.control_queue_type(&self.type_of(job));
        let call = self.change(Verb::Retry, job).key(control);
        let answer = call.run(&self.conn).await?;
        let known = [
            ("queued", Retried::Queued),
            ("unfinished", Retried::Unfinished),
            ("missing", Retried::Missing),
        ];
        word("retry", answer, &known)
    }
}
