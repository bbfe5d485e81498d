//! A row on its way through the steps of a batch.

use tracing::warn;

/// Greatest length of a stored error, in bytes.
const MAX_ERROR: usize = 2000;

/// A row that is marked as attempted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claimed {
    pub(crate) seq: i64,
    pub(crate) id: String,
    /// Number of claims: a later claim invalidates this one.
    pub(crate) claims: i32,
    /// Number of attempts that the store refused so far.
    pub(crate) attempts: i32,
    pub(crate) bytes: i64,
    /// Time of the first earlier attempt that may have stored the job, by the store's clock.
    pub(crate) earlier_ms: Option<u64>,
}

/// A row that this relay has locked.
#[derive(Debug)]
pub(crate) struct Locked {
    pub(crate) claimed: Claimed,
    /// The job, in JSON.
    pub(crate) job: String,
}

/// Outcome of a batch.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    /// Ids of the rows whose jobs the store has.
    pub(crate) stored: Vec<String>,
    pub(crate) refused: Vec<Refused>,
}

/// A row whose job the store does not have.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) id: String,
    pub(crate) error: String,
    /// Pause before the next attempt, in milliseconds; `None` sets the row aside.
    pub(crate) pause_ms: Option<i64>,
    /// True if an attempt may have stored the job.
    pub(crate) uncertain: bool,
}

impl Sent {
    pub(crate) fn refuse(
        &mut self,
        id: &str,
        error: String,
        pause_ms: Option<i64>,
        uncertain: bool,
    ) {
        let mut error = error;
        error.truncate(error.floor_char_boundary(MAX_ERROR));
        match pause_ms {
            None => warn!(job = id, %error, "outbox row set aside"),
            Some(pause_ms) => warn!(job = id, %error, pause_ms, "outbox row refused"),
        }
        self.refused.push(Refused {
            id: id.to_owned(),
            error,
            pause_ms,
            uncertain,
        });
    }
}
