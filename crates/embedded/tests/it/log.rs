//! The log with real servers and real failures. Servers load the engine's log and the engine loads theirs; cuts at
//! any byte, a full disk, a kill during a rewrite.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers and children of tests"
)]

use std::{
    fs,
    path::Path,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::support::{
    LOG, Player, Raw, Runs, assert_same, content, content_of, info_says, own, rewrite,
};
use meshwork_embedded::{Fsync, LogError, OpenError, Options, Reply, open};
use meshwork_test_servers::servers::RealServer;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// A size that causes rewrites in tests.
const SMALL: u64 = 8 * 1024;

fn small() -> Options {
    Options {
        rewrite_min: SMALL,
        ..Options::default()
    }
}

/// Writes values of all types, in several databases.
async fn fill(client: &mut impl Runs) {
    for line in [
        "SET plain 1",
        "RPUSH list a b c",
        "SELECT 3",
        "HSET hash f 1 g 2",
        "PEXPIRE hash 100000000",
        "SELECT 15",
        "ZADD zset 1.5 m -inf n",
        "SADD set x y z",
        "SELECT 0",
        "SET binary \r\n*1",
        "LPOP list",
        "SET gone 1 PX 100000000",
        "DEL gone",
    ] {
        let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let reply = client.run(&args).await;
        assert!(!matches!(reply, Reply::Error(_)), "{line}: {reply:?}");
    }
}

/// A transaction over two databases.
async fn last_transaction(client: &mut impl Runs) {
    for line in [
        "MULTI",
        "RPUSH list d",
        "HSET job:1 status dispatched attempt 1",
        "PEXPIREAT job:1 4102444800000",
        "SELECT 3",
        "ZADD leases 1700000000123 job:1",
        "EXEC",
        "SELECT 0",
    ] {
        client.done(line).await;
    }
}

#[tokio::test]
async fn a_log_cut_at_each_byte_of_its_last_transaction_is_loaded_by_redis_twice() {
    let dir = tempfile::tempdir().unwrap();
    let owner = own(dir.path(), Options::default()).await;
    let mut session = owner.handle().session();
    fill(&mut session).await;
    let before = content_of(&owner).await;
    let start = usize::try_from(fs::metadata(dir.path().join(LOG)).unwrap().len()).unwrap();
    last_transaction(&mut session).await;
    let after = content_of(&owner).await;
    owner.close().await.unwrap();
    let whole = fs::read(dir.path().join(LOG)).unwrap();
    assert!(whole.len() - start > 200, "several commands");

    for cut in start..=whole.len() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join(LOG);
        fs::write(&log, &whole[..cut]).unwrap();
        let owner = own(dir.path(), Options::default()).await;
        let seen = content_of(&owner).await;
        owner.close().await.unwrap();
        assert_eq!(
            seen,
            if cut == whole.len() {
                after.clone()
            } else {
                before.clone()
            }
        );
        let repaired = fs::read(&log).unwrap();
        let kept = if cut == whole.len() { cut } else { start };
        assert_eq!(repaired, whole[..kept], "cut at {cut}");
        assert_same(RealServer::redis(), &repaired, &seen).await;
    }
}

#[tokio::test]
async fn a_rewritten_log_is_loaded_by_redis_and_valkey() {
    let dir = tempfile::tempdir().unwrap();
    let owner = own(dir.path(), small()).await;
    let mut session = owner.handle().session();
    fill(&mut session).await;
    rewrite(&owner).await;
    last_transaction(&mut session).await;
    let expected = content_of(&owner).await;
    owner.close().await.unwrap();
    let log = fs::read(dir.path().join(LOG)).unwrap();
    assert_same(RealServer::redis(), &log, &expected).await;
    assert_same(RealServer::valkey(), &log, &expected).await;
    if let Ok(check) = Command::new("redis-check-aof")
        .arg(dir.path().join(LOG))
        .output()
    {
        assert!(
            check.status.success(),
            "{}",
            String::from_utf8_lossy(&check.stdout)
        );
    }
    let owner = own(dir.path(), small()).await;
    assert_eq!(content_of(&owner).await, expected);
}

