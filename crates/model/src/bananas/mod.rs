//! Jobs of Bananas: JSON records that several implementations of clients and workers read and write, each in its own
//! format. A record is edited in place, never serialized again. An edit changes the spans of its fields; all other
//! bytes stay, with unknown fields and numbers of any size.

mod client_variant;
mod convert;
mod cron;
mod dead;
mod draft;
mod new;
mod outcome;
mod record;
mod span;
mod time;

pub use client_variant::ClientVariant;
pub use convert::{
    Bucket, Conversion, HandlerKind, NotConvertible, Origin, Return, Stands, UnknownOrigin,
};
pub use cron::{Cron, InvalidCron, MAX_CRONS};
pub use dead::{corrupted, missing};
pub use draft::{Draft, Piece};
pub use new::{InvalidJob, MAX_PAYLOAD, NewJob};
pub use outcome::Outcome;
pub use record::{Corrupt, Record};
pub use time::{micros, read as read_time, score, seconds};

use std::time::Duration;

/// Default number of runs of a job.
pub const DEFAULT_MAX_RETRIES: u32 = 3;
/// Retention of the record of a completed job: 1 day.
pub const COMPLETED_FOR: Duration = Duration::from_secs(86_400);
/// Retention of the record of a dead letter: 7 days. The list of dead letters keeps its id for longer.
pub const DEAD_FOR: Duration = Duration::from_secs(604_800);
/// Retention of the result of a completed job: 1 hour.
pub const RESULT_FOR: Duration = Duration::from_secs(3_600);
/// Retention of the result of a failed job: 1 day.
pub const FAILURE_FOR: Duration = Duration::from_secs(86_400);
/// Greatest number of doublings of the backoff. Bananas has no limit; 2^20 seconds are 12 days.
const MAX_DOUBLINGS: u32 = 20;

/// Returns the backoff after this many failures: 2^n seconds.
#[must_use]
pub fn pause(failures: u32) -> Duration {
    Duration::from_secs(1 << failures.min(MAX_DOUBLINGS))
}

/// The status in a job's record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The job is queued, or waits for a retry. Bananas leaves this status while the job runs.
    Pending,
    /// The job runs. No worker writes this status; some readers know it.
    Processing,
    /// The job completed.
    Completed,
    /// The job is a dead letter.
    Failed,
    /// The job is delayed. Bananas leaves this status after the job was promoted.
    Scheduled,
}

impl Status {
    const ALL: [Self; 5] = [
        Self::Pending,
        Self::Processing,
        Self::Completed,
        Self::Failed,
        Self::Scheduled,
    ];

    /// The word in records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Processing => "processing",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Scheduled => "scheduled",
        }
    }

    /// Parses a word in a record. Returns `None` if the word is unknown.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == text)
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_and_end() {
        let seconds = [1, 2, 3, 20, 21, u32::MAX].map(|failures| pause(failures).as_secs());
        assert_eq!(seconds, [2, 4, 8, 1 << 20, 1 << 20, 1 << 20]);
    }

    #[test]
    fn statuses_are_read_as_they_are_written() {
        for status in Status::ALL {
            assert_eq!(Status::read(status.as_str()), Some(status));
        }
        assert_eq!(Status::read(""), None);
    }
}
