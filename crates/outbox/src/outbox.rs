//! The outbox: jobs and effects in transactions of the user.

use std::sync::Arc;
use std::time::Duration;

use meshwork::{Enqueueable, JobContext};
use sqlx::{Pool, Transaction};

use crate::enqueue::Enqueue;
use crate::tables::{InvalidSchema, Tables};
use crate::{Database, Error};

/// Most rows that one call of [`Outbox::prune_processed`] deletes: it holds their locks until its end.
pub(crate) const MAX_PRUNED: i64 = 10_000;

/// Two tables of a database: jobs on their way to the store, and ids of jobs whose effect is applied. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Outbox {
    pub(crate) tables: Arc<Tables>,
    notifies: bool,
}

impl Outbox {
    /// Uses the tables `meshwork_outbox` and `meshwork_processed` of the search path, or of the file of SQLite.
    #[must_use]
    #[allow(
        clippy::new_without_default,
        reason = "there is one way to make an outbox"
    )]
    pub fn new() -> Self {
        // Only the name of a schema can be invalid.
        let tables = Tables::new(None).unwrap_or_else(|_| unreachable!());
        Self::with(tables)
    }

    /// Uses the tables of this schema. SQLite has no schemas: there the name begins those of the tables, as in
    /// `jobs_meshwork_outbox`.
    ///
    /// # Errors
    /// The name has characters other than a-z, 0-9 and `_`, begins with a digit, or has more than 40 characters.
    pub fn in_schema(schema: &str) -> Result<Self, InvalidSchema> {
        Tables::new(Some(schema)).map(Self::with)
    }

    fn with(tables: Tables) -> Self {
        Self {
            tables: Arc::new(tables),
            notifies: true,
        }
    }

    /// Sends no notification with a new job: relays find it when they poll. PostgreSQL commits transactions that notify
    /// one after the other, which limits databases with thousands of them per second. SQLite needs no notifications.
    #[must_use]
    pub fn without_notifications(mut self) -> Self {
        self.notifies = false;
        self
    }

    pub(crate) fn notifies(&self) -> bool {
        self.notifies
    }

    /// Returns the SQL that creates the tables, for migrations of your own. Each statement can be repeated.
    #[must_use]
    pub fn schema_sql<D: Database>(&self) -> String {
        D::create(&self.tables)
    }

    /// Creates the tables that do not exist, with [`Outbox::schema_sql`]. No other call creates or changes a table. A file
    /// of SQLite gets the journal mode WAL, which it keeps.
    ///
    /// # Errors
    /// The database refuses a statement; no table was created then.
    pub async fn migrate<D: Database>(&self, pool: &Pool<D>) -> Result<(), Error> {
        Ok(D::migrate(pool, &self.tables).await?)
    }

    /// Enqueues a job when the transaction commits: a value of a [`Job`](meshwork::Job), or a
    /// [`JobRequest`](meshwork::JobRequest). Await the call, after further options.
    ///
    /// The id of the row is that of the job. An id that is in the outbox already stays, as one that is in the store.
    ///
    /// # Errors
    /// The job is invalid; nothing is written, and the transaction can continue. Or the database refuses the call.
    pub fn enqueue<'a, 't, D: Database, E: Enqueueable>(
        &'a self,
        tx: &'a mut Transaction<'t, D>,
        job: E,
    ) -> Enqueue<'a, 't, D, E> {
        Enqueue::new(self, tx, job)
    }

    /// Returns true for the first transaction that commits with this job, and false for each later one. A handler that
    /// applies the effect of the job in this transaction if it is true applies it once, however often the job runs.
    /// While another transaction of this job is open, the call waits for its end.
    ///
    /// # Errors
    /// The database refuses the call.
    pub async fn processed_once<D: Database>(
        &self,
        tx: &mut Transaction<'_, D>,
        context: &JobContext,
    ) -> Result<bool, Error> {
        self.first_time(tx, &context.job_id).await
    }

    pub(crate) async fn first_time<D: Database>(
        &self,
        tx: &mut Transaction<'_, D>,
        job_id: &str,
    ) -> Result<bool, Error> {
        let first = D::process(tx, &self.tables, job_id).await;
        first.map_err(|error| self.error_of_processed::<D>(error))
    }

    /// Deletes ids of jobs that [`Outbox::processed_once`] stored longer ago, at most 10,000 in one call. Returns their
    /// number. A [`Relay`](crate::Relay) calls it.
    ///
    /// # Errors
    /// The database refuses the call.
    pub async fn prune_processed<D: Database>(
        &self,
        pool: &Pool<D>,
        age: Duration,
    ) -> Result<u64, Error> {
        let age_ms = i64::try_from(age.as_millis()).unwrap_or(i64::MAX >> 12);
        let pruned = D::prune(pool, &self.tables, age_ms, MAX_PRUNED).await;
        pruned.map_err(|error| self.error_of_processed::<D>(error))
    }

    /// Returns the error of a statement on the table of rows.
    pub(crate) fn error<D: Database>(&self, error: sqlx::Error) -> Error {
        Error::of::<D>(error, self.tables.outbox(D::SEPARATOR))
    }

    fn error_of_processed<D: Database>(&self, error: sqlx::Error) -> Error {
        Error::of::<D>(error, self.tables.processed(D::SEPARATOR))
    }
}