#[tokio::test]
async fn a_plain_log_of_redis_is_loaded() {
    let plain = ["--aof-use-rdb-preamble", "no"];
    let Some(server) = RealServer::redis().append_only().args(&plain).start() else {
        return;
    };
    let mut client = Raw::connect(&server.socket()).await;
    fill(&mut client).await;
    last_transaction(&mut client).await;
    client
        .done("EVAL redis.call('SET','by','script')redis.call('INCR','n') 0")
        .await;
    let expected = content(&mut client).await;

    // A directory that a server has taken over is refused, and the remedy in the error works.
    let error = open(server.dir(), Options::default()).await.unwrap_err();
    assert!(
        matches!(error, OpenError::Log(LogError::TakenOver { .. })),
        "{error}"
    );
    let aof = |kind: &str| {
        let name = format!("appendonlydir/appendonly.aof.1.{kind}.aof");
        fs::read(server.dir().join(name)).unwrap()
    };
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(LOG), [aof("base"), aof("incr")].concat()).unwrap();
    let owner = own(dir.path(), Options::default()).await;
    assert_eq!(content_of(&owner).await, expected);
}

#[tokio::test]
async fn a_log_that_has_grown_is_rewritten_by_itself_while_writes_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let owner = own(dir.path(), small()).await;
    let mut session = owner.handle().session();
    fill(&mut session).await;
    for number in 0..20_000 {
        session.done(&format!("SET counter {number}")).await;
    }
    info_says(&owner, "aof_rewrite_in_progress:0").await;
    let expected = content_of(&owner).await;
    owner.close().await.unwrap();
    let len = fs::metadata(dir.path().join(LOG)).unwrap().len();
    assert!(
        len < 600_000,
        "20,000 writes of 37 bytes, rewritten, leave {len}"
    );
    assert!(!dir.path().join("appendonly.aof.rewrite").exists());
    let owner = own(dir.path(), small()).await;
    assert_eq!(content_of(&owner).await, expected);
}

#[tokio::test]
async fn many_short_runs_do_not_let_the_log_grow() {
    let dir = tempfile::tempdir().unwrap();
    for _ in 0..40 {
        let owner = own(dir.path(), small()).await;
        let mut session = owner.handle().session();
        for number in 0..50 {
            session.done(&format!("SET counter {number}")).await;
        }
        info_says(&owner, "aof_rewrite_in_progress:0").await;
        owner.close().await.unwrap();
    }
    let len = fs::metadata(dir.path().join(LOG)).unwrap().len();
    assert!(len < 2 * SMALL, "{len}");
}

#[tokio::test]
async fn each_policy_syncs_when_it_says() {
    for (fsync, after_write, in_time) in [
        (
            Fsync::Always,
            Some("aof_pending_bio_fsync:0"),
            "aof_pending_bio_fsync:0",
        ),
        (Fsync::EverySecond, None, "aof_pending_bio_fsync:0"),
        (
            Fsync::No,
            Some("aof_pending_bio_fsync:1"),
            "aof_pending_bio_fsync:1",
        ),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let owner = own(
            dir.path(),
            Options {
                fsync,
                ..Options::default()
            },
        )
        .await;
        owner.handle().session().done("SET a 1").await;
        if let Some(wanted) = after_write {
            let info = owner.handle().session().text("INFO persistence").await;
            assert!(format!("{info:?}").contains(wanted), "{fsync:?}: {info:?}");
        }
        info_says(&owner, in_time).await;
        owner.close().await.unwrap();
    }
}

/// Writes until the disk is full, which a limit on the size of files simulates, then gets space again.
pub(crate) async fn fill_disk(dir: &Path) {
    let owner = own(dir, Options::default()).await;
    let mut session = owner.handle().session();
    let limit = |bytes| {
        let Rlimit { maximum, .. } = getrlimit(Resource::Fsize);
        setrlimit(
            Resource::Fsize,
            Rlimit {
                current: bytes,
                maximum,
            },
        )
        .unwrap();
    };
    limit(Some(1_000));
    let mut acked = 0;
    let refused = loop {
        for line in ["MULTI", &format!("RPUSH list {acked}"), "INCR count"] {
            session.done(line).await;
        }
        match session.text("EXEC").await {
            Reply::Error(error) => break error,
            _ => acked += 1,
        }
    };
    println!("refused {refused}");
    assert!(fs::metadata(dir.join(LOG)).unwrap().len() <= 1_000);
    fs::copy(dir.join(LOG), dir.join("while-full")).unwrap();
    for _ in 0..3 {
        let again = session.text("SET other 1").await;
        assert!(matches!(again, Reply::Error(_)), "{again:?}");
    }
    // The state that they would show is not in the log.
    let read = session.text("LLEN list").await;
    assert!(matches!(read, Reply::Error(_)), "{read:?}");
    session.done("PING").await;
    // A snapshot now would include writes that will be logged later, twice.
    session.text("BGREWRITEAOF").await;
    info_says(&owner, "aof_rewrite_in_progress:0").await;
    limit(None);
    session.done("SET other 1").await;
    println!("acked {acked}");
    owner.close().await.unwrap();
    println!("closed");
}

