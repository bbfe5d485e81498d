//! Cancelling jobs.

use meshwork_macros::boxed;
use std::time::Duration;

use meshwork_broker::Cancelled;
use meshwork_model::cancellation::CANCELLED;
use meshwork_model::job::Job;
use meshwork_model::name::JobId;
use meshwork_model::state::Status;

use super::Client;
use crate::Error;

impl Client {
    /// Cancels a job. A waiting job ends in error `stopped` at once. For a running job, the worker gets a request
    /// ([`Cancelled::Stopping`]): it signals the script, kills it after a grace period, and the job ends in error
    /// `stopped_by_request`.
    ///
    /// # Errors
    /// The job does not exist, or a call to the server fails.
    #[boxed]
    pub async fn cancel(&self, id: &JobId) -> Result<Cancelled, Error> {
        let job = self.summary(id).await?;
        Ok(self.broker.cancel_anywhere(&job, CANCELLED, false).await?)
    }

    /// Ends a job in error `stopped` at once. The worker that runs it kills the script at its next renewal, within a
    /// third of a lease.
    ///
    /// # Errors
    /// The job does not exist, or a call to the server fails.
    #[boxed]
    pub async fn force_cancel(&self, id: &JobId) -> Result<Cancelled, Error> {
        let job = self.summary(id).await?;
        Ok(self.broker.cancel(&job, CANCELLED, true).await?)
    }

    /// Cancels a job that a filter found: as [`Client::cancel`], or with `force` as [`Client::force_cancel`].
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn cancel_found(&self, job: &Job, force: bool) -> Result<Cancelled, Error> {
        Ok(self.broker.cancel(job, CANCELLED, force).await?)
    }

    /// Cancels a job and waits until it has ended. Returns [`Cancelled::Ended`] if the job ended by itself.
    ///
    /// # Errors
    /// As [`Client::cancel`]; and [`Error::CancelTimeout`] if the job has not ended after `patience`.
    #[boxed]
    pub async fn cancel_and_wait(
        &self,
        id: &JobId,
        patience: Duration,
    ) -> Result<Cancelled, Error> {
        match self.cancel(id).await? {
            Cancelled::Stopping => self.wait_cancelled(id, patience).await,
            other => Ok(other),
        }
    }

    /// Waits until a job with a cancel request has ended. Returns [`Cancelled::Ended`] if the job ended by itself.
    ///
    /// # Errors
    /// [`Error::CancelTimeout`] if the job has not ended after `patience`; the job does not exist; or a call to the
    /// server fails.
    #[boxed]
    pub async fn wait_cancelled(&self, id: &JobId, patience: Duration) -> Result<Cancelled, Error> {
        match self.wait(id, patience).await {
            Ok(job) if job.status() == Some(Status::Finished) => Ok(Cancelled::Ended),
            Ok(_) => Ok(Cancelled::Cancelled),
            Err(Error::JobWaitTimeout { id, waited }) => {
                let worker = self.summary(&id).await?.worker;
                Err(Error::CancelTimeout { id, waited, worker })
            }
            Err(error) => Err(error),
        }
    }
}
