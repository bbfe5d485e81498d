//! Logged commands have the same effect whenever and wherever they are repeated.

use super::Bench;

/// Runs the commands and expects the effects of the last one.
fn check(commands: &[&str], effects: &[&str]) {
    let mut bench = Bench::new();
    let (last, before) = commands.split_last().unwrap();
    for command in before {
        bench.run(command).unwrap();
    }
    bench.take_effects();
    let _ = bench.run(last);
    assert_eq!(bench.take_effects(), effects, "{commands:?}");
}

#[test]
fn times_are_absolute() {
    check(&["SET a v EX 10 GET"], &["SET a v PXAT 1800000010000"]);
    check(&["SET a v NX KEEPTTL"], &["SET a v KEEPTTL"]);
    check(&["PSETEX a 5 v"], &["SET a v PXAT 1800000000005"]);
    check(&["SET a v", "EXPIRE a 10"], &["PEXPIREAT a 1800000010000"]);
    check(&["SET a v", "EXPIRE a -1"], &["DEL a"]);
    check(&["SET a v", "GETEX a EX 1"], &["PEXPIREAT a 1800000001000"]);
    check(&["SET a v", "GETEX a PXAT 1"], &["DEL a"]);
    check(&["SET a v EX 1", "GETEX a PERSIST"], &["PERSIST a"]);
}

#[test]
fn chance_and_arithmetic_are_settled() {
    check(&["SADD s m", "SPOP s"], &["SREM s m"]);
    check(&["SADD s m n", "SPOP s 5"], &["DEL s"]);
    check(
        &["SET n 0.1 EX 5", "INCRBYFLOAT n 0.2"],
        &["SET n 0.3 KEEPTTL"],
    );
    check(&["HINCRBYFLOAT h f 1.50"], &["HSET h f 1.5"]);
    check(
        &["ZADD z 1 a 5 b", "ZADD z CH GT 0 a 9 b 3 c"],
        &["ZADD z 9 b 3 c"],
    );
    check(&["ZADD z 1 a", "ZINCRBY z 0.5 a"], &["ZADD z 1.5 a"]);
}

#[test]
fn a_wait_is_the_pop_that_it_became() {
    check(&["RPUSH l a b", "BLPOP nope l 0"], &["LPOP l"]);
    check(&["RPUSH l a b", "BRPOP l 0"], &["RPOP l"]);
    check(
        &["RPUSH l a b", "BLMOVE l m RIGHT LEFT 0"],
        &["LMOVE l m RIGHT LEFT"],
    );
    check(
        &["RPUSH l a b", "BRPOPLPUSH l m 0"],
        &["LMOVE l m RIGHT LEFT"],
    );
    check(&["RPUSH l a b", "BLMPOP 0 1 l LEFT COUNT 9"], &["LPOP l 2"]);
    check(&["RPUSH l a b", "LMPOP 1 l RIGHT"], &["RPOP l 1"]);
}

#[test]
fn what_changes_nothing_leaves_nothing() {
    for commands in [
        &["DEL nope"][..],
        &["SET a v", "SET a w NX"],
        &["SET a v", "SETNX a w"],
        &["SET a v", "MSETNX b w a w"],
        &["SET a v", "PERSIST a"],
        &["SET a v", "GETEX a"],
        &["SET a v", "RENAME a a"],
        &["SET a v", "SETRANGE a 9 \"\""],
        &["SET a v", "LPUSH a x"],
        &["SADD s m", "SADD s m"],
        &["SADD s m", "SREM s n"],
        &["SADD s m", "SMOVE s t n"],
        &["SADD s m", "SPOP s 0"],
        &["HSET h f v", "HSETNX h f w"],
        &["HSET h f v", "HDEL h g"],
        &["HSET h f v", "HINCRBY h f 1"],
        &["ZADD z 1 a", "ZADD z 1 a"],
        &["ZADD z 1 a", "ZADD z NX 2 a"],
        &["ZADD z 1 a", "ZREM z b"],
        &["ZADD z 1 a", "ZPOPMIN z 0"],
        &["ZADD z 1 a", "ZREMRANGEBYSCORE z 2 3"],
        &["RPUSH l a", "LREM l 0 b"],
        &["RPUSH l a", "LTRIM l 0 -1"],
        &["RPUSH l a", "LPOP l 0"],
        &["RPUSH l a", "LINSERT l BEFORE b c"],
        &["LPUSHX nope a"],
        &["BLPOP nope 0"],
    ] {
        check(commands, &[]);
    }
}

#[test]
fn the_rest_is_logged_for_the_keys_that_it_changed() {
    check(&["SET a v", "DEL a nope a"], &["DEL a"]);
    check(&["UNLINK nope"], &[]);
    check(&["MSETNX a 1 b 2"], &["MSET a 1 b 2"]);
    check(&["SET a v", "GETDEL a"], &["DEL a"]);
    check(&["SET a v", "COPY a b DB 3"], &["COPY a b DB 3"]);
    check(&["FLUSHDB ASYNC"], &["FLUSHDB"]);
    check(&["FLUSHALL"], &["FLUSHALL"]);
}

#[test]
fn writes_change_the_version_of_watched_keys() {
    for (setup, write, changed, unchanged) in [
        ("SET a v", "APPEND a w", "a", "b"),
        ("SET a v", "RENAME a b", "b", "c"),
        ("RPUSH a v", "LMOVE a b LEFT LEFT", "b", "c"),
        ("SADD b m", "SADD a m", "a", "b"),
        ("RPUSH a v", "LTRIM a 0 -1", "a", "b"),
        ("SET a v", "FLUSHALL", "a", "b"),
        ("SET a v", "SET a w NX", "none", "a"),
    ] {
        let mut bench = Bench::new();
        bench.run(setup).unwrap();
        let keys = [changed, unchanged].map(|key| bytes::Bytes::from(key.to_owned()));
        let before = [0, 1].map(|index| bench.store.watch(0, &keys[index]));
        bench.run(write).unwrap();
        let after = [0, 1].map(|index| bench.store.version(0, &keys[index]).unwrap());
        assert_eq!(before[0] != after[0], changed != "none", "{write}");
        assert_eq!(before[1], after[1], "{write}");
    }
}

#[test]
fn a_copy_touches_the_key_of_the_other_database() {
    let mut bench = Bench::new();
    bench.run("RPUSH a v").unwrap();
    let key = bytes::Bytes::from_static(b"a");
    let before = bench.store.watch(3, &key);
    bench.store.take_ready();
    bench.run("COPY a a DB 3").unwrap();
    assert_ne!(bench.store.version(3, &key), Some(before));
    assert_eq!(bench.store.take_ready(), [(3, key)]);
}
