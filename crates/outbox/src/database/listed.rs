//! Rows and their numbers, as operators see them.

/// Number and age of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Backlog {
    /// Rows that a relay has to move, counted up to 100,000.
    pub waiting: u64,
    /// Age of the one that is next, in milliseconds.
    pub oldest_ms: u64,
    /// Rows that no relay moves, because of their error, counted up to 100,000.
    pub set_aside: u64,
}

/// A row that the store refused.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Row {
    /// Id of the row and of its job.
    pub id: String,
    /// The job, in JSON.
    pub job: String,
    /// Number of attempts that the store refused. Outages of the store do not count.
    pub attempts: u32,
    /// The last error.
    pub error: String,
    /// True if no relay moves it before [`Outbox::retry`](crate::Outbox::retry); else a relay tries again.
    pub set_aside: bool,
    /// Time of the transaction that wrote it, in milliseconds since 1970.
    pub created_ms: u64,
    #[serde(skip)]
    pub(crate) seq: i64,
}

impl Backlog {
    /// Reads the number of rows that wait, the age of the next one, and the number of rows that are set aside.
    pub(crate) fn from_columns((waiting, oldest_ms, set_aside): (i64, Option<i64>, i64)) -> Self {
        let number = |value| u64::try_from(value).unwrap_or_default();
        Self {
            waiting: number(waiting),
            oldest_ms: number(oldest_ms.unwrap_or_default()),
            set_aside: number(set_aside),
        }
    }
}

impl Row {
    /// Reads the number, id, job, attempts, error, whether it is set aside, and time.
    pub(crate) fn from_columns(columns: (i64, String, String, i32, String, bool, i64)) -> Self {
        let (seq, id, job, attempts, error, set_aside, created_ms) = columns;
        Self {
            id,
            job,
            attempts: attempts.unsigned_abs(),
            error,
            set_aside,
            created_ms: created_ms.unsigned_abs(),
            seq,
        }
    }
}