#[tokio::test]
async fn a_full_disk_leaves_no_half_transaction_and_is_survived() {
    let dir = tempfile::tempdir().unwrap();
    // The signal of a write beyond the limit does not kill the owner.
    let player = Player::start("full-disk", dir.path());
    assert!(player.hears("refused").starts_with("MISCONF"));
    let acked: i64 = player.hears("acked").parse().unwrap();
    player.hears("closed");

    let owner = own(dir.path(), Options::default()).await;
    let mut session = owner.handle().session();
    let Reply::Int(length) = session.text("LLEN list").await else {
        panic!("LLEN")
    };
    assert!(
        length == acked || length == acked + 1,
        "{length} of {acked}"
    );
    assert_eq!(
        session.text("GET count").await,
        Reply::Bulk(length.to_string().into())
    );
    assert_eq!(session.text("GET other").await, Reply::Bulk("1".into()));

    // The log was whole even while the disk was full.
    let full = tempfile::tempdir().unwrap();
    fs::copy(dir.path().join("while-full"), full.path().join(LOG)).unwrap();
    let size = fs::metadata(full.path().join(LOG)).unwrap().len();
    own(full.path(), Options::default())
        .await
        .close()
        .await
        .unwrap();
    assert_eq!(fs::metadata(full.path().join(LOG)).unwrap().len(), size);
}

/// Writes forever, so that the log is rewritten forever.
pub(crate) async fn rewrite_for_ever(dir: &Path) {
    let owner = own(dir, small()).await;
    let mut session = owner.handle().session();
    session.done("SET ready 1").await;
    let counted = session.text("GET counter").await;
    let mut number: u64 = match counted {
        Reply::Bulk(text) => String::from_utf8(text.into()).unwrap().parse().unwrap(),
        _ => 0,
    };
    loop {
        number += 1;
        for line in [
            "MULTI",
            &format!("SET counter {number}"),
            "RPUSH list x",
            "EXEC",
        ] {
            session.done(line).await;
        }
        println!("ack {number}");
    }
}

#[tokio::test]
async fn killed_while_it_rewrites_it_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut acked = 0;
    for round in 1..=10_u64 {
        let mut player = Player::start("rewrites", dir.path());
        // Each round ends at another point of the few hundred writes between two rewrites.
        for _ in 0..500 + round * 37 {
            player.hears("ack");
        }
        player.kill();
        let last = player.heard("ack", true).pop();
        let last = last.map_or(acked, |last| last.parse().unwrap());
        acked = acked.max(last);

        let owner = own(dir.path(), small()).await;
        let mut session = owner.handle().session();
        let Reply::Bulk(counter) = session.text("GET counter").await else {
            panic!("lost")
        };
        let counter: u64 = String::from_utf8(counter.into()).unwrap().parse().unwrap();
        assert!(counter >= acked, "{counter} of {acked}");
        let length = i64::try_from(counter).unwrap();
        assert_eq!(
            session.text("LLEN list").await,
            Reply::Int(length),
            "no half transaction"
        );
        acked = counter;
        info_says(&owner, "aof_rewrite_in_progress:0").await;
        owner.close().await.unwrap();
    }
    let log = fs::read(dir.path().join(LOG)).unwrap();
    assert!(
        log.windows(12).any(|window| window == b"#REWRITTEN\r\n"),
        "it was rewritten"
    );
}

#[tokio::test]
async fn readers_see_one_state_while_the_log_is_rewritten() {
    let dir = tempfile::tempdir().unwrap();
    let owner = own(dir.path(), Options::default()).await;
    let done = Arc::new(AtomicBool::new(false));
    let writer = {
        let (mut session, done) = (owner.handle().session(), Arc::clone(&done));
        tokio::spawn(async move {
            while !done.load(Ordering::Relaxed) {
                session.done("INCR counter").await;
                session.done("RPUSH list x").await;
                tokio::task::yield_now().await;
            }
        })
    };
    for _ in 0..20 {
        rewrite(&owner).await;
    }
    done.store(true, Ordering::Relaxed);
    writer.await.unwrap();
    let expected = content_of(&owner).await;
    owner.close().await.unwrap();
    let owner = own(dir.path(), Options::default()).await;
    assert_eq!(
        content_of(&owner).await,
        expected,
        "nothing twice, nothing lost"
    );
}
