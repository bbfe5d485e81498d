//! dead: the dead letters, which are the jobs that failed for good. They are kept until somebody replays
//! (`retry`) or deletes them.

use meshwork_model::job::Job;
use meshwork_model::name::JobId;

use super::{MAX_ITEMS, at_most, text};
use crate::{Broker, Error};

/// A job that failed for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// When it did, in milliseconds since 1970.
    pub at_ms: u64,
    /// The job, as [`Broker::summaries`] gives it. Where somebody took its record away, only the id.
    pub job: Job,
}

/// Where a page ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadCursor {
    at_ms: u64,
    id: String,
}

/// A part of the dead letters.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct DeadPage {
    /// The newest first.
    pub letters: Vec<DeadLetter>,
    /// Where the next page begins; none if this was the last.
    pub next: Option<DeadCursor>,
}

impl DeadCursor {
    /// The next page begins below this time.
    #[must_use]
    pub fn before(at_ms: u64) -> Self {
        // No id is smaller than none: of those of this very millisecond, all come before it.
        Self {
            at_ms,
            id: String::new(),
        }
    }

    /// Whether an entry comes after the place, where the newest is first, and of one time the largest id.
    fn precedes(&self, at_ms: u64, id: &str) -> bool {
        (at_ms, id) < (self.at_ms, self.id.as_str())
    }
}

impl Broker {
    /// A page of dead letters: up to `most`, from where `from` says, and none that died before `since_ms`.
    /// Whoever takes letters away between two pages misses none of the others.
    ///
    /// # Errors
    /// If there are more than [`MAX_ITEMS`], or the server does not take a call.
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
            // Only entries of one and the same millisecond can be more than a call brings.
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

    /// When a job became a dead letter, in milliseconds since 1970; none if it is none.
    ///
    /// # Errors
    /// If the server does not take the call.
    pub async fn dead_since(&self, id: &JobId) -> Result<Option<u64>, Error> {
        let mut score = redis::cmd("ZSCORE");
        score.arg(self.keys.dead()).arg(id.as_str());
        let since: Option<f64> = self.ask("dead", &score).await?;
        Ok(since.map(|ms| ms as u64))
    }

    /// The number of dead letters.
    ///
    /// # Errors
    /// If the server does not take the call.
    pub async fn dead_count(&self) -> Result<u64, Error> {
        self.ask("dead", redis::cmd("ZCARD").arg(self.keys.dead()))
            .await
    }

    /// Takes a dead letter off the list whose record somebody took away, which leaves nothing to delete.
    ///
    /// # Errors
    /// If the server does not take the call.
    pub async fn forget_dead(&self, id: &JobId) -> Result<(), Error> {
        let mut cmd = redis::cmd("ZREM");
        cmd.arg(self.keys.dead()).arg(id.as_str());
        self.ask("dead", &cmd).await
    }
}
