//! retry: run a job again that has ended, or is stale.

use meshwork_model::job::Job;

use super::word;
use crate::script::Verb;
use crate::{Broker, Error};

/// What became of a job that was to run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retried {
    /// It waits at the end of its queue, with all its runs before it.
    Queued,
    /// It has not ended yet, and does not count as stale ([`Broker::stale`]).
    Unfinished,
    /// There is no such job, or its record does not say which queue it belongs to.
    Missing,
}

impl Broker {
    /// Queues an ended or stale job again, as if it had never run.
    ///
    /// # Errors
    /// If the server does not take the call. Before repeating it, look whether the job waits or has run.
    pub async fn retry(&self, job: &Job) -> Result<Retried, Error> {
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
