//! Streams in the log. A Redis server loads the engine's log to the same state, with groups and pending entries, and
//! the engine loads the server's.

use std::fs;

use crate::support::{LOG, Raw, Runs, assert_same, content, content_of, own, rewrite};
use meshwork_embedded::{Options, Reply};
use meshwork_test_servers::{eventually, servers::RealServer};

/// Entries by every form of XADD, groups at several points, entries pending and acknowledged.
const STREAMS: [&str; 33] = [
    "XADD events * kind first",
    "XADD events MAXLEN ~ 1000 * kind second level 7",
    "XADD events 9000000000000-* kind third",
    "XADD events 9000000000000-* other fields in it",
    "XADD events 9000000000000-* kind fifth",
    "XADD events 9000000000000-* kind sixth",
    "XGROUP CREATE events workers 0",
    "XGROUP CREATE events late $",
    "XGROUP CREATE events unknown 9000000000000-1",
    "XREADGROUP GROUP workers one COUNT 2 STREAMS events >",
    "XREADGROUP GROUP workers two COUNT 2 STREAMS events >",
    "XREADGROUP GROUP workers two STREAMS events 0",
    "XREADGROUP GROUP workers two COUNT 1 NOACK STREAMS events >",
    "XREADGROUP GROUP workers watcher STREAMS events 5",
    "XGROUP CREATECONSUMER events late idle",
    "XREADGROUP GROUP unknown three STREAMS events >",
    "XACK events workers 9000000000000-0",
    "XCLAIM events workers one 0 9000000000000-1 RETRYCOUNT 7 TIME 1700000000000",
    "XDEL events 9000000000000-2",
    "XADD emptied 5-1 f v",
    "XADD emptied 6-1 f v",
    "XGROUP CREATE emptied g 0",
    "XREADGROUP GROUP g c NOACK COUNT 1 STREAMS emptied >",
    "XTRIM emptied MAXLEN 0",
    "XGROUP CREATE made g $ MKSTREAM",
    "XADD set 1-1 f v",
    "XSETID set 8-8 ENTRIESADDED 100 MAXDELETEDID 7-7",
    "SELECT 4",
    "XADD other 1-1 f v",
    "XADD other 2-1 f v",
    "PEXPIREAT other 4102444800000",
    "XTRIM other MINID 2",
    "SELECT 0",
];

async fn fill(client: &mut impl Runs) {
    for line in STREAMS {
        client.done(line).await;
    }
    // More than the entries of one node.
    for number in 0..250 {
        client
            .done(&format!("XADD long {}-1 number {number}", number + 1))
            .await;
    }
    client.done("XGROUP CREATE long g 0").await;
    client
        .done("XREADGROUP GROUP g c COUNT 230 STREAMS long >")
        .await;
    client
        .done("XADD long MAXLEN ~ 120 300-1 number last")
        .await;
}

#[tokio::test]
async fn redis_and_valkey_load_the_streams_of_a_log_and_of_a_rewritten_one() {
    let dir = tempfile::tempdir().unwrap();
    let owner = own(dir.path(), Options::default()).await;
    let mut session = owner.handle().session();
    fill(&mut session).await;
    let plain = content_of(&owner).await;
    let log = fs::read(dir.path().join(LOG)).unwrap();
    assert_same(RealServer::redis(), &log, &plain).await;
    assert_same(RealServer::valkey(), &log, &plain).await;

    // Pending entries that are gone are not in a rewritten log, as in Redis.
    session.done("XAUTOCLAIM long g d 0 0 COUNT 1000").await;
    session.done("XAUTOCLAIM events workers one 0 0").await;
    session.done("XAUTOCLAIM events unknown one 0 0").await;
    let expected = content_of(&owner).await;
    rewrite(&owner).await;
    session.done("XADD events 9000000000000-* kind last").await;
    session
        .done("XREADGROUP GROUP workers two STREAMS events >")
        .await;
    let after = content_of(&owner).await;
    assert_ne!(after, expected);
    owner.close().await.unwrap();
    let log = fs::read(dir.path().join(LOG)).unwrap();
    assert_same(RealServer::redis(), &log, &after).await;
    assert_same(RealServer::valkey(), &log, &after).await;
    let owner = own(dir.path(), Options::default()).await;
    assert_eq!(content_of(&owner).await, after);
    // A consumer was seen at the start at the latest, not in 1970.
    let consumers = owner
        .handle()
        .session()
        .text("XINFO CONSUMERS events late")
        .await;
    let Reply::Array(consumers) = consumers else {
        panic!("an array")
    };
    let Reply::Array(fields) = &consumers[0] else {
        panic!("pairs")
    };
    assert!(
        matches!(fields[5], Reply::Int(idle) if idle < 60_000),
        "{fields:?}"
    );
}

#[tokio::test]
async fn a_plain_log_of_redis_with_streams_is_loaded() {
    let plain = ["--aof-use-rdb-preamble", "no"];
    let Some(mut server) = RealServer::redis().append_only().args(&plain).start() else {
        return;
    };
    fill(&mut Raw::connect(&server.socket()).await).await;
    // Redis itself forgets the number of entries that a group has read.
    server.kill9();
    server.start_again();
    let expected = content(&mut Raw::connect(&server.socket()).await).await;
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
async fn a_log_that_redis_has_rewritten_is_loaded() {
    let plain = ["--aof-use-rdb-preamble", "no"];
    let Some(mut server) = RealServer::redis().append_only().args(&plain).start() else {
        return;
    };
    let mut client = Raw::connect(&server.socket()).await;
    fill(&mut client).await;
    client.done("BGREWRITEAOF").await;
    let base = "appendonly.aof.2.base.aof";
    let dir = server.dir().join("appendonlydir");
    // The server uses the manifest, which is written last.
    let manifest = || fs::read_to_string(dir.join("appendonly.aof.manifest")).unwrap_or_default();
    let in_place = async || manifest().contains(base).then_some(());
    eventually("a rewritten log", crate::support::PATIENCE, in_place).await;
    let base = dir.join(base);
    server.kill9();
    server.start_again();
    let expected = content(&mut Raw::connect(&server.socket()).await).await;
    let dir = tempfile::tempdir().unwrap();
    fs::copy(base, dir.path().join(LOG)).unwrap();
    let owner = own(dir.path(), Options::default()).await;
    assert_eq!(content_of(&owner).await, expected);
}
