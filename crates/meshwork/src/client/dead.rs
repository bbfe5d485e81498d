//! Dead letters: looking at them, running them again, forgetting them.

use meshwork_broker::{DeadCursor, DeadLetter, DeadPage, Deleted, MAX_ITEMS, Retried};
use meshwork_model::job::Job;
use meshwork_model::name::{Group, JobId, ScriptType};

use super::Client;
use crate::Error;

/// Which dead letters are meant; by default, all.
#[derive(Debug, Clone, Default)]
pub struct DeadFilter {
    /// Only jobs of this type.
    pub script_type: Option<ScriptType>,
    /// Only jobs that were sent to this group.
    pub group: Option<Group>,
    /// Only those that died of this: `failed` (no retry was left), `timeout`, `permanent` (no retry could
    /// help), `poison` (its workers died) or `queue` (its queue is no list).
    pub reason: Option<String>,
    /// Only those whose error contains this text.
    pub error_contains: Option<String>,
    /// Only those that died at this time or later, in milliseconds since 1970.
    pub since_ms: Option<u64>,
    /// Only those that died before this time, in milliseconds since 1970.
    pub until_ms: Option<u64>,
}

impl DeadFilter {
    /// Whether a letter is meant, but for its time.
    fn includes(&self, letter: &DeadLetter) -> bool {
        let job = &letter.job;
        let is = |wanted: Option<&str>, is: &Option<String>| {
            wanted.is_none_or(|wanted| is.as_deref() == Some(wanted))
        };
        let error = job.error.as_deref().unwrap_or_default();
        is(
            self.script_type.as_ref().map(ScriptType::as_str),
            &job.script_type,
        ) && is(self.group.as_ref().map(Group::as_str), &job.group)
            && is(self.reason.as_deref(), &job.dead)
            && self
                .error_contains
                .as_ref()
                .is_none_or(|text| error.contains(text))
    }
}

impl Client {
    /// A page of dead letters, the newest first: those that `filter` includes among the next 1,000. Begin
    /// with no cursor, go on at `next` until it is none; with a filter, a page in between may be empty.
    ///
    /// # Errors
    /// If the server does not take a call.
    pub async fn dead_letters(
        &self,
        filter: &DeadFilter,
        from: Option<&DeadCursor>,
    ) -> Result<DeadPage, Error> {
        let first = filter.until_ms.map(DeadCursor::before);
        let (from, since) = (from.or(first.as_ref()), filter.since_ms.unwrap_or(0));
        let mut page = self.broker.dead_letters(from, since, MAX_ITEMS).await?;
        page.letters.retain(|letter| filter.includes(letter));
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
    pub async fn replay(&self, letter: &DeadLetter) -> Result<Retried, Error> {
        Ok(self.broker.retry(&letter.job).await?)
    }

    /// Forgets a dead letter and all that is kept of the job.
    ///
    /// # Errors
    /// If the server does not take a call.
    pub async fn delete_dead(&self, letter: &DeadLetter) -> Result<Deleted, Error> {
        let deleted = self.broker.delete(&letter.job).await?;
        if deleted == Deleted::Missing {
            // Somebody took the record away, but not the letter.
            self.broker.forget_dead(&letter.job.job_id()).await?;
        }
        Ok(deleted)
    }
}
