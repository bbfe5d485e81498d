//! The databases that an outbox can be in: each has one module with its statements.

mod listed;
#[cfg(feature = "postgres")]
mod postgres;
mod row;
#[cfg(feature = "sqlite")]
mod sqlite;

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use sqlx::error::DatabaseError;
use sqlx::{Pool, Transaction};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::Error;
use crate::tables::Tables;
pub use listed::{Backlog, Row};
pub(crate) use row::{Claimed, Claims, Held, Refused, Sent};

#[cfg(not(any(feature = "postgres", feature = "sqlite")))]
compile_error!("meshwork-outbox needs the feature `postgres` or `sqlite`");

/// A database that an outbox can be in: `sqlx::Postgres` with the feature `postgres`, `sqlx::Sqlite` with `sqlite`.
pub trait Database: Dialect {}

impl<D: Dialect> Database for D {}

/// Ids of rows, and the jobs in JSON.
type Jobs = Vec<(String, String)>;
/// Result of a statement.
type Done<T> = Result<T, sqlx::Error>;

/// The statements of an outbox. A relay takes the steps `claim`, `hold`, `settle`, and commits.
pub trait Dialect: sqlx::Database {
    /// Character between the name of a schema and that of a table.
    const SEPARATOR: char;
    /// The right of one relay to move rows, until it is released or the process ends.
    type Held: Send;

    /// Returns the statements that create the tables, each of which can be repeated.
    fn create(tables: &Tables) -> String;

    /// Creates the tables that do not exist, or none.
    fn migrate(pool: &Pool<Self>, tables: &Tables) -> impl Future<Output = Done<()>> + Send;

    /// Inserts a row, in the transaction of the user. Returns false if the id is there already.
    fn insert(
        tx: &mut Transaction<'_, Self>,
        tables: &Tables,
        row: (&str, &str),
        notifies: bool,
    ) -> impl Future<Output = Done<bool>> + Send;

    /// Inserts an id of a processed job. Returns false if it is there already.
    fn process(
        tx: &mut Transaction<'_, Self>,
        tables: &Tables,
        id: &str,
    ) -> impl Future<Output = Done<bool>> + Send;

    /// Deletes at most `most` ids of jobs that were processed more than `age_ms` ago.
    fn prune(
        pool: &Pool<Self>,
        tables: &Tables,
        age_ms: i64,
        most: i64,
    ) -> impl Future<Output = Done<u64>> + Send;

    /// Counts rows, up to `most` of each kind.
    fn backlog(
        pool: &Pool<Self>,
        tables: &Tables,
        most: i64,
    ) -> impl Future<Output = Done<Backlog>> + Send;

    /// Returns at most `most` rows with an error, whose numbers are greater than `after`.
    fn errors(
        pool: &Pool<Self>,
        tables: &Tables,
        after: i64,
        most: i64,
    ) -> impl Future<Output = Done<Vec<Row>>> + Send;

    /// Makes rows with an error due: those with these ids, or all.
    fn retry(
        pool: &Pool<Self>,
        tables: &Tables,
        ids: Option<&[String]>,
    ) -> impl Future<Output = Done<u64>> + Send;

    /// Deletes the rows with these ids.
    fn delete(
        pool: &Pool<Self>,
        tables: &Tables,
        ids: &[String],
    ) -> impl Future<Output = Done<u64>> + Send;

    /// Marks rows that are due, and that no other relay holds, as attempted at this time of the store.
    fn claim(
        pool: &Pool<Self>,
        tables: &Tables,
        now_ms: i64,
    ) -> impl Future<Output = Done<Claims>> + Send;

    /// Holds claimed rows, without those that another relay has claimed since. Returns their ids and jobs.
    fn hold(
        pool: &Pool<Self>,
        tables: &Tables,
        claimed: &[Claimed],
    ) -> impl Future<Output = Done<(Self::Held, Jobs)>> + Send;

    /// Keeps the rows from other relays for as long as it is polled.
    fn keep(held: &mut Self::Held) -> impl Future<Output = Infallible> + Send;

    /// Lets other relays have the rows.
    fn release(held: Self::Held) -> impl Future<Output = ()> + Send;

    /// Deletes the rows whose jobs the store has, and writes the errors of the others. The caller commits.
    fn settle(
        held: Self::Held,
        sent: &Sent,
    ) -> impl Future<Output = Done<Transaction<'static, Self>>> + Send;

    /// Notifies the relay of new rows until the returned set is dropped. A connection that says nothing for `probe` is
    /// probed. The set has an error if the relay cannot go on.
    fn watch(
        pool: &Pool<Self>,
        tables: &Tables,
        wakeup: &Arc<Notify>,
        probe: Duration,
    ) -> JoinSet<Error>;

    /// Names the database with its version, and says what is wrong and what is unusual about it and the tables.
    fn examine(
        pool: &Pool<Self>,
        tables: &Tables,
    ) -> impl Future<Output = Done<(String, Vec<String>, Vec<String>)>> + Send;

    /// Returns true if the table does not exist.
    fn is_missing_table(error: &dyn DatabaseError) -> bool;

    /// Returns true for an error of this database if the same call may succeed later.
    fn is_temporary(error: &dyn DatabaseError) -> bool;
}

/// Returns true for an error of any database if the same call may succeed later.
pub(crate) fn is_temporary(error: &dyn DatabaseError) -> bool {
    let databases: &[fn(&dyn DatabaseError) -> bool] = &[
        #[cfg(feature = "postgres")]
        <sqlx::Postgres as Dialect>::is_temporary,
        #[cfg(feature = "sqlite")]
        <sqlx::Sqlite as Dialect>::is_temporary,
    ];
    databases.iter().any(|is_temporary| is_temporary(error))
}
