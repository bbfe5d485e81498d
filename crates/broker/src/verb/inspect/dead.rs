//! dead: lists dead letters, which are jobs that failed for good. They are kept until somebody retries (`retry`) or
//! deletes them.

use meshwork_macros::boxed;
use meshwork_model::job::Job;
use meshwork_model::name::JobId;

use crate::broker::Broker;
use crate::error::Error;
use crate::verb::{MAX_ITEMS, at_most, text};

/// A dead letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// Time of the failure, in milliseconds since 1970.
    pub at_ms: u64,
    /// The job, as in [`Broker::summaries`]. If its record was deleted, only the id.
    pub job: Job,
}

/// Position after a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadCursor {
    at_ms: u64,
    id: String,
}

/// A page of dead letters.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct DeadPage {
    /// Dead letters, the newest first.
    pub letters: Vec<DeadLetter>,
    /// Position of the next page; `None` after the last one.
    pub next: Option<DeadCursor>,
}

impl DeadCursor {
    /// Returns a position whose next page begins before this time.
    #[must_use]
    pub fn before(at_ms: u64) -> Self {
        // The empty id is the smallest, so that all ids of this millisecond are excluded.
        Self {
            at_ms,
            id: String::new(),
        }
    }

    /// Returns the position of a letter: the next page begins after it.
    #[must_use]
    pub fn at(at_ms: u64, id: &str) -> Self {
        let id = id.to_owned();
        Self { at_ms, id }
    }

    /// Returns whether an entry comes after the position, with the newest first, and the largest id first within one
    /// time.
    fn precedes(&self, at_ms: u64, id: &str) -> bool {
        (at_ms, id) < (self.at_ms, self.id.as_str())
    }
}

impl std::fmt::Display for DeadCursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.at_ms, self.id)
    }
}

impl Broker {
    /// Returns a page of up to `most` dead letters from the position `from` on, without those before `since_ms`.
    /// Deleting letters between two pages does not hide others.
    ///
    /// # Errors
    /// There are more than [`MAX_ITEMS`], or the server refuses a call.
    #[boxed]
    pub async fn dead_letters(
        &self,
        from: Option<&DeadCursor>,
        since_ms: u64,
        most: usize,
    ) -> Result<DeadPage, Error> {
        at_most("dead_letters", MAX_ITEMS, most)?;
        let (mut found, mut skipped) = (Vec::new(), 0);
        loop {
            let entries = self.dead_entries(from, since_ms, skipped).await?;
            let (last, seen) = (entries.len() < MAX_ITEMS, entries.len());
            let is_new =
                |(id, at_ms): &(String, u64)| from.is_none_or(|from| from.precedes(*at_ms, id));
            found.extend(entries.into_iter().filter(is_new));
            skipped += seen;
            // Only entries of the same millisecond can exceed the result of one call.
            if last || found.len() > most {
                break;
            }
        }
        let more = found.len() > most;
        found.truncate(most);
        let cursor = |(id, at_ms): &(String, u64)| DeadCursor {
            at_ms: *at_ms,
            id: id.clone(),
        };
        Ok(DeadPage {
            next: found.last().filter(|_| more).map(cursor),
            letters: self.letters(found).await?,
        })
    }

    async fn dead_entries(
        &self,
        from: Option<&DeadCursor>,
        since_ms: u64,
        skip: usize,
    ) -> Result<Vec<(String, u64)>, Error> {
        let highest = from.map_or_else(|| "+inf".to_owned(), |from| from.at_ms.to_string());
        let mut range = redis::cmd("ZREVRANGEBYSCORE");
        range.arg(self.keys.dead()).arg(highest).arg(since_ms);
        range.arg("WITHSCORES");
        range.arg("LIMIT").arg(skip).arg(MAX_ITEMS);
        let entries: Vec<(Vec<u8>, f64)> = self.ask("dead", &range).await?;
        let entries = entries.into_iter();
        Ok(entries.map(|(id, ms)| (text(id), ms as u64)).collect())
    }

    async fn letters(&self, found: Vec<(String, u64)>) -> Result<Vec<DeadLetter>, Error> {
        let ids: Vec<_> = found
            .iter()
            .map(|(id, _)| JobId::foreign(id.clone()))
            .collect();
        let jobs = self.summaries(&ids).await?;
        let letter = |((id, at_ms), job): ((String, u64), Option<Job>)| DeadLetter {
            at_ms,
            job: job.unwrap_or_else(|| Job::from_fields(&id, [])),
        };
        Ok(found.into_iter().zip(jobs).map(letter).collect())
    }

    /// Returns the time at which a job became a dead letter, in milliseconds since 1970; `None` if it is not one.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn dead_since(&self, id: &JobId) -> Result<Option<u64>, Error> {
        let mut score = redis::cmd("ZSCORE");
        score.arg(self.keys.dead()).arg(id.as_str());
        let since: Option<f64> = self.ask("dead", &score).await?;
        Ok(since.map(|ms| ms as u64))
    }

    /// Removes a dead letter whose record was deleted from the list.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn forget_dead(&self, id: &JobId) -> Result<(), Error> {
        let mut cmd = redis::cmd("ZREM");
        cmd.arg(self.keys.dead()).arg(id.as_str());
        self.ask("dead", &cmd).await
    }
}
