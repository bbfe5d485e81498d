//! Stopping jobs.

use std::time::Duration;

use meshwork_broker::Cancelled;
use meshwork_model::job::Job;
use meshwork_model::name::JobId;
use meshwork_model::state::Status;

use super::Client;
use crate::Error;

/// The `error` of a job that was stopped before it ran, or by force.
pub(super) const STOPPED: &str = "stopped";

impl Client {
    /// Cancels a job. A waiting job ends in error `stopped` at once. For a running job the worker gets a request
    /// ([`Cancelled::Stopping`]): it signals the script, kills it after a grace period, and then the job ends in error
    /// `stopped_by_request`.
    ///
    /// # Errors
    /// If there is no such job, or the server does not take a call.
    pub async fn stop(&self, id: &JobId) -> Result<Cancelled, Error> {
        let job = self.summary(id).await?;
        Ok(self.broker.cancel_anywhere(&job, STOPPED, false).await?)
    }

    /// Ends a job in error `stopped` at once. A worker that runs it learns so at its next renewal, a third
    /// of a lease later at the latest, and kills the script; until then the script goes on.
    ///
    /// # Errors
    /// If there is no such job, or the server does not take a call.
    pub async fn stop_by_force(&self, id: &JobId) -> Result<Cancelled, Error> {
        let job = self.summary(id).await?;
        Ok(self.broker.cancel(&job, STOPPED, true).await?)
    }

    /// Stops a job that a filter found: as [`Client::stop`], or with `force` as [`Client::stop_by_force`].
    ///
    /// # Errors
    /// If the server does not take a call.
    pub async fn stop_found(&self, job: &Job, force: bool) -> Result<Cancelled, Error> {
        Ok(self.broker.cancel(job, STOPPED, force).await?)
    }

    /// Stops a job, and returns when it has ended: [`Cancelled::Ended`] if it did so by itself.
    ///
    /// # Errors
    /// As [`Client::stop`], and [`Error::NotStopped`] if it has not ended after `patience`.
    pub async fn stop_and_wait(&self, id: &JobId, patience: Duration) -> Result<Cancelled, Error> {
        match self.stop(id).await? {
            Cancelled::Stopping => self.stopped(id, patience).await,
            other => Ok(other),
        }
    }

    /// Waits until a job that is stopping has ended: [`Cancelled::Ended`] if it did so by itself.
    ///
    /// # Errors
    /// [`Error::NotStopped`] if it has not ended after `patience`; if there is no such job, or the server
    /// does not take a call.
    pub async fn stopped(&self, id: &JobId, patience: Duration) -> Result<Cancelled, Error> {
        match self.wait(id, patience).await {
            Ok(job) if job.status() == Some(Status::Finished) => Ok(Cancelled::Ended),
            Ok(_) => Ok(Cancelled::Cancelled),
            Err(Error::NotEnded { id, waited }) => {
                let worker = self.summary(&id).await?.worker;
                Err(Error::NotStopped { id, waited, worker })
            }
            Err(error) => Err(error),
        }
    }
}
