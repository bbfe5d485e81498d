//! Blocked commands, and their wake-up.

use bytes::Bytes;

use super::{Bench, words};
use crate::{Reply, command::Stop};

fn woken(bench: &mut Bench, command: &str, key: &'static str) -> Result<String, Stop> {
    let reply = bench.call(&words(command), Some(Bytes::from_static(key.as_bytes())))?;
    Ok(format!("{reply:?}"))
}

fn waits(outcome: &Result<String, Stop>) -> bool {
    matches!(outcome, Err(Stop::Wait { .. }))
}

#[test]
fn a_wait_says_for_what_and_how_long() {
    let mut bench = Bench::new();
    let keys = vec![Bytes::from_static(b"a"), Bytes::from_static(b"b")];
    assert_eq!(
        bench.run("BLPOP a b 1.5"),
        Err(Stop::Wait {
            keys: keys.clone(),
            timeout_ms: 1500,
            otherwise: Reply::NilArray,
            again: None
        })
    );
    assert_eq!(
        bench.run("BLMPOP 0 2 a b LEFT"),
        Err(Stop::Wait {
            keys: keys.clone(),
            timeout_ms: 0,
            otherwise: Reply::NilArray,
            again: None
        })
    );
    assert_eq!(
        bench.run("BLMOVE a b LEFT LEFT 0.0001"),
        Err(Stop::Wait {
            keys: keys[..1].to_vec(),
            timeout_ms: 1,
            otherwise: Reply::Nil,
            again: None
        })
    );
    // Redis adds the present time, and the sum overflows into the past.
    assert_eq!(
        bench.run("BRPOPLPUSH a b 9223372036854775"),
        Err(Stop::Wait {
            keys: keys[..1].to_vec(),
            timeout_ms: 1,
            otherwise: Reply::Nil,
            again: None
        })
    );
}

#[test]
fn only_the_key_that_woke_it_serves() {
    let mut bench = Bench::new();
    bench.run("RPUSH a 1").unwrap();
    bench.run("RPUSH b 2").unwrap();
    let popped = woken(&mut bench, "BLPOP a b 0", "b").unwrap();
    assert!(popped.contains('2'), "{popped}");
    assert_eq!(bench.reply("LRANGE a 0 -1"), "*1 $1 1");
}

#[test]
fn a_key_that_is_no_list_any_more_does_not_serve() {
    let mut bench = Bench::new();
    bench.run("SET a v").unwrap();
    for command in ["BLPOP a b 0", "BLMPOP 0 1 a LEFT", "BLMOVE a b LEFT LEFT 0"] {
        assert!(waits(&woken(&mut bench, command, "a")), "{command}");
        assert!(
            matches!(bench.run(command), Err(Stop::Error(_))),
            "{command}"
        );
    }
    assert!(waits(&woken(&mut bench, "BLPOP a b 0", "b")), "it is gone");
}

#[test]
fn a_target_of_another_kind_takes_nothing() {
    let mut bench = Bench::new();
    bench.run("RPUSH a 1").unwrap();
    bench.run("SET b v").unwrap();
    let outcome = woken(&mut bench, "BLMOVE a b LEFT LEFT 0", "a");
    assert!(matches!(outcome, Err(Stop::Error(_))));
    assert_eq!(bench.reply("LLEN a"), ":1");
}

#[test]
fn a_list_that_comes_to_be_is_ready() {
    for (commands, ready) in [
        (&["RPUSH a 1"][..], &["a"][..]),
        (&["RPUSH a 1", "LPUSH a 2"], &["a"]),
        (&["LPUSHX a 1"], &[]),
        (&["RPUSH a 1", "RENAME a b"], &["a", "b"]),
        (&["SET b v", "RPUSH a 1", "COPY a b REPLACE"], &["a", "b"]),
        (&["RPUSH a 1", "RPOPLPUSH a b"], &["a", "b"]),
        (&["SADD a 1", "ZADD b 1 a", "HSET c f v", "SET d v"], &[]),
    ] {
        let mut bench = Bench::new();
        for command in commands {
            bench.run(command).unwrap();
        }
        let found = bench.store.take_ready();
        let found: Vec<_> = found.iter().map(|(_, key)| &key[..]).collect();
        let ready: Vec<_> = ready.iter().map(|key| key.as_bytes()).collect();
        assert_eq!(found, ready, "{commands:?}");
    }
}
