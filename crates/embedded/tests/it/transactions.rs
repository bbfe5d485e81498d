//! MULTI, EXEC, WATCH, and expired keys.

use std::time::Duration;

use crate::common::run;
use meshwork_embedded::{Clock, Handle};

#[test]
fn a_transaction_answers_all_at_once() {
    let mut one = Handle::in_memory().session();
    assert_eq!(run(&mut one, "MULTI"), "+OK|");
    assert_eq!(run(&mut one, "SET k v"), "+QUEUED|");
    assert_eq!(run(&mut one, "LPUSH k x"), "+QUEUED|");
    assert_eq!(run(&mut one, "GET k"), "+QUEUED|");
    let wrong = "-WRONGTYPE Operation against a key holding the wrong kind of value|";
    assert_eq!(run(&mut one, "EXEC"), format!("*3|+OK|{wrong}$1|v|"));
    assert_eq!(run(&mut one, "EXEC"), "-ERR EXEC without MULTI|");
}

#[test]
fn a_refused_command_spoils_the_transaction() {
    let mut one = Handle::in_memory().session();
    for refused in ["NOPE", "GET", "CLIENT NOPE", "SHUTDOWN"] {
        run(&mut one, "MULTI");
        assert_eq!(run(&mut one, "SET k v"), "+QUEUED|");
        assert!(run(&mut one, refused).starts_with("-ERR "), "{refused}");
        let aborted = "-EXECABORT Transaction discarded because of previous errors.|";
        assert_eq!(run(&mut one, "EXEC"), aborted);
        assert_eq!(run(&mut one, "EXISTS k"), ":0|");
    }
}

#[test]
fn multi_is_not_nested_and_can_be_discarded() {
    let mut one = Handle::in_memory().session();
    run(&mut one, "MULTI");
    assert_eq!(
        run(&mut one, "MULTI"),
        "-ERR MULTI calls can not be nested|"
    );
    assert_eq!(
        run(&mut one, "WATCH k"),
        "-ERR WATCH inside MULTI is not allowed|"
    );
    run(&mut one, "SET k v");
    assert_eq!(run(&mut one, "DISCARD"), "+OK|");
    assert_eq!(run(&mut one, "DISCARD"), "-ERR DISCARD without MULTI|");
    assert_eq!(run(&mut one, "GET k"), "$-1|");
}

#[test]
fn a_watched_key_that_was_written_to_stops_the_transaction() {
    let handle = Handle::in_memory();
    let (mut one, mut other) = (handle.session(), handle.session());
    for (write, stopped) in [
        ("SET k v", true),
        ("SET k v", true),
        ("DEL k", true),
        ("DEL k", false),
        ("SET other v", false),
        ("RENAME other k", true),
        ("EXPIRE k 100", true),
        ("PERSIST k", true),
        ("GET k", false),
        ("FLUSHALL", true),
        ("FLUSHALL", false),
    ] {
        run(&mut one, "WATCH k");
        run(&mut other, write);
        run(&mut one, "MULTI");
        run(&mut one, "PING");
        let reply = if stopped { "*-1|" } else { "*1|+PONG|" };
        assert_eq!(run(&mut one, "EXEC"), reply, "{write}");
    }
}

#[test]
fn watching_ends_with_exec_discard_and_unwatch() {
    let handle = Handle::in_memory();
    let (mut one, mut other) = (handle.session(), handle.session());
    for end in [&["UNWATCH"][..], &["MULTI", "DISCARD"], &["MULTI", "EXEC"]] {
        run(&mut one, "WATCH k");
        for command in end {
            run(&mut one, command);
        }
        run(&mut other, "INCR k");
        run(&mut one, "MULTI");
        assert_eq!(run(&mut one, "EXEC"), "*0|", "{end:?}");
    }
}

#[test]
fn a_watched_key_that_expires_stops_the_transaction() {
    let clock = Clock::manual(1_000_000);
    let mut one = Handle::with_clock(clock.clone()).session();
    run(&mut one, "SET k v PX 100");
    run(&mut one, "WATCH k");
    clock.advance(101);
    run(&mut one, "MULTI");
    assert_eq!(run(&mut one, "EXEC"), "*-1|");
    // The key had expired before it was watched: its removal is not a change.
    run(&mut one, "SET k v PX 100");
    clock.advance(101);
    run(&mut one, "WATCH k");
    assert_eq!(run(&mut one, "GET k"), "$-1|");
    run(&mut one, "MULTI");
    assert_eq!(run(&mut one, "EXEC"), "*0|");
}

#[test]
fn a_key_is_gone_when_its_time_is_over() {
    let clock = Clock::manual(1_000_000);
    let mut one = Handle::with_clock(clock.clone()).session();
    run(&mut one, "SET k v PX 100");
    assert_eq!(run(&mut one, "PTTL k"), ":100|");
    clock.advance(100);
    assert_eq!(run(&mut one, "GET k"), "$1|v|");
    clock.advance(1);
    assert_eq!(run(&mut one, "GET k"), "$-1|");
    assert_eq!(run(&mut one, "TTL k"), ":-2|");
}

/// No command reads the keys: the engine removes them by itself.
#[tokio::test]
async fn keys_go_without_being_asked_for() {
    let clock = Clock::manual(1_000_000);
    let handle = Handle::with_clock(clock.clone());
    let mut one = handle.session();
    for number in 0..5_000 {
        run(&mut one, &format!("SET k{number} v PX 50"));
    }
    run(&mut one, "SET stays v");
    clock.advance(51);
    let gone = async {
        while run(&mut one, "DBSIZE") != ":1|" {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), gone)
        .await
        .expect("keys whose time is over are removed");
}
