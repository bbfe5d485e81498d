//! SQLite. A relay holds rows by leases, since a lock of SQLite holds up all writers.

use std::collections::HashMap;
use std::convert::Infallible;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::Duration;

use meshwork_broker::Backoff;
use sqlx::error::DatabaseError;
use sqlx::sqlite::{SqliteConnectOptions, SqliteError};
use sqlx::{AssertSqlSafe, ConnectOptions, Sqlite, SqliteConnection, SqlitePool, Transaction};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tracing::debug;

use super::listed::{Backlog, Row};
use super::row::{Claimed, Claims, MAX_ROWS, Sent};
use super::{Dialect, Done, Jobs};
use crate::Error;
use crate::tables::Tables;

/// Duration of a lease without a renewal, in milliseconds: after it, other relays take the rows of a killed one.
const LEASE_MS: i64 = 10_000;
/// Interval of renewals. One may wait for the lock of another writer.
const RENEWAL: Duration = Duration::from_secs(3);
/// Interval in which a relay looks for changes of the file, by a counter in shared memory.
const LOOK: Duration = Duration::from_millis(100);
/// Begins a transaction that writes. One that reads first and writes later fails if another has written meanwhile.
const BEGIN: &str = "BEGIN IMMEDIATE";
/// The time, in milliseconds since 1970, in each release of SQLite.
const NOW: &str = "CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)";
/// The time as tables of earlier releases have it by default: NULL before SQLite 3.42.
const OLD_NOW: &str = "CAST(unixepoch('subsec') * 1000 AS INTEGER)";
/// Primary codes of errors that pass: `SQLITE_BUSY`, `SQLITE_LOCKED` and `SQLITE_PROTOCOL`.
const TEMPORARY: [i32; 3] = [5, 6, 15];

/// Rows with a lease: the number and the claims of each, by its id. A later claim invalidates the lease of a row.
pub struct Lease {
    pool: SqlitePool,
    outbox: String,
    rows: HashMap<String, (i64, i32)>,
}

impl Lease {
    /// Selects the numbers of the rows of the first parameter, [`Self::rows`], that still have this lease.
    fn numbers(&self) -> String {
        format!(
            "SELECT o.seq FROM json_each(?1) AS leased CROSS JOIN {} AS o \
             ON o.seq = leased.value ->> 0 AND o.claims = leased.value ->> 1",
            self.outbox
        )
    }

    /// Returns the rows with these ids as a parameter.
    fn rows<'a>(&self, ids: impl IntoIterator<Item = &'a String>) -> String {
        let rows: Vec<_> = ids.into_iter().filter_map(|id| self.rows.get(id)).collect();
        json(&rows)
    }

    /// Sets the end of the lease, from now on.
    fn extension(&self) -> String {
        let (outbox, numbers) = (&self.outbox, self.numbers());
        format!("UPDATE {outbox} SET leased_ms = {NOW} + ?2 WHERE seq IN ({numbers})")
    }

    async fn extend(&self, ms: i64) -> Done<()> {
        let rows = self.rows(self.rows.keys());
        let extended = sqlx::query(AssertSqlSafe(self.extension())).bind(rows);
        extended.bind(ms).execute(&self.pool).await?;
        Ok(())
    }
}

/// Returns values as a JSON array: SQLite has no parameters that are lists.
fn json(values: &(impl serde::Serialize + ?Sized)) -> String {
    serde_json::json!(values).to_string()
}

/// Longest wait for other processes that set the journal mode, which SQLite does not wait for itself.
const MODE_WAIT: Duration = Duration::from_secs(5);

/// Sets the journal mode in which readers and a writer do not hold up each other. The file remembers it; it fails in a
/// transaction.
async fn set_wal(pool: &SqlitePool) -> Done<()> {
    let (until, mut backoff) = (Instant::now() + MODE_WAIT, Backoff::new());
    loop {
        let set = sqlx::raw_sql("PRAGMA journal_mode = WAL")
            .execute(pool)
            .await;
        match set {
            Err(sqlx::Error::Database(error))
                if Sqlite::is_temporary(&*error) && Instant::now() < until =>
            {
                backoff.wait().await;
            }
            set => return set.map(drop),
        }
    }
}

impl Dialect for Sqlite {
    const SEPARATOR: char = '_';
    type Held = Lease;

