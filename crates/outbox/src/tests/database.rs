//! The databases of the tests, and the differences of their SQL.

use sqlx::{AssertSqlSafe, Pool, Transaction};

use crate::Database;

/// A database of the tests.
pub(super) trait TestDatabase: Database {
    /// A value that lives as long as the database.
    type Home;
    /// Column of the time of the next attempt, the time, and an hour.
    const TIMES: (&'static str, &'static str, &'static str);
    /// Statement after which no row is held by a relay that has ended.
    const LAPSE: &'static str;
    /// Statement that breaks the connection on which the relay of the test `a_commit_wakes_the_relay` hears of rows.
    const INTERRUPTION: &'static str;

    async fn start(test: &'static str) -> Option<(Pool<Self>, Self::Home)>;
    async fn run(pool: &Pool<Self>, sql: String);
    async fn count(pool: &Pool<Self>, table: &str) -> i64;
    /// Inserts a number into a table of effects.
    fn effect(
        tx: &mut Transaction<'_, Self>,
        table: &str,
        number: i64,
    ) -> impl Future<Output = sqlx::Result<()>> + Send;
}

/// Defines the statements of a test database, whose text is the same for each.
macro_rules! statements {
    () => {
        async fn run(pool: &Pool<Self>, sql: String) {
            let sql = sqlx::raw_sql(AssertSqlSafe(sql));
            sql.execute(pool).await.unwrap();
        }

        async fn count(pool: &Pool<Self>, table: &str) -> i64 {
            let sql = AssertSqlSafe(format!("SELECT count(*) FROM {table}"));
            sqlx::query_scalar(sql).fetch_one(pool).await.unwrap()
        }

        async fn effect(
            tx: &mut Transaction<'_, Self>,
            table: &str,
            number: i64,
        ) -> sqlx::Result<()> {
            let sql = AssertSqlSafe(format!("INSERT INTO {table} VALUES ($1)"));
            let effect = sqlx::query(sql).bind(number);
            effect.execute(&mut **tx).await.map(drop)
        }
    };
}

#[cfg(feature = "postgres")]
impl TestDatabase for sqlx::Postgres {
    type Home = ();
    const TIMES: (&'static str, &'static str, &'static str) =
        ("due_at", "now()", "interval '1 hour'");
    const LAPSE: &'static str = "SELECT 1";
    const INTERRUPTION: &'static str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
         WHERE query LIKE 'LISTEN \"meshwork_outbox_a_commit_wakes_the_relay\"%'";

    async fn start(test: &'static str) -> Option<(Pool<Self>, ())> {
        use meshwork_test_servers::servers::RealPostgres;
        let start = move || RealPostgres::shared_for(test).map(RealPostgres::url);
        let url = tokio::task::spawn_blocking(start).await.unwrap()?;
        Some((Pool::connect(&url).await.unwrap(), ()))
    }

    statements!();
}

#[cfg(feature = "sqlite")]
impl TestDatabase for sqlx::Sqlite {
    type Home = tempfile::TempDir;
    const TIMES: (&'static str, &'static str, &'static str) = (
        "due_ms",
        "CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)",
        "3600000",
    );
    const LAPSE: &'static str = "UPDATE ROWS SET leased_ms = 0";
    const INTERRUPTION: &'static str = "SELECT 1";

    async fn start(_: &'static str) -> Option<(Pool<Self>, tempfile::TempDir)> {
        let home = tempfile::tempdir().unwrap();
        let file = sqlx::sqlite::SqliteConnectOptions::new()
            .filename(home.path().join("app.db"))
            .create_if_missing(true);
        Some((Pool::connect_with(file).await.unwrap(), home))
    }

    statements!();
}

/// Makes a test of each function for each database.
macro_rules! on_each_database {
    ($($name:ident)*) => {
        #[cfg(feature = "postgres")]
        mod postgres {
            $(crate::tests::database::test!($name, sqlx::Postgres);)*
        }
        #[cfg(feature = "sqlite")]
        mod sqlite {
            $(crate::tests::database::test!($name, sqlx::Sqlite);)*
        }
    };
}
macro_rules! test {
    ($name:ident, $database:ty) => {
        #[tokio::test]
        async fn $name() {
            let ground = crate::tests::Ground::<$database>::new(stringify!($name));
            if let Some(ground) = ground.await {
                super::$name(ground).await;
            }
        }
    };
}
pub(super) use {on_each_database, test};
