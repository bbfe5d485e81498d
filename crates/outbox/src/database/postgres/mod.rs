//! PostgreSQL. A relay holds rows by their locks, which end with its connection.
//!
//! No statement has a name, and each is in a transaction: a pooler as PgBouncer gives each transaction another connection, and
//! its clients share the names on it.

mod wakeup;

use std::convert::Infallible;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use sqlx::error::DatabaseError;
use sqlx::postgres::{PgArguments, PgDatabaseError};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, PgPool, Postgres, Transaction};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::listed::{Backlog, Row};
use super::row::{Claimed, Claims, MAX_ROWS, Refused, Sent};
use super::{Dialect, Done, Jobs};
use crate::Error;
use crate::tables::Tables;

/// Key of the lock under which tables are created: two programs that create one table at once may fail.
const MIGRATION_LOCK: i64 = 0x6d77_6f75_7462;
/// Begins a transaction. The server ends it when the relay is silent for 10 s, as one that is stopped (SIGSTOP, a suspended
/// machine) or cut off: other relays have its rows then.
const BEGIN: &str = "BEGIN; SET LOCAL idle_in_transaction_session_timeout = 10000";
/// Interval in which a relay that holds rows tells the server that it is there.
const SIGN_OF_LIFE: Duration = Duration::from_secs(3);
/// Code for a table that does not exist.
const UNDEFINED_TABLE: &str = "42P01";
/// Beginnings of the codes of errors that pass: the connection broke, or a pooler has no server (08); the transaction was ended
/// since it was silent (25P03); a deadlock (40); the server has no memory or connection (53); it starts, shuts down or ends a
/// connection (57P).
const TEMPORARY: [&str; 5] = ["08", "25P03", "40", "53", "57P"];

/// Locked rows: their transaction, and the name of their table.
pub struct Locks {
    tx: Transaction<'static, Postgres>,
    outbox: String,
}

/// Returns the channel of notifications about new rows.
fn channel(tables: &Tables) -> String {
    match tables.schema() {
        Some(schema) => format!("meshwork_outbox_{schema}"),
        None => "meshwork_outbox".to_owned(),
    }
}

impl Dialect for Postgres {
    const SEPARATOR: char = '.';
    type Held = Locks;

    fn create(tables: &Tables) -> String {
        let (outbox, processed) = (
            tables.outbox(Self::SEPARATOR),
            tables.processed(Self::SEPARATOR),
        );
        let mut sql = String::new();
        if let Some(schema) = tables.schema() {
            // A string takes every write.
            let _ = writeln!(sql, "CREATE SCHEMA IF NOT EXISTS {schema};");
        }
        let _ = write!(
            sql,
            "CREATE TABLE IF NOT EXISTS {outbox} (
    id text PRIMARY KEY,
    seq bigint GENERATED ALWAYS AS IDENTITY,
    job text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    due_at timestamptz NOT NULL DEFAULT now(),
    claims int NOT NULL DEFAULT 0,
    attempts int NOT NULL DEFAULT 0,
    attempted_ms bigint,
    error text
);
CREATE INDEX IF NOT EXISTS meshwork_outbox_due ON {outbox} (due_at, seq);
CREATE INDEX IF NOT EXISTS meshwork_outbox_errors ON {outbox} (seq) WHERE error IS NOT NULL;
CREATE TABLE IF NOT EXISTS {processed} (
    id text PRIMARY KEY,
    processed_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX IF NOT EXISTS meshwork_processed_at ON {processed} (processed_at);
"
        );
        sql
    }

    async fn migrate(pool: &PgPool, tables: &Tables) -> Done<()> {
        let mut tx = pool.begin_with(BEGIN).await?;
        let lock = sqlx::query("SELECT pg_advisory_xact_lock($1)").persistent(false);
        lock.bind(MIGRATION_LOCK).execute(&mut *tx).await?;
        sqlx::raw_sql(AssertSqlSafe(Self::create(tables)))
            .execute(&mut *tx)
            .await?;
        tx.commit().await
    }

    async fn insert(
        tx: &mut Transaction<'_, Self>,
        tables: &Tables,
        (id, job): (&str, &str),
        notifies: bool,
    ) -> Done<bool> {
        let outbox = tables.outbox(Self::SEPARATOR);
        let new = format!(
            "WITH new AS (INSERT INTO {outbox} (id, job) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING RETURNING 1) \
             SELECT count(*)"
        );
        let sql = match notifies {
            true => format!("{new}, pg_notify($3, '')::text FROM new"),
            false => format!("{new} FROM new"),
        };
        let query = sqlx::query_scalar(AssertSqlSafe(sql)).persistent(false);
        let mut query = query.bind(id).bind(job);
        if notifies {
            query = query.bind(channel(tables));
        }
        let new: i64 = query.fetch_one(&mut **tx).await?;
        Ok(new > 0)
    }