    fn create(tables: &Tables) -> String {
        let (outbox, processed) = (
            tables.outbox(Self::SEPARATOR),
            tables.processed(Self::SEPARATOR),
        );
        format!(
            "CREATE TABLE IF NOT EXISTS {outbox} (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    job TEXT NOT NULL,
    created_ms INTEGER NOT NULL DEFAULT ({NOW}),
    due_ms INTEGER DEFAULT ({NOW}),
    leased_ms INTEGER NOT NULL DEFAULT 0,
    claims INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0,
    attempted_ms INTEGER,
    error TEXT
) STRICT;
CREATE INDEX IF NOT EXISTS {outbox}_due ON {outbox} (due_ms, seq);
CREATE INDEX IF NOT EXISTS {outbox}_errors ON {outbox} (seq) WHERE error IS NOT NULL;
CREATE TABLE IF NOT EXISTS {processed} (
    id TEXT PRIMARY KEY NOT NULL,
    processed_ms INTEGER NOT NULL DEFAULT ({NOW})
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS {processed}_at ON {processed} (processed_ms);
"
        )
    }

    async fn migrate(pool: &SqlitePool, tables: &Tables) -> Done<()> {
        set_wal(pool).await?;
        let mut tx = pool.begin_with(BEGIN).await?;
        sqlx::raw_sql(AssertSqlSafe(Self::create(tables)))
            .execute(&mut *tx)
            .await?;
        replace_old_default(&mut tx, tables).await?;
        tx.commit().await
    }

    /// Needs no notification: relays see the change of the file.
    async fn insert(
        tx: &mut Transaction<'_, Self>,
        tables: &Tables,
        (id, job): (&str, &str),
        _notifies: bool,
    ) -> Done<bool> {
        let outbox = tables.outbox(Self::SEPARATOR);
        let sql =
            format!("INSERT INTO {outbox} (id, job) VALUES (?1, ?2) ON CONFLICT (id) DO NOTHING");
        let done = sqlx::query(AssertSqlSafe(sql)).bind(id).bind(job);
        Ok(done.execute(&mut **tx).await?.rows_affected() > 0)
    }

    async fn process(tx: &mut Transaction<'_, Self>, tables: &Tables, id: &str) -> Done<bool> {
        let processed = tables.processed(Self::SEPARATOR);
        let sql = format!("INSERT INTO {processed} (id) VALUES (?1) ON CONFLICT (id) DO NOTHING");
        let done = sqlx::query(AssertSqlSafe(sql)).bind(id);
        Ok(done.execute(&mut **tx).await?.rows_affected() > 0)
    }

    async fn prune(pool: &SqlitePool, tables: &Tables, age_ms: i64, most: i64) -> Done<u64> {
        let processed = tables.processed(Self::SEPARATOR);
        let sql = format!(
            "DELETE FROM {processed} WHERE id IN \
             (SELECT id FROM {processed} WHERE processed_ms < {NOW} - ?1 LIMIT ?2)"
        );
        let done = sqlx::query(AssertSqlSafe(sql)).bind(age_ms).bind(most);
        Ok(done.execute(pool).await?.rows_affected())
    }

    async fn backlog(pool: &SqlitePool, tables: &Tables, most: i64) -> Done<Backlog> {
        let outbox = tables.outbox(Self::SEPARATOR);
        let sql = format!(
            "SELECT (SELECT count(*) FROM (SELECT 1 FROM {outbox} WHERE due_ms >= 0 LIMIT ?1)), \
             (SELECT {NOW} - created_ms FROM {outbox} WHERE due_ms >= 0 ORDER BY due_ms, seq LIMIT 1), \
             (SELECT count(*) FROM (SELECT 1 FROM {outbox} WHERE due_ms IS NULL LIMIT ?1))"
        );
        let counts = sqlx::query_as(AssertSqlSafe(sql)).bind(most);
        Ok(Backlog::from_columns(counts.fetch_one(pool).await?))
    }

    async fn errors(pool: &SqlitePool, tables: &Tables, after: i64, most: i64) -> Done<Vec<Row>> {
        let outbox = tables.outbox(Self::SEPARATOR);
        let sql = format!(
            "SELECT seq, id, job, attempts, error, due_ms IS NULL, created_ms \
             FROM {outbox} WHERE error IS NOT NULL AND seq > ?1 ORDER BY seq LIMIT ?2"
        );
        let rows = sqlx::query_as(AssertSqlSafe(sql)).bind(after).bind(most);
        let rows = rows.fetch_all(pool).await?;
        Ok(rows.into_iter().map(Row::from_columns).collect())
    }

    async fn retry(pool: &SqlitePool, tables: &Tables, ids: Option<&[String]>) -> Done<u64> {
        let outbox = tables.outbox(Self::SEPARATOR);
        let sql = format!(
            "UPDATE {outbox} SET due_ms = {NOW}, error = NULL, attempted_ms = NULL \
             WHERE error IS NOT NULL AND (?1 IS NULL OR id IN (SELECT value FROM json_each(?1)))"
        );
        let done = sqlx::query(AssertSqlSafe(sql)).bind(ids.map(json));
        Ok(done.execute(pool).await?.rows_affected())
    }

