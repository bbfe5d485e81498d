//! The databases of the scenario, and its own statements.

use meshwork_outbox::Database;
use meshwork_outbox::sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use meshwork_outbox::sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use meshwork_outbox::sqlx::{self, AssertSqlSafe, Pool, Postgres, Sqlite, Transaction};

use super::ACQUIRE;

/// Tables of the scenario: each transaction's own row, the runs of jobs, and their effects.
const TABLES: &str = "CREATE TABLE orders (number bigint PRIMARY KEY, job text NOT NULL); \
                      CREATE TABLE runs (job text NOT NULL); CREATE TABLE effects (number bigint NOT NULL)";

/// Kind of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A PostgreSQL server.
    Postgres,
    /// A file of SQLite.
    Sqlite,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 2] = [Self::Postgres, Self::Sqlite];

    /// Returns the name of the scenario with this database.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Postgres => "outbox",
            Self::Sqlite => "outbox-sqlite",
        }
    }

    /// Returns the kind of the database with this URL.
    pub(super) fn of(url: &str) -> Self {
        match url.starts_with("sqlite:") {
            true => Self::Sqlite,
            false => Self::Postgres,
        }
    }
}

type Done<T> = Result<T, sqlx::Error>;

/// A database, with the statements of the scenario.
pub(super) trait Scene: Database {
    /// Returns connections, which may be broken for a while.
    fn connections(url: &str, most: u32) -> Done<Pool<Self>>;
    /// Begins a transaction that writes.
    fn begin(pool: &Pool<Self>) -> impl Future<Output = Done<Transaction<'static, Self>>> + Send;
    fn create_tables(pool: &Pool<Self>) -> impl Future<Output = Done<()>> + Send;
    fn has_order(
        tx: &mut Transaction<'_, Self>,
        number: i64,
    ) -> impl Future<Output = Done<bool>> + Send;
    fn add_order(
        tx: &mut Transaction<'_, Self>,
        number: i64,
        job: &str,
    ) -> impl Future<Output = Done<()>> + Send;
    fn add_run(pool: &Pool<Self>, job: &str) -> impl Future<Output = Done<()>> + Send;
    fn add_effect(
        tx: &mut Transaction<'_, Self>,
        number: i64,
    ) -> impl Future<Output = Done<()>> + Send;
    /// Returns number and job of each order.
    fn orders(pool: &Pool<Self>) -> impl Future<Output = Done<Vec<(i64, String)>>> + Send;
    /// Returns each number with an effect, and how many it has.
    fn effects(pool: &Pool<Self>) -> impl Future<Output = Done<Vec<(i64, i64)>>> + Send;
    fn count(pool: &Pool<Self>, table: &'static str) -> impl Future<Output = Done<i64>> + Send;
}

/// Defines the statements, whose text is the same for each database.
macro_rules! statements {
    () => {
        async fn create_tables(pool: &Pool<Self>) -> Done<()> {
            sqlx::raw_sql(TABLES).execute(pool).await.map(drop)
        }

        async fn has_order(tx: &mut Transaction<'_, Self>, number: i64) -> Done<bool> {
            let known = sqlx::query("SELECT 1 FROM orders WHERE number = $1").bind(number);
            Ok(known.fetch_optional(&mut **tx).await?.is_some())
        }

        async fn add_order(tx: &mut Transaction<'_, Self>, number: i64, job: &str) -> Done<()> {
            let order = sqlx::query("INSERT INTO orders (number, job) VALUES ($1, $2)");
            let order = order.bind(number).bind(job);
            order.execute(&mut **tx).await.map(drop)
        }

        async fn add_run(pool: &Pool<Self>, job: &str) -> Done<()> {
            let run = sqlx::query("INSERT INTO runs (job) VALUES ($1)").bind(job);
            run.execute(pool).await.map(drop)
        }

        async fn add_effect(tx: &mut Transaction<'_, Self>, number: i64) -> Done<()> {
            let effect = sqlx::query("INSERT INTO effects (number) VALUES ($1)").bind(number);
            effect.execute(&mut **tx).await.map(drop)
        }

        async fn orders(pool: &Pool<Self>) -> Done<Vec<(i64, String)>> {
            let orders = sqlx::query_as("SELECT number, job FROM orders");
            orders.fetch_all(pool).await
        }

        async fn effects(pool: &Pool<Self>) -> Done<Vec<(i64, i64)>> {
            let effects = sqlx::query_as("SELECT number, count(*) FROM effects GROUP BY number");
            effects.fetch_all(pool).await
        }

        async fn count(pool: &Pool<Self>, table: &'static str) -> Done<i64> {
            let sql = AssertSqlSafe(format!("SELECT count(*) FROM {table}"));
            sqlx::query_scalar(sql).fetch_one(pool).await
        }
    };
}

impl Scene for Postgres {
    fn connections(url: &str, most: u32) -> Done<Pool<Self>> {
        let options: PgConnectOptions = url.parse()?;
        let pool = PgPoolOptions::new().max_connections(most);
        Ok(pool.acquire_timeout(ACQUIRE).connect_lazy_with(options))
    }

    async fn begin(pool: &Pool<Self>) -> Done<Transaction<'static, Self>> {
        pool.begin().await
    }

    statements!();
}

impl Scene for Sqlite {
    fn connections(url: &str, most: u32) -> Done<Pool<Self>> {
        let options: SqliteConnectOptions = url.parse()?;
        let pool = SqlitePoolOptions::new().max_connections(most);
        Ok(pool.acquire_timeout(ACQUIRE).connect_lazy_with(options))
    }

    async fn begin(pool: &Pool<Self>) -> Done<Transaction<'static, Self>> {
        pool.begin_with("BEGIN IMMEDIATE").await
    }

    statements!();
}
