//! retained: reads how far back the retention of ended jobs reaches. Changes nothing.

use crate::broker::Broker;
use crate::error::Error;
use crate::verb::JobSet;
use meshwork_macros::boxed;

/// Least retention of workers, which [`Retained::reaches`] relies on: an hour, in milliseconds.
pub const MIN_RETAINED_MS: u64 = 3_600_000;
/// The same, as a number of ended jobs.
pub const MIN_RETAINED: u64 = 1000;

/// Reach of the retention of ended jobs at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retained {
    /// The time of the read, by the server's clock, in milliseconds since 1970.
    pub now_ms: u64,
    /// Number of ended jobs in the store, without dead letters.
    pub ended: u64,
    /// End of the one that ended first.
    pub oldest_end_ms: Option<u64>,
}

impl Retained {
    /// Returns true if retention has deleted no job that was enqueued at this time or later. Jobs are deleted in the
    /// order of their ends, so an earlier end that the store still has proves it. Else, workers must retain at least
    /// [`MIN_RETAINED`] jobs for [`MIN_RETAINED_MS`], and neither may be exceeded. Jobs that somebody deleted by hand do
    /// not count.
    #[must_use]
    pub fn reaches(&self, enqueued_ms: u64) -> bool {
        self.oldest_end_ms
            .is_some_and(|oldest| oldest < enqueued_ms)
            || (self.ended < MIN_RETAINED
                && self.now_ms < enqueued_ms.saturating_add(MIN_RETAINED_MS))
    }
}

impl Broker {
    /// Reads the reach of the retention.
    ///
    /// # Errors
    /// The server refuses a call.
    #[boxed]
    pub async fn retained(&self) -> Result<Retained, Error> {
        let now_ms = self.clock.now(&self.conn).await?;
        let ended = self.set_length(JobSet::Ended).await?;
        let first = self.set_page(JobSet::Ended, None, false, 1).await?;
        Ok(Retained {
            now_ms,
            ended,
            oldest_end_ms: first.entries.first().map(|entry| entry.at_ms),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_end_or_a_short_time_proves_that_nothing_is_deleted() {
        let at = |ended, oldest_end_ms| Retained {
            now_ms: 10_000_000,
            ended,
            oldest_end_ms,
        };
        assert!(at(1000, Some(99)).reaches(100) && !at(1000, Some(100)).reaches(100));
        assert!(at(0, None).reaches(6_400_001) && !at(0, None).reaches(6_400_000));
        let young = |ended| at(ended, Some(9_000_000)).reaches(8_000_000);
        assert!(young(999) && !young(1000));
    }
}