    async fn delete(pool: &SqlitePool, tables: &Tables, ids: &[String]) -> Done<u64> {
        let outbox = tables.outbox(Self::SEPARATOR);
        let sql = format!("DELETE FROM {outbox} WHERE id IN (SELECT value FROM json_each(?1))");
        let done = sqlx::query(AssertSqlSafe(sql)).bind(json(ids));
        Ok(done.execute(pool).await?.rows_affected())
    }

    async fn claim(pool: &SqlitePool, tables: &Tables, now_ms: i64) -> Done<Claims> {
        let outbox = tables.outbox(Self::SEPARATOR);
        let due = format!("FROM {outbox} WHERE due_ms <= {NOW} AND leased_ms <= {NOW}");
        // An idle relay does not take the lock of writers.
        let sql = format!("SELECT EXISTS (SELECT 1 {due})");
        let due_now: bool = sqlx::query_scalar(AssertSqlSafe(sql))
            .fetch_one(pool)
            .await?;
        if !due_now {
            return Ok(Claims::default());
        }
        let mut tx = pool.begin_with(BEGIN).await?;
        let sql = format!(
            "SELECT seq, id, claims + 1, attempts, octet_length(job), attempted_ms {due} \
             ORDER BY due_ms, seq LIMIT ?1"
        );
        let rows = sqlx::query_as(AssertSqlSafe(sql)).bind(MAX_ROWS);
        let claims = Claims::within_bounds(rows.fetch_all(&mut *tx).await?);
        let numbers: Vec<_> = claims.rows.iter().map(|row| row.seq).collect();
        let sql = format!(
            "UPDATE {outbox} SET claims = claims + 1, leased_ms = {NOW} + ?2, \
             attempted_ms = coalesce(attempted_ms, ?3) WHERE seq IN (SELECT value FROM json_each(?1))"
        );
        let claimed = sqlx::query(AssertSqlSafe(sql)).bind(json(&numbers));
        let claimed = claimed.bind(LEASE_MS).bind(now_ms);
        claimed.execute(&mut *tx).await?;
        tx.commit().await?;
        Ok(claims)
    }

    async fn hold(pool: &SqlitePool, tables: &Tables, claimed: &[Claimed]) -> Done<(Lease, Jobs)> {
        let rows = claimed.iter();
        let rows = rows.map(|row| (row.id.clone(), (row.seq, row.claims)));
        let lease = Lease {
            pool: pool.clone(),
            outbox: tables.outbox(Self::SEPARATOR),
            rows: rows.collect(),
        };
        let sql = format!("{} RETURNING id, job", lease.extension());
        let jobs = sqlx::query_as(AssertSqlSafe(sql)).bind(lease.rows(lease.rows.keys()));
        let jobs = jobs.bind(LEASE_MS).fetch_all(pool).await?;
        Ok((lease, jobs))
    }

    async fn keep(held: &mut Lease) -> Infallible {
        let mut renewals = interval(RENEWAL);
        renewals.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The lease is new.
        renewals.tick().await;
        loop {
            renewals.tick().await;
            if let Err(error) = held.extend(LEASE_MS).await {
                debug!(%error, "lease of outbox rows not renewed");
            }
        }
    }

    async fn release(held: Lease) {
        // Else the lease ends by itself.
        held.extend(0).await.ok();
    }

