//! cancel: stop a job.

use meshwork_model::job::Job;
use meshwork_model::name::ActorId;

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
        let worker = ActorId::foreign(job.worker_id.clone());
        let answer = self
            .change(Verb::Cancel, job)
            .key(self.keys.control_queue_type(&self.type_of(job)))
            .key(self.keys.legacy_stop_queue(&worker))
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
}
