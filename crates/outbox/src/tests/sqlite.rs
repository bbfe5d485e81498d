//! Leases of rows in SQLite, and writers that wait for each other.

use std::time::Duration;

use sqlx::Sqlite;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions};

use super::Ground;
use crate::database::{Claimed, Dialect, Sent};
use crate::{Error, Outbox};

async fn ground() -> Ground<Sqlite> {
    Ground::new("leases").await.unwrap()
}

fn all_stored(rows: &[Claimed]) -> Sent {
    Sent {
        stored: rows.iter().map(|row| row.id.clone()).collect(),
        refused: Vec::new(),
    }
}

#[tokio::test]
async fn a_lease_keeps_rows_from_other_relays() {
    let ground = ground().await;
    for order in 0..3 {
        ground.commit(order).await;
    }
    let [first, second] = [ground.relay(), ground.relay()];
    let claimed = first.claim(7).await.unwrap().rows;
    assert_eq!(claimed.len(), 3);
    assert!(second.claim(8).await.unwrap().rows.is_empty());
    ground.lapse().await;
    // The later claim counts, and knows of the earlier one.
    let again = second.claim(9).await.unwrap().rows;
    assert!(again.iter().all(|row| row.earlier_ms == Some(7)));
    let (late, held) = first.hold(&claimed).await.unwrap();
    assert!(held.is_empty());
    let (hold, held) = second.hold(&again).await.unwrap();
    assert_eq!(held.len(), 3);
    // A relay that was paused writes nothing about rows of another one.
    let settled = Sqlite::settle(late, &all_stored(&claimed)).await.unwrap();
    settled.commit().await.unwrap();
    assert_eq!(ground.rows().await, (3, 0));
    Sqlite::release(hold).await;
    assert_eq!(first.claim(10).await.unwrap().rows.len(), 3);
}

/// A row with the id of one that is gone is another row.
#[tokio::test]
async fn a_late_relay_does_not_delete_a_new_row() {
    let ground = ground().await;
    let insert = "INSERT INTO ROWS (id, job) VALUES ('same', '{}')";
    ground.change(insert).await;
    let claimed = ground.relay().claim(7).await.unwrap().rows;
    let (late, _) = ground.relay().hold(&claimed).await.unwrap();
    let ids = ["same".to_owned()];
    let gone = ground.outbox.delete(&ground.pool, &ids).await;
    assert_eq!(gone.unwrap(), 1);
    ground.change(insert).await;
    let again = ground.relay().claim(9).await.unwrap().rows;
    assert_eq!((again[0].claims, again[0].earlier_ms), (1, None));
    let settled = Sqlite::settle(late, &all_stored(&claimed)).await.unwrap();
    settled.commit().await.unwrap();
    assert_eq!(ground.rows().await, (1, 0));
}

/// A lease is renewed for as long as the store needs.
#[tokio::test]
async fn a_lease_is_renewed() {
    let ground = ground().await;
    ground.commit(1).await;
    let claimed = ground.relay().claim(7).await.unwrap().rows;
    let (mut hold, _) = ground.relay().hold(&claimed).await.unwrap();
    ground.lapse().await;
    let renewed = async {
        let mut again = tokio::time::interval(Duration::from_millis(20));
        let leased = "SELECT count(*) FROM leases_meshwork_outbox WHERE leased_ms > 0";
        loop {
            again.tick().await;
            let leased = sqlx::query_scalar(leased).fetch_one(&ground.pool);
            let leased: i64 = leased.await.unwrap();
            if leased == 1 {
                return;
            }
        }
    };
    let patience = tokio::time::timeout(Duration::from_secs(30), renewed);
    tokio::select! {
        renewed = patience => renewed.unwrap(),
        never = Sqlite::keep(&mut hold) => match never {},
    }
}

/// A writer that waits too long for another one gets an error that passes, and leaves its transaction without effect.
#[tokio::test]
async fn a_writer_that_waits_too_long_may_try_again() {
    let ground = ground().await;
    let options = ground.pool.connect_options();
    let hasty = (*options).clone().busy_timeout(Duration::from_millis(50));
    let hasty = SqlitePoolOptions::new().connect_with(hasty).await.unwrap();
    let mut first = ground.pool.begin_with("BEGIN IMMEDIATE").await.unwrap();
    assert!(ground.outbox.first_time(&mut first, "j").await.unwrap());
    let mut second = hasty.begin().await.unwrap();
    let refused = ground.outbox.first_time(&mut second, "j").await;
    let error = refused.unwrap_err();
    assert!(error.is_temporary(), "{error:?}");
    drop(second);
    first.rollback().await.unwrap();
    let mut third = hasty.begin().await.unwrap();
    assert!(ground.outbox.first_time(&mut third, "j").await.unwrap());
}

