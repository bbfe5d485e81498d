//! Rows that wait or are set aside, for operators.

use sqlx::{AssertSqlSafe, PgPool, Row as _};

use crate::{Error, Outbox};

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

impl Outbox {
    /// Counts the rows.
    ///
    /// # Errors
    /// The database refuses the call.
    pub async fn backlog(&self, pool: &PgPool) -> Result<Backlog, Error> {
        let row = sqlx::query(AssertSqlSafe(self.tables.backlog.clone()))
            .bind(MAX_COUNT)
            .fetch_one(pool)
            .await
            .map_err(|error| Error::of(error, &self.tables.outbox))?;
        let number = |name| -> Result<u64, sqlx::Error> {
            let value: Option<i64> = row.try_get(name)?;
            Ok(value
                .and_then(|value| u64::try_from(value).ok())
                .unwrap_or_default())
        };
        Ok(Backlog {
            waiting: number("waiting")?,
            oldest_ms: number("oldest_ms")?,
            set_aside: number("set_aside")?,
        })
    }

    /// Returns up to 1,000 rows with an error, the earliest first, after the row `after`.
    ///
    /// # Errors
    /// The database refuses the call.
    pub async fn errors(&self, pool: &PgPool, after: Option<&Row>) -> Result<Vec<Row>, Error> {
        let rows = sqlx::query(AssertSqlSafe(self.tables.list.clone()))
            .bind(after.map_or(0, |row| row.seq))
            .bind(MAX_ROWS)
            .fetch_all(pool)
            .await
            .map_err(|error| Error::of(error, &self.tables.outbox))?;
        let read = |row: sqlx::postgres::PgRow| {
            Ok(Row {
                id: row.try_get("id")?,
                job: row.try_get("job")?,
                attempts: row.try_get::<i32, _>("attempts")?.unsigned_abs(),
                error: row.try_get("error")?,
                set_aside: row.try_get("set_aside")?,
                created_ms: row.try_get::<i64, _>("created_ms")?.unsigned_abs(),
                seq: row.try_get("seq")?,
            })
        };
        rows.into_iter().map(read).collect()
    }

    /// Lets relays try rows with an error once more: these ids, or all. Returns their number.
    ///
    /// # Errors
    /// The database refuses the call.
    pub async fn retry(&self, pool: &PgPool, ids: Option<&[String]>) -> Result<u64, Error> {
        self.change(pool, &self.tables.retry, ids).await
    }

    /// Deletes these rows. A relay that is moving one enqueues its job. Returns the number of rows that existed.
    ///
    /// # Errors
    /// The database refuses the call.
    pub async fn delete(&self, pool: &PgPool, ids: &[String]) -> Result<u64, Error> {
        self.change(pool, &self.tables.delete, Some(ids)).await
    }

    async fn change(&self, pool: &PgPool, sql: &str, ids: Option<&[String]>) -> Result<u64, Error> {
        let done = sqlx::query(AssertSqlSafe(sql))
            .bind(ids)
            .execute(pool)
            .await
            .map_err(|error| Error::of(error, &self.tables.outbox))?;
        Ok(done.rows_affected())
    }
}
