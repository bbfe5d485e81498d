//! Alerts of queues: a job for each series of failures, and one for its end.

use meshwork_broker::QueueAlert;
use meshwork_macros::boxed;
use meshwork_model::name::JobId;

use super::Client;
use super::request::JobRequest;
use crate::Error;

impl Client {
    /// Enqueues a job like `job` after `after` failures in a row of jobs of a queue, for all its priorities together:
    /// once per series of failures, and again after the first success that follows. Its input is JSON and says what
    /// happened. A failure is a job that becomes a dead letter; retries, cancelled and discarded jobs do not count, and
    /// neither do alert jobs. Replaces the queue's alert, and begins to count anew.
    ///
    /// # Errors
    /// If the number is not from 1 to [`MAX_ALERT_AFTER`](meshwork_model::queue::MAX_ALERT_AFTER), the job cannot be
    /// one of an alert, or the queue belongs to a context: nothing was changed then. If the server does not take the
    /// call; repeat it then.
    #[boxed]
    pub async fn set_alert(&self, queue: &str, after: u32, job: JobRequest) -> Result<(), Error> {
        let job = match job.has_id() {
            true => job,
            false => job.id(JobId::foreign(format!("alert-{}", uuid::Uuid::new_v4()))),
        };
        let job = job.build()?;
        Ok(self.broker.set_alert(queue, after, &job).await?)
    }

    /// Removes the alert of a queue. Returns whether there was one.
    ///
    /// # Errors
    /// If the server does not take the call; repeat it then.
    #[boxed]
    pub async fn remove_alert(&self, queue: &str) -> Result<bool, Error> {
        Ok(self.broker.remove_alert(queue).await?)
    }

    /// The alert of a queue, with its failures in a row so far.
    ///
    /// # Errors
    /// If the server does not take the call.
    #[boxed]
    pub async fn alert(&self, queue: &str) -> Result<Option<QueueAlert>, Error> {
        Ok(self.broker.alert(queue).await?)
    }
}
