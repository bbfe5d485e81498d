//! Dead letters: looking at them, running them again, forgetting them.

use meshwork_broker::{DeadCursor, DeadLetter, DeadPage, Deleted, MAX_ITEMS, Retried};
use meshwork_model::job::Job;
use meshwork_model::name::JobId;

use super::{Client, JobFilter};
use crate::Error;

impl Client {
    /// A page of dead letters, the newest first: those that `filter` includes among the next 1,000; its
    /// times are those of death. Begin with no cursor, go on at `next` until it is none; with a filter, a page in between may be empty.
    ///
    /// # Errors
    /// If the server does not take a call.
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

    /// One dead letter with its whole record; only the id where somebody took the record away.
    ///
    /// # Errors
    /// If there is no such job, it is no dead letter, or the server does not take a call.
    pub async fn dead_letter(&self, id: &JobId) -> Result<DeadLetter, Error> {
        let at_ms = self.broker.dead_since(id).await?;
        let job = self.broker.inspect(id).await?;
        match (at_ms, job) {
            (Some(at_ms), job) => {
                let job = job.unwrap_or_else(|| Job::from_fields(id.as_str(), []));
                Ok(DeadLetter { at_ms, job })
            }
            (None, Some(_)) => Err(Error::NotDead { id: id.clone() }),
            (None, None) => Err(Error::NoJob { id: id.clone() }),
        }
    }

    /// Queues a dead letter again, as if it had never run: its attempts start again, too.
    ///
    /// # Errors
    /// If the server does not take the call.
    pub async fn retry_dead_letter(&self, job: &Job) -> Result<Retried, Error> {
        Ok(self.broker.retry(job).await?)
    }

    /// Forgets a dead letter and all that is kept of the job.
    ///
    /// # Errors
    /// If the server does not take a call.
    pub async fn delete_dead_letter(&self, job: &Job) -> Result<Deleted, Error> {
        let deleted = self.broker.delete(job).await?;
        if deleted == Deleted::Missing {
            // Somebody took the record away, but not the letter.
            self.broker.forget_dead(&job.job_id()).await?;
        }
        Ok(deleted)
    }
}
