//! Rows that wait or are set aside, for operators.

use sqlx::Pool;

use crate::database::{Backlog, Row};
use crate::{Database, Error, Outbox};

/// Most rows in one call of [`Outbox::errors`].
const MAX_ROWS: i64 = 1000;
/// Number up to which [`Outbox::backlog`] counts: a count reads each row.
const MAX_COUNT: i64 = 100_000;

/// State of a database, for operators.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Examined {
    /// Name and version, as `PostgreSQL 15.3`.
    pub database: String,
    /// Reasons why a relay cannot move rows.
    pub faults: Vec<String>,
    /// Unusual conditions, with the remedies.
    pub remarks: Vec<String>,
    /// Numbers of rows.
    pub backlog: Backlog,
}

impl Outbox {
    /// Examines the database and its tables.
    ///
    /// # Errors
    /// The database refuses a call, or the tables do not exist.
    pub async fn examine<D: Database>(&self, pool: &Pool<D>) -> Result<Examined, Error> {
        let backlog = self.backlog(pool).await?;
        let (database, faults, remarks) = D::examine(pool, &self.tables).await?;
        Ok(Examined {
            database,
            faults,
            remarks,
            backlog,
        })
    }

    /// Checks a row that another program writes: the id, and the job in JSON. Needs no database.
    ///
    /// # Errors
    /// A relay would set the row aside.
    pub fn check_row(id: &str, job: &str) -> Result<(), Error> {
        let checked = crate::relay::read(id, job).map(drop);
        checked.map_err(Error::Row)
    }

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
