//! Expired keys.

use super::{Bench, NOW_MS};

#[test]
fn a_key_lives_to_the_end_of_its_last_millisecond() {
    let mut bench = Bench::new();
    bench.run("SET a v PX 5").unwrap();
    bench.now_ms = NOW_MS + 5;
    assert_eq!(bench.reply("GET a"), "$1 v");
    assert_eq!(bench.reply("PTTL a"), ":0");
    bench.now_ms = NOW_MS + 6;
    assert_eq!(bench.reply("DBSIZE"), ":1");
    assert_eq!(bench.reply("KEYS *"), "*0");
    bench.take_effects();
    assert_eq!(bench.reply("GET a"), "$-1");
    assert_eq!(bench.take_effects(), ["DEL a"]);
    assert_eq!(bench.reply("DBSIZE"), ":0");
}

#[test]
fn every_access_removes_what_is_over() {
    for (command, reply) in [
        ("TTL a", ":-2"),
        ("TYPE a", "+none"),
        ("EXISTS a", ":0"),
        ("DEL a", ":0"),
        ("SET a w XX", "$-1"),
        ("RENAME a b", "-ERR no such key"),
        ("COPY a b", ":0"),
        ("PERSIST a", ":0"),
        ("EXPIRE a 5", ":0"),
        ("LPUSHX a v", ":0"),
        ("SINTER a", "*0"),
        ("SMOVE s a nope", ":0"),
        ("SCAN 0 MATCH a", "*2 $1 0 *0"),
        ("RPUSH a 1", ":1"),
        ("MSET a 1", "+OK"),
        ("MSETNX a 1", ":1"),
        ("SET a w KEEPTTL", "+OK"),
        ("ZADD a 1 m", ":1"),
        ("HSET a f v", ":1"),
    ] {
        let mut bench = Bench::new();
        bench.run("SADD s m").unwrap();
        bench.run("SET a v PX 5").unwrap();
        bench.take_effects();
        bench.now_ms = NOW_MS + 6;
        assert_eq!(bench.reply(command), reply, "{command}");
        let effects = bench.take_effects();
        assert_eq!(
            effects.first().map(String::as_str),
            Some("DEL a"),
            "{command}"
        );
        assert!(bench.reply("TTL a").starts_with(":-"), "{command}");
    }
}

#[test]
fn a_random_key_is_one_that_lives() {
    let mut bench = Bench::new();
    bench.run("SET stays v").unwrap();
    for index in 0..20 {
        bench.run(&format!("SET {index} v PX 1")).unwrap();
    }
    bench.now_ms += 2;
    for _ in 0..10 {
        assert_eq!(bench.reply("RANDOMKEY"), "$5 stays");
    }
}

#[test]
fn in_a_replay_nothing_ends() {
    let mut bench = Bench::new();
    bench.now_ms = 0;
    bench.run("RPUSH a 1").unwrap();
    bench.run("PEXPIREAT a 5").unwrap();
    assert_eq!(bench.reply("RPUSH a 2"), ":2");
    bench.run("SET b v PXAT 5").unwrap();
    assert_eq!(bench.reply("GET b"), "$1 v");
    bench.now_ms = NOW_MS;
    assert_eq!(bench.reply("EXISTS a b"), ":0");
}

#[test]
fn a_new_value_has_no_deadline_unless_it_is_kept() {
    let mut bench = Bench::new();
    for (command, ttl) in [
        ("SET a w", ":-1"),
        ("GETSET a w", ":-1"),
        ("MSET a w", ":-1"),
        ("SET a w KEEPTTL", ":100"),
        ("APPEND a w", ":100"),
        ("SETRANGE a 1 w", ":100"),
    ] {
        bench.run("SET a v EX 100").unwrap();
        bench.run(command).unwrap();
        assert_eq!(bench.reply("TTL a"), ttl, "{command}");
    }
    bench.run("SET a 1 EX 100").unwrap();
    bench.run("INCR a").unwrap();
    bench.run("INCRBYFLOAT a 1").unwrap();
    bench.run("SET b v EX 5").unwrap();
    bench.run("RENAME a b").unwrap();
    assert_eq!(bench.reply("TTL b"), ":100");
    bench.run("COPY b c DB 2").unwrap();
    bench.db = 2;
    assert_eq!(bench.reply("TTL c"), ":100");
}