    async fn process(tx: &mut Transaction<'_, Self>, tables: &Tables, id: &str) -> Done<bool> {
        let processed = tables.processed(Self::SEPARATOR);
        let sql = format!("INSERT INTO {processed} (id) VALUES ($1) ON CONFLICT (id) DO NOTHING");
        let done = sqlx::query(AssertSqlSafe(sql)).persistent(false).bind(id);
        Ok(done.execute(&mut **tx).await?.rows_affected() > 0)
    }

    async fn prune(pool: &PgPool, tables: &Tables, age_ms: i64, most: i64) -> Done<u64> {
        let processed = tables.processed(Self::SEPARATOR);
        let sql = format!(
            "DELETE FROM {processed} WHERE id IN (SELECT id FROM {processed} \
             WHERE processed_at < now() - $1 * interval '1 millisecond' LIMIT $2)"
        );
        let done = sqlx::query(AssertSqlSafe(sql)).bind(age_ms).bind(most);
        changed(pool, done).await
    }

    async fn backlog(pool: &PgPool, tables: &Tables, most: i64) -> Done<Backlog> {
        let outbox = tables.outbox(Self::SEPARATOR);
        let sql = format!(
            "SELECT (SELECT count(*) FROM (SELECT FROM {outbox} WHERE due_at < 'infinity' LIMIT $1) AS w), \
             (SELECT (1000 * extract(epoch FROM clock_timestamp() - created_at))::bigint \
             FROM {outbox} WHERE due_at < 'infinity' ORDER BY due_at, seq LIMIT 1), \
             (SELECT count(*) FROM (SELECT FROM {outbox} WHERE due_at = 'infinity' LIMIT $1) AS e)"
        );
        let mut tx = pool.begin_with(BEGIN).await?;
        let counts = sqlx::query_as(AssertSqlSafe(sql)).persistent(false);
        let counts = counts.bind(most).fetch_one(&mut *tx).await?;
        tx.commit().await?;
        Ok(Backlog::from_columns(counts))
    }

    async fn errors(pool: &PgPool, tables: &Tables, after: i64, most: i64) -> Done<Vec<Row>> {
        let outbox = tables.outbox(Self::SEPARATOR);
        let sql = format!(
            "SELECT seq, id, job, attempts, error, due_at = 'infinity', \
             (1000 * extract(epoch FROM created_at))::bigint \
             FROM {outbox} WHERE error IS NOT NULL AND seq > $1 ORDER BY seq LIMIT $2"
        );
        let mut tx = pool.begin_with(BEGIN).await?;
        let rows = sqlx::query_as(AssertSqlSafe(sql)).persistent(false);
        let rows = rows.bind(after).bind(most).fetch_all(&mut *tx).await?;
        tx.commit().await?;
        Ok(rows.into_iter().map(Row::from_columns).collect())
    }

    async fn retry(pool: &PgPool, tables: &Tables, ids: Option<&[String]>) -> Done<u64> {
        let outbox = tables.outbox(Self::SEPARATOR);
        let sql = format!(
            "UPDATE {outbox} SET due_at = now(), error = NULL, attempted_ms = NULL \
             WHERE error IS NOT NULL AND ($1::text[] IS NULL OR id = ANY($1))"
        );
        let done = sqlx::query(AssertSqlSafe(sql)).bind(ids);
        changed(pool, done).await
    }

    async fn delete(pool: &PgPool, tables: &Tables, ids: &[String]) -> Done<u64> {
        let done = sqlx::query(AssertSqlSafe(deletion(&tables.outbox(Self::SEPARATOR)))).bind(ids);
        changed(pool, done).await
    }

    async fn claim(pool: &PgPool, tables: &Tables, now_ms: i64) -> Done<Claims> {
        let outbox = tables.outbox(Self::SEPARATOR);
        let sql = format!(
            "WITH due AS (SELECT id, attempted_ms FROM {outbox} WHERE due_at <= now() \
             ORDER BY due_at, seq LIMIT $1 FOR UPDATE SKIP LOCKED) \
             UPDATE {outbox} AS o SET claims = o.claims + 1, attempted_ms = coalesce(o.attempted_ms, $2) \
             FROM due WHERE o.id = due.id \
             RETURNING o.seq, o.id, o.claims, o.attempts, octet_length(o.job)::bigint, due.attempted_ms"
        );
        let mut tx = pool.begin_with(BEGIN).await?;
        let rows = sqlx::query_as(AssertSqlSafe(sql)).persistent(false);
        let rows = rows.bind(MAX_ROWS).bind(now_ms).fetch_all(&mut *tx).await?;
        tx.commit().await?;
        Ok(Claims::within_bounds(rows))
    }

