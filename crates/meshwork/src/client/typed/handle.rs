//! A stored job of a known type.

use meshwork_macros::boxed;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use meshwork_broker::Cancelled;
use meshwork_model::job::Job as Record;
use meshwork_model::name::JobId;
use meshwork_model::state::State;
use serde::de::DeserializeOwned;

use super::Job;
use crate::{Client, Error};

/// A stored job. Cheap to clone. [`Client::job`] makes one of an id.
///
/// ```
/// use meshwork::{Client, JobStatus};
///
/// #[meshwork::job(output = u64, unique = "pay-{order}")]
/// struct Pay { order: u64 }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), meshwork::Error> {
/// let client = Client::in_memory();
/// let job = client.enqueue(Pay { order: 7 }).await?;
/// assert!(job.is_new());
/// let again = client.enqueue(Pay { order: 7 }).await?;
/// assert_eq!((again.id(), again.is_new()), (job.id(), false));
/// assert_eq!(job.status().await?, Some(JobStatus::Queued));
/// job.cancel().await?;
/// assert_eq!(job.status().await?, Some(JobStatus::Cancelled));
/// # Ok(())
/// # }
/// ```
pub struct JobHandle<J> {
    client: Client,
    id: JobId,
    is_new: bool,
    patience: Duration,
    of: PhantomData<fn() -> J>,
}

impl<J: Job> JobHandle<J> {
    pub(in crate::client) fn new(
        client: Client,
        id: JobId,
        is_new: bool,
        patience: Duration,
    ) -> Self {
        Self {
            client,
            id,
            is_new,
            patience,
            of: PhantomData,
        }
    }

    /// Returns the id.
    #[must_use]
    pub fn id(&self) -> &JobId {
        &self.id
    }

    /// Returns true if the call stored this job, and false for an earlier job of the same id or unique name, which stays.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// Waits for the result: for all runs with their pauses, and for an hour in the queue.
    ///
    /// # Errors
    /// The job failed ([`Error::Failed`]), does not exist, or has not ended in that time; or its result is not of the
    /// type.
    #[boxed]
    pub async fn result(&self) -> Result<J::Output, Error> {
        self.result_within(self.patience).await
    }

    /// As [`JobHandle::result`], for at most this time.
    ///
    /// # Errors
    /// As [`JobHandle::result`].
    #[boxed]
    pub async fn result_within(&self, patience: Duration) -> Result<J::Output, Error> {
        let job = self.client.result(&self.id, patience).await?;
        output_of(&job)
    }

    /// Returns the record.
    ///
    /// # Errors
    /// The job does not exist, or the call to the server fails.
    #[boxed]
    pub async fn record(&self) -> Result<Record, Error> {
        self.client.status(&self.id).await
    }

    /// Returns the state; `None` for a status that another client wrote and that is no word of a record.
    ///
    /// # Errors
    /// The job does not exist, or the call to the server fails.
    #[boxed]
    pub async fn status(&self) -> Result<Option<State>, Error> {
        let job = self.client.summary(&self.id).await?;
        let states = self.client.states(std::slice::from_ref(&job)).await?;
        Ok(states.into_iter().next().flatten())
    }

    /// Cancels the job, or asks its worker to stop it.
    ///
    /// # Errors
    /// The job does not exist, or the call to the server fails.
    #[boxed]
    pub async fn cancel(&self) -> Result<Cancelled, Error> {
        self.client.cancel(&self.id).await
    }
}

/// Decodes the result of a job.
pub(in crate::client) fn output_of<Out: DeserializeOwned>(job: &Record) -> Result<Out, Error> {
    let output = job.output.as_deref().unwrap_or_default();
    serde_json::from_slice(output).map_err(|source| Error::Payload {
        what: "result",
        id: job.job_id(),
        source,
    })
}

impl<J> Clone for JobHandle<J> {
    fn clone(&self) -> Self {
        Self {
            client: self.client.clone(),
            id: self.id.clone(),
            ..*self
        }
    }
}

impl<J: Job> fmt::Debug for JobHandle<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobHandle")
            .field("type", &J::NAME)
            .field("id", &self.id)
            .field("is_new", &self.is_new)
            .finish_non_exhaustive()
    }
}
