//! Dead letters: listing, retrying and deleting them.

use meshwork_broker::{DeadCursor, DeadLetter, DeadPage, Deleted, MAX_ITEMS, Retried};
use meshwork_macros::boxed;
use meshwork_model::job::Job;
use meshwork_model::name::JobId;

use super::{Client, JobFilter};
use crate::Error;

impl Client {
    /// Returns a page of dead letters, newest first: those among the next 1,000 that match `filter`, whose times apply
    /// to the time of death. Begin without a cursor, and continue at `next` until it is `None`. With a filter, a page
    /// may be empty.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn dead_letters(
        &self,
        filter: &JobFilter,
        from: Option<&DeadCursor>,
    ) -> Result<DeadPage, Error> {
        let first = filter.until_ms.map(DeadCursor::before);
        let (from, since) = (from.or(first.as_ref()), filter.since_ms.unwrap_or(0));
        let mut page = self.broker.dead_letters(from, since, MAX_ITEMS).await?;
        self.keep_letters(filter, &mut page.letters).await?;
        Ok(page)
    }

    /// Returns one dead letter with its whole record, or only the id if the record was deleted.
    ///
    /// # Errors
    /// The job does not exist or is no dead letter, or a call to the server fails.
    #[boxed]
    pub async fn dead_letter(&self, id: &JobId) -> Result<DeadLetter, Error> {
        let at_ms = self.broker.dead_since(id).await?;
        let job = self.broker.inspect(id).await?;
        match (at_ms, job) {
            (Some(at_ms), job) => {
                let job = job.unwrap_or_else(|| Job::from_fields(id.as_str(), []));
                Ok(DeadLetter { at_ms, job })
            }
            (None, Some(_)) => Err(Error::NotDeadLettered { id: id.clone() }),
            (None, None) => Err(Error::JobNotFound { id: id.clone() }),
        }
    }

    /// Enqueues a dead letter again, with all its attempts.
    ///
    /// # Errors
    /// The call to the server fails.
    #[boxed]
    pub async fn retry_dead_letter(&self, job: &Job) -> Result<Retried, Error> {
        Ok(self.broker.retry(job).await?)
    }

    /// Deletes a dead letter and all data of the job.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn delete_dead_letter(&self, job: &Job) -> Result<Deleted, Error> {
        let deleted = self.broker.delete(job).await?;
        if deleted == Deleted::Missing {
            // The record was deleted; the entry remains.
            self.broker.forget_dead(&job.job_id()).await?;
        }
        Ok(deleted)
    }
}