/// Programs that start at once create the tables of a new file.
#[tokio::test]
async fn migrations_at_once() {
    let home = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}?mode=rwc", home.path().join("new.db").display());
    let migrate = async || -> Result<String, Error> {
        let pool = SqlitePool::connect(&url).await?;
        Outbox::new().migrate(&pool).await?;
        let mode = sqlx::query_scalar("PRAGMA journal_mode");
        Ok(mode.fetch_one(&pool).await?)
    };
    let modes = tokio::join!(migrate(), migrate(), migrate(), migrate());
    for mode in [modes.0, modes.1, modes.2, modes.3] {
        assert_eq!(mode.unwrap(), "wal");
    }
}

/// Tables of earlier releases get times that SQLite before 3.42 knows; rows and indexes stay.
#[tokio::test]
async fn old_tables_get_a_default_that_each_release_knows() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("old.db");
    let options = SqliteConnectOptions::new()
        .filename(&file)
        .create_if_missing(true);
    let pool = SqlitePool::connect_with(options).await.unwrap();
    let outbox = Outbox::in_schema("old").unwrap();
    let new = "round((julianday('now') - 2440587.5) * 86400000)";
    let old = outbox
        .schema_sql::<Sqlite>()
        .replace(new, "unixepoch('subsec') * 1000");
    assert_eq!(old.matches("subsec").count(), 3);
    let row = "INSERT INTO old_meshwork_outbox (id, job, created_ms) VALUES ('first', '{}', 7)";
    sqlx::raw_sql(sqlx::AssertSqlSafe(format!("{old};{row}")))
        .execute(&pool)
        .await
        .unwrap();
    let remarks = async || outbox.examine(&pool).await.unwrap().remarks;
    assert_eq!(remarks().await.len(), 2);
    for _ in 0..2 {
        outbox.migrate(&pool).await.unwrap();
    }
    assert_eq!(remarks().await, [""; 0]);
    let check = sqlx::query_scalar::<_, String>("PRAGMA integrity_check");
    assert_eq!(check.fetch_one(&pool).await.unwrap(), "ok");
    // SQLite of this machine, which may be an older one.
    if let Some(python) =
        meshwork_test_servers::servers::need(meshwork_test_servers::servers::Tool::Python)
    {
        let script = "import sqlite3, sys\nd = sqlite3.connect(sys.argv[1])\n\
                      d.execute(\"insert into old_meshwork_outbox(id, job) values('second', '{}')\")\nd.commit()\n";
        let done = std::process::Command::new(python)
            .args(["-c", script])
            .arg(&file)
            .output()
            .unwrap();
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
    } else {
        let row = "INSERT INTO old_meshwork_outbox (id, job) VALUES ('second', '{}')";
        sqlx::raw_sql(row).execute(&pool).await.unwrap();
    }
    let rows = sqlx::query_as::<_, (String, i64, i64)>(
        "SELECT id, created_ms, due_ms FROM old_meshwork_outbox ORDER BY seq",
    );
    let rows = rows.fetch_all(&pool).await.unwrap();
    assert_eq!((&*rows[0].0, rows[0].1), ("first", 7));
    let now = meshwork::host_ms().cast_signed();
    assert!(
        (now - rows[1].1).abs() < 60_000 && rows[1].2 == rows[1].1,
        "{rows:?} {now}"
    );
}

/// Connections that are open would go on with the old file.
#[tokio::test]
async fn a_replaced_file_ends_the_relay() {
    for is_replaced in [true, false] {
        let ground = ground().await;
        let file = ground.pool.connect_options().get_filename().to_owned();
        let running = tokio::spawn(ground.relay().run_until(std::future::pending()));
        let id = ground.commit(1).await.id;
        while ground.client.status(&id).await.is_err() {
            tokio::task::yield_now().await;
        }
        let copy = file.with_extension("copy");
        let backup = sqlx::query("VACUUM INTO ?1").bind(copy.to_str().unwrap());
        backup.execute(&ground.pool).await.unwrap();
        match is_replaced {
            true => std::fs::rename(&copy, &file).unwrap(),
            false => std::fs::remove_file(&file).unwrap(),
        }
        let ended = tokio::time::timeout(Duration::from_secs(30), running).await;
        let ended = ended.unwrap().unwrap();
        assert!(
            matches!(&ended, Err(Error::FileReplaced { file: named }) if *named == file),
            "{ended:?}"
        );
    }
}
