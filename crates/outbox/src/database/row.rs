//! A row on its way through the steps of a batch.

/// Most rows of a batch: they are held during one call to the store.
pub(crate) const MAX_ROWS: i64 = 500;
/// Most bytes of a batch, unless a single row has more: a bound on memory.
const MAX_BYTES: i64 = 16 * 1024 * 1024;
/// Greatest length of a stored error, in bytes.
const MAX_ERROR: usize = 2000;

/// A row that is marked as attempted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
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

/// Claimed rows in the order of their numbers.
#[derive(Debug, Default)]
pub struct Claims {
    pub(crate) rows: Vec<Claimed>,
    /// True if there may be more rows that are due.
    pub(crate) more: bool,
}

/// Number, id, claims, attempts, bytes of the job, and time of the first earlier attempt of a row.
type Columns = (i64, String, i32, i32, i64, Option<i64>);

impl Claims {
    /// Takes the first rows, up to the bound on bytes.
    pub(crate) fn within_bounds(rows: Vec<Columns>) -> Self {
        let found = rows.len();
        let rows = rows.into_iter().map(|row| {
            let (seq, id, claims, attempts, bytes, earlier_ms) = row;
            Claimed {
                seq,
                id,
                claims,
                attempts,
                bytes,
                earlier_ms: earlier_ms.map(i64::cast_unsigned),
            }
        });
        let mut rows: Vec<_> = rows.collect();
        rows.sort_by_key(|row| row.seq);
        let mut bytes = 0;
        let within = rows.iter().take_while(|row| {
            bytes += row.bytes;
            bytes <= MAX_BYTES
        });
        rows.truncate(within.count().max(1));
        let more = rows.len() < found || found as i64 == MAX_ROWS;
        Self { rows, more }
    }
}

/// A row that this relay holds.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) claimed: Claimed,
    /// The job, in JSON.
    pub(crate) job: String,
}

/// Outcome of a batch.
#[derive(Debug, Default)]
pub struct Sent {
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
        self.refused.push(Refused {
            id: id.to_owned(),
            error,
            pause_ms,
            uncertain,
        });
    }
}
