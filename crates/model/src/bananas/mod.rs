//! Jobs of Bananas: records in JSON that several makes of clients and workers read and write, each in
//! its own way. A record is never written anew: an edit changes the spans of the fields that it is about, and
//! all else stays byte for byte, fields that we do not know and numbers of any size included.

mod cron;
mod dead;
mod draft;
mod new;
mod outcome;
mod over;
mod peer;
mod record;
mod span;
mod time;

pub use cron::{Cron, InvalidCron, MAX_CRONS};
pub use dead::{corrupted, missing};
pub use draft::{Draft, Piece};
pub use new::{InvalidJob, MAX_PAYLOAD, NewJob};
pub use outcome::Outcome;
pub use over::{Origin, Passage, Place, Return, Runs, Stands, Unfit, UnknownOrigin};
pub use peer::Peer;
pub use record::{Corrupt, Record};
pub use time::{micros, read as read_time, score, seconds};

use std::time::Duration;

/// How many runs a job gets that does not say it.
pub const DEFAULT_MAX_RETRIES: u32 = 3;
/// For how long a record stays whose job is done.
pub const COMPLETED_FOR: Duration = Duration::from_secs(86_400);
/// For how long the record of a dead letter stays; its id stays longer.
pub const DEAD_FOR: Duration = Duration::from_secs(604_800);
/// For how long the result of a job that is done stays.
pub const RESULT_FOR: Duration = Duration::from_secs(3_600);
/// For how long the word of a failure stays.
pub const FAILURE_FOR: Duration = Duration::from_secs(86_400);
/// Doublings of the pause before a retry: Bananas knows no bound, and 2^20 seconds are twelve days.
const MAX_DOUBLINGS: u32 = 20;

/// The pause after so many failures: 2^n seconds.
#[must_use]
pub fn pause(failures: u32) -> Duration {
    Duration::from_secs(1 << failures.min(MAX_DOUBLINGS))
}

/// What a record says of its job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It waits, for its time too when it has failed; Bananas leaves it so while it runs.
    Pending,
    /// It runs. No worker writes this, some readers know it.
    Processing,
    /// It is done.
    Completed,
    /// It failed for good.
    Failed,
    /// It waits for its time; Bananas leaves it so from then on.
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

    /// The word on the wire.
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

    /// What a word means, if it is known.
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
