//! Log and snapshot contain all changes: random commands, and the data after a replay.

use bytes::Bytes;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};

use super::{Bench, words};

/// Commands that change data, with placeholders: K key, M member, S score, I index, T time,
/// N id of an entry, G group, C consumer.
const COMMANDS: &[&str] = &[
    "SET K M",
    "SET K M EX T",
    "SET K M KEEPTTL XX",
    "GETEX K PX T",
    "GETDEL K",
    "APPEND K M",
    "SETRANGE K 3 M",
    "INCRBY K 7",
    "INCRBYFLOAT K S",
    "MSET K M K M",
    "MSETNX K M K M",
    "EXPIRE K T",
    "PEXPIREAT K 1",
    "PERSIST K",
    "DEL K",
    "RENAME K K",
    "COPY K K REPLACE",
    "COPY K K DB 1",
    "RPUSH K M M M",
    "LPUSH K M",
    "LPOP K",
    "RPOP K 2",
    "LREM K I M",
    "LTRIM K I -1",
    "LINSERT K AFTER M M",
    "LSET K I M",
    "LMOVE K K RIGHT LEFT",
    "BLMOVE K K LEFT RIGHT 0",
    "BRPOP K K 0",
    "BLMPOP 0 2 K K LEFT COUNT 2",
    "SADD K M M M",
    "SREM K M",
    "SPOP K",
    "SPOP K 2",
    "SMOVE K K M",
    "HSET K M M M M",
    "HDEL K M",
    "HINCRBY K M 3",
    "HINCRBYFLOAT K M S",
    "ZADD K S M S M",
    "ZADD K GT CH S M",
    "ZADD K NX INCR S M",
    "ZINCRBY K S M",
    "ZREM K M",
    "ZPOPMIN K 2",
    "ZPOPMAX K",
    "ZREMRANGEBYSCORE K S S",
    "ZREMRANGEBYRANK K I I",
    "ZREMRANGEBYLEX K [M +",
    "XADD K * M M",
    "XADD K N M M M M",
    "XADD K MAXLEN 3 * M M",
    "XADD K MAXLEN ~ 120 * M M",
    "XADD K MINID ~ N * M M",
    "XTRIM K MAXLEN I",
    "XTRIM K MINID N",
    "XDEL K N N",
    "XSETID K 9-9 MAXDELETEDID N",
    "XSETID K N",
    "XGROUP CREATE K G 0 MKSTREAM",
    "XGROUP CREATE K G $ MKSTREAM ENTRIESREAD 2",
    "XGROUP SETID K G N",
    "XGROUP DESTROY K G",
    "XGROUP CREATECONSUMER K G C",
    "XGROUP DELCONSUMER K G C",
    "XREADGROUP GROUP G C STREAMS K >",
    "XREADGROUP GROUP G C COUNT 2 STREAMS K K > >",
    "XREADGROUP GROUP G C NOACK STREAMS K >",
    "XREADGROUP GROUP G C STREAMS K 0",
    "XREADGROUP GROUP G C STREAMS K 9",
    "XACK K G N N",
    "XCLAIM K G C 0 N N FORCE",
    "XCLAIM K G C 0 N TIME 5 RETRYCOUNT 7 JUSTID",
    "XCLAIM K G C 10 N IDLE 100 LASTID N",
    "XAUTOCLAIM K G C 5 0 COUNT 3",
    "XAUTOCLAIM K G C 0 N JUSTID",
    "FLUSHDB",
];

fn fill(template: &str, rng: &mut StdRng) -> Vec<Bytes> {
    let mut pick = |from: &[&'static str]| *from.choose(rng).unwrap();
    let mut words = words(template);
    for word in &mut words[1..] {
        let filled = match &word[..] {
            b"K" => pick(&["a", "b", "c", "d", "e", "f"]),
            b"M" => pick(&["", "m", "n", "1", "2.5", "-0", "12345"]),
            b"[M" => pick(&["[m", "[", "[1"]),
            b"S" => pick(&["0", "-0", "1", "0.1", "1e17", "-inf", "3.0e3"]),
            b"I" => pick(&["0", "1", "-1", "-2", "5"]),
            b"N" => pick(&["1-1", "1-2", "2", "3-1", "9-9", "1800000000100-0"]),
            b"G" => pick(&["g", "h", ""]),
            b"C" => pick(&["c", "d", ""]),
            b"T" => pick(&["1", "100", "0", "-1", "5000"]),
            _ => continue,
        };
        *word = Bytes::from_static(filled.as_bytes());
    }
    words
}

fn replay(commands: impl IntoIterator<Item = crate::store::Effect>) -> Bench {
    let mut replayed = Bench::new();
    replayed.now_ms = 0;
    for effect in commands {
        replayed.db = effect.db;
        replayed
            .call(&effect.args, None)
            .unwrap_or_else(|stop| panic!("{effect:?}: {stop:?}"));
    }
    replayed
}

#[test]
fn what_is_logged_is_what_happened() {
    let seed = rand::random();
    let mut rng = StdRng::seed_from_u64(seed);
    let mut bench = Bench::new();
    let mut logged = Vec::new();
    for _ in 0..20_000 {
        // The flush is rare, so that data accumulates.
        let template = COMMANDS.choose(&mut rng).unwrap();
        if *template == "FLUSHDB" && rng.random_ratio(9, 10) {
            continue;
        }
        bench.now_ms += rng.random_range(0..20);
        let _ = bench.call(&fill(template, &mut rng), None);
        if rng.random_ratio(1, 50) {
            bench.store.expire_some(bench.now_ms, 3, &mut bench.effects);
        }
        logged.append(&mut bench.effects);
    }
    let content = bench.content();
    assert!(!content.is_empty(), "seed {seed}");
    assert_eq!(replay(logged).content(), content, "the log, seed {seed}");
    assert_eq!(
        replay(bench.store.snapshot()).content(),
        content,
        "the snapshot, seed {seed}"
    );
}