    async fn hold(pool: &PgPool, tables: &Tables, claimed: &[Claimed]) -> Done<(Locks, Jobs)> {
        let outbox = tables.outbox(Self::SEPARATOR);
        let ids: Vec<_> = claimed.iter().map(|row| row.id.as_str()).collect();
        let claims: Vec<_> = claimed.iter().map(|row| row.claims).collect();
        let sql = format!(
            "SELECT o.id, o.job FROM {outbox} AS o JOIN unnest($1::text[], $2::int[]) AS claimed(id, claims) \
             ON o.id = claimed.id AND o.claims = claimed.claims FOR UPDATE OF o SKIP LOCKED"
        );
        let mut tx = pool.begin_with(BEGIN).await?;
        let rows = sqlx::query_as(AssertSqlSafe(sql)).persistent(false);
        let rows = rows.bind(ids).bind(claims).fetch_all(&mut *tx).await?;
        Ok((Locks { tx, outbox }, rows))
    }

    async fn keep(held: &mut Locks) -> Infallible {
        loop {
            sleep(SIGN_OF_LIFE).await;
            // A connection that broke fails the next step.
            sqlx::raw_sql("SELECT 1").execute(&mut *held.tx).await.ok();
        }
    }

    async fn release(held: Locks) {
        // A broken connection has no locks.
        held.tx.rollback().await.ok();
    }

    async fn settle(held: Locks, sent: &Sent) -> Done<Transaction<'static, Self>> {
        let Locks { mut tx, outbox } = held;
        if !sent.stored.is_empty() {
            let stored = sqlx::query(AssertSqlSafe(deletion(&outbox))).persistent(false);
            stored.bind(&sent.stored).execute(&mut *tx).await?;
        }
        if sent.refused.is_empty() {
            return Ok(tx);
        }
        let sql = format!(
            "UPDATE {outbox} AS o SET error = refused.error, attempts = o.attempts + 1, \
             attempted_ms = CASE WHEN refused.uncertain THEN o.attempted_ms END, \
             due_at = CASE WHEN refused.pause_ms IS NULL THEN 'infinity' \
             ELSE now() + refused.pause_ms * interval '1 millisecond' END \
             FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bool[]) \
             AS refused(id, error, pause_ms, uncertain) WHERE o.id = refused.id"
        );
        let column = |of: fn(&Refused) -> String| sent.refused.iter().map(of).collect::<Vec<_>>();
        let pauses: Vec<Option<i64>> = sent.refused.iter().map(|row| row.pause_ms).collect();
        let uncertain: Vec<bool> = sent.refused.iter().map(|row| row.uncertain).collect();
        sqlx::query(AssertSqlSafe(sql))
            .persistent(false)
            .bind(column(|row| row.id.clone()))
            .bind(column(|row| row.error.clone()))
            .bind(pauses)
            .bind(uncertain)
            .execute(&mut *tx)
            .await?;
        Ok(tx)
    }

    fn watch(
        pool: &PgPool,
        tables: &Tables,
        wakeup: &Arc<Notify>,
        probe: Duration,
    ) -> JoinSet<Error> {
        wakeup::listen(pool, channel(tables), Arc::clone(wakeup), probe)
    }

    async fn examine(pool: &PgPool, tables: &Tables) -> Done<(String, Vec<String>, Vec<String>)> {
        let outbox = tables.outbox(Self::SEPARATOR);
        let mut tx = pool.begin_with(BEGIN).await?;
        let sql = "SELECT current_setting('server_version'), array(SELECT right_ FROM \
             unnest(ARRAY['SELECT', 'UPDATE', 'DELETE']) AS right_ WHERE NOT has_table_privilege($1, right_))";
        let found = sqlx::query_as(sql).persistent(false).bind(&outbox);
        let (version, lacks): (String, Vec<String>) = found.fetch_one(&mut *tx).await?;
        tx.commit().await?;
        let lacks = lacks.into_iter();
        let faults = lacks.map(|right| format!("the user lacks {right} on {outbox}"));
        let pooled = "the database is behind a pooler, which passes no notifications: relays find rows by polling (--poll)";
        let is_pooled = wakeup::is_pooled(&pool.connect_options()).await?;
        let remarks = is_pooled.then(|| pooled.to_owned());
        Ok((
            format!("PostgreSQL {version}"),
            faults.collect(),
            remarks.into_iter().collect(),
        ))
    }

    fn is_missing_table(error: &dyn DatabaseError) -> bool {
        error.code().as_deref() == Some(UNDEFINED_TABLE)
    }

    fn is_temporary(error: &dyn DatabaseError) -> bool {
        let error = error.try_downcast_ref::<PgDatabaseError>();
        error.is_some_and(|error| TEMPORARY.iter().any(|code| error.code().starts_with(code)))
    }
}

/// Runs a statement. Returns the number of changed rows.
async fn changed(pool: &PgPool, statement: Query<'_, Postgres, PgArguments>) -> Done<u64> {
    let mut tx = pool.begin_with(BEGIN).await?;
    let done = statement.persistent(false).execute(&mut *tx).await?;
    tx.commit().await?;
    Ok(done.rows_affected())
}

fn deletion(outbox: &str) -> String {
    format!("DELETE FROM {outbox} WHERE id = ANY($1)")
}