    async fn settle(held: Lease, sent: &Sent) -> Done<Transaction<'static, Self>> {
        let (outbox, numbers) = (&held.outbox, held.numbers());
        let mut tx = held.pool.begin_with(BEGIN).await?;
        if !sent.stored.is_empty() {
            let sql = format!("DELETE FROM {outbox} WHERE seq IN ({numbers})");
            let stored = sqlx::query(AssertSqlSafe(sql)).bind(held.rows(&sent.stored));
            stored.execute(&mut *tx).await?;
        }
        if sent.refused.is_empty() {
            return Ok(tx);
        }
        let refused = sent.refused.iter().filter_map(|row| {
            let (seq, claims) = held.rows.get(&row.id)?;
            Some((seq, claims, &row.error, row.pause_ms, row.uncertain))
        });
        let refused: Vec<_> = refused.collect();
        // Without a pause, `due_ms` is NULL.
        let sql = format!(
            "UPDATE {outbox} AS o SET error = row.value ->> 2, attempts = o.attempts + 1, \
             due_ms = {NOW} + (row.value ->> 3), leased_ms = 0, \
             attempted_ms = CASE WHEN row.value ->> 4 THEN o.attempted_ms END \
             FROM json_each(?1) AS row WHERE o.seq = row.value ->> 0 AND o.claims = row.value ->> 1"
        );
        let refused = sqlx::query(AssertSqlSafe(sql)).bind(json(&refused));
        refused.execute(&mut *tx).await?;
        Ok(tx)
    }

    fn watch(pool: &SqlitePool, _: &Tables, wakeup: &Arc<Notify>, _: Duration) -> JoinSet<Error> {
        let (options, wakeup) = (pool.connect_options(), Arc::clone(wakeup));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut backoff = Backoff::new();
            let first = identity(&options);
            loop {
                match look(&options, first, &wakeup, &mut backoff).await {
                    Ok(()) => {
                        let file = options.get_filename().to_owned();
                        return Error::FileReplaced { file };
                    }
                    Err(error) => debug!(%error, "outbox file cannot be watched"),
                }
                backoff.wait().await;
            }
        });
        tasks
    }

    async fn examine(
        pool: &SqlitePool,
        tables: &Tables,
    ) -> Done<(String, Vec<String>, Vec<String>)> {
        let version: String = sqlx::query_scalar("SELECT sqlite_version()")
            .fetch_one(pool)
            .await?;
        let mode: String = sqlx::query_scalar("PRAGMA journal_mode")
            .fetch_one(pool)
            .await?;
        let mut remarks = Vec::new();
        if mode != "wal" {
            remarks.push(format!(
                "the journal mode is {mode}, so that readers and the writer wait for each other: `meshwork outbox migrate` sets WAL"
            ));
        }
        if has_old_default(&mut *pool.acquire().await?, tables).await? {
            remarks.push(
                "the tables are of an earlier release, whose default times are NULL before SQLite 3.42: `meshwork outbox migrate` replaces them".to_owned(),
            );
        }
        Ok((format!("SQLite {version}"), Vec::new(), remarks))
    }

    fn is_missing_table(error: &dyn DatabaseError) -> bool {
        error.message().starts_with("no such table")
    }

    fn is_temporary(error: &dyn DatabaseError) -> bool {
        let code = error
            .try_downcast_ref::<SqliteError>()
            .and_then(|error| error.code()?.parse::<i32>().ok());
        code.is_some_and(|code| TEMPORARY.contains(&(code & 0xff)))
    }
}

/// Replaces the default of columns that earlier releases have created. A change of a default alone may be made in the stored
/// text of a table (sqlite.org/lang_altertable.html): rows, indexes and triggers stay as they are.
async fn replace_old_default(tx: &mut Transaction<'_, Sqlite>, tables: &Tables) -> Done<()> {
    if !has_old_default(tx, tables).await? {
        return Ok(());
    }
    let (outbox, processed) = (tables.outbox('_'), tables.processed('_'));
    let version: i64 = sqlx::query_scalar("PRAGMA schema_version")
        .fetch_one(&mut **tx)
        .await?;
    sqlx::raw_sql("PRAGMA writable_schema = ON")
        .execute(&mut **tx)
        .await?;
    let replaced = "UPDATE sqlite_schema SET sql = replace(sql, ?3, ?4) WHERE name IN (?1, ?2)";
    let replaced = sqlx::query(replaced).bind(outbox).bind(processed);
    let replaced = replaced.bind(OLD_NOW).bind(NOW).execute(&mut **tx).await;
    // Other connections read the tables again.
    let version = format!(
        "PRAGMA schema_version = {}; PRAGMA writable_schema = OFF",
        version + 1
    );
    sqlx::raw_sql(AssertSqlSafe(version))
        .execute(&mut **tx)
        .await?;
    replaced.map(drop)
}

async fn has_old_default(connection: &mut SqliteConnection, tables: &Tables) -> Done<bool> {
    let old =
        "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name IN (?1, ?2) AND instr(sql, ?3) > 0)";
    let old = sqlx::query_scalar(old).bind(tables.outbox('_'));
    let old = old.bind(tables.processed('_')).bind(OLD_NOW);
    old.fetch_one(connection).await
}

/// Device and number of the file; `None` for a database in memory, or a file that is gone.
fn identity(options: &SqliteConnectOptions) -> Option<(u64, u64)> {
    let file = std::fs::metadata(options.get_filename()).ok()?;
    Some((file.dev(), file.ino()))
}

/// Wakes the relay at each commit of another connection. Returns when the file is another one, or gone: connections that are
/// open would go on with the old one.
async fn look(
    options: &SqliteConnectOptions,
    first: Option<(u64, u64)>,
    wakeup: &Notify,
    backoff: &mut Backoff,
) -> Result<(), sqlx::Error> {
    let mut connection = options.connect().await?;
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut seen: Option<i64> = None;
    loop {
        looks.tick().await;
        if first.is_some() && identity(options) != first {
            return Ok(());
        }
        let version = sqlx::query_scalar("PRAGMA data_version");
        let version = version.fetch_one(&mut connection).await?;
        *backoff = Backoff::new();
        if seen.replace(version) != Some(version) {
            wakeup.notify_one();
        }
    }
}
