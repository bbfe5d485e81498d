//! Rows that wait or are set aside, for operators.

use sqlx::Pool;

use crate::{Database, Error, Outbox};

/// Most rows in one call of [`Outbox::errors`].
const MAX_ROWS: i64 = 1000;
/// Number up to which [`Outbox::backlog`] counts: a count reads each row.
const MAX_COUNT: i64 = 100_000;

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
    /// True if no relay moves it before [`Outbox::retry`]; else a relay tries again.
    pub set_aside: bool,
    /// Time of the transaction that wrote it, in milliseconds since 1970.
    pub created_ms: u64,
    #[serde(skip)]
    seq: i64,
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

impl Outbox {
    /// Counts the rows.
    ///
    /// # Errors
    /// The database refuses the call.
    pub async fn backlog<D: Database>(&self, pool: &Pool<D>) -> Result<Backlog, Error> {
        let backlog = D::backlog(pool, &self.tables, MAX_COUNT).await;
        backlog.map_err(|error| self.error::<D>(error))
    }

    /// Returns up to 1,000 rows with an error, the earliest first, after the row `after`.
    ///
    /// # Errors
    /// The database refuses the call.
    pub async fn errors<D: Database>(
        &self,
        pool: &Pool<D>,
        after: Option<&Row>,
    ) -> Result<Vec<Row>, Error> {
        let after = after.map_or(0, |row| row.seq);
        let rows = D::errors(pool, &self.tables, after, MAX_ROWS).await;
        rows.map_err(|error| self.error::<D>(error))
    }

    /// Lets relays try rows with an error once more: these ids, or all. Returns their number.
    ///
    /// # Errors
    /// The database refuses the call.
    pub async fn retry<D: Database>(
        &self,
        pool: &Pool<D>,
        ids: Option<&[String]>,
    ) -> Result<u64, Error> {
        let retried = D::retry(pool, &self.tables, ids).await;
        retried.map_err(|error| self.error::<D>(error))
    }

    /// Deletes these rows. A relay that is moving one enqueues its job. Returns the number of rows that existed.
    ///
    /// # Errors
    /// The database refuses the call.
    pub async fn delete<D: Database>(&self, pool: &Pool<D>, ids: &[String]) -> Result<u64, Error> {
        let deleted = D::delete(pool, &self.tables, ids).await;
        deleted.map_err(|error| self.error::<D>(error))
    }
}
