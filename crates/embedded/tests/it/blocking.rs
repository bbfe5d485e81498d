//! Clients that wait for lists: order of service, and elements whose client leaves.

use std::pin::pin;

use crate::common::{run, shown, words};
use futures_util::{FutureExt as _, poll};
use meshwork_embedded::{Handle, Reply, Session};

fn session(handle: &Handle) -> Session {
    handle.session()
}

#[tokio::test]
async fn who_came_first_is_served_first() {
    let handle = Handle::in_memory();
    let (mut one, mut two, mut pusher) = (session(&handle), session(&handle), session(&handle));
    let args = words("BLPOP list 0");
    let mut first = pin!(one.call(&args));
    let mut second = pin!(two.call(&args));
    assert!(poll!(&mut first).is_pending());
    assert!(poll!(&mut second).is_pending());
    assert_eq!(run(&mut pusher, "RPUSH list a"), ":1|");
    assert!(poll!(&mut second).is_pending());
    assert_eq!(shown(&first.await), "*2|$4|list|$1|a|");
    assert_eq!(run(&mut pusher, "RPUSH list b c"), ":2|");
    assert_eq!(shown(&second.await), "*2|$4|list|$1|b|");
    assert_eq!(run(&mut pusher, "LRANGE list 0 -1"), "*1|$1|c|");
}

#[tokio::test]
async fn nobody_is_served_before_the_whole_transaction() {
    let handle = Handle::in_memory();
    let (mut waiting, mut other) = (session(&handle), session(&handle));
    let args = words("BRPOP list 0");
    let mut waits = Box::pin(waiting.call(&args));
    assert!(poll!(&mut waits).is_pending());
    for command in ["MULTI", "RPUSH list a", "RPUSH list b", "LPUSH list c"] {
        run(&mut other, command);
    }
    assert_eq!(run(&mut other, "EXEC"), "*3|:1|:2|:3|");
    assert_eq!(shown(&waits.await), "*2|$4|list|$1|b|");

    let args = words("BLPOP other 0");
    let mut waits = pin!(waiting.call(&args));
    assert!(poll!(&mut waits).is_pending());
    let script = "redis.call('rpush',KEYS[1],'x') return redis.call('lpop',KEYS[1])";
    let eval = [&words("EVAL")[..], &[script.into()], &words("1 other")].concat();
    assert_eq!(other.call(&eval).await, Reply::Bulk("x".into()));
    assert!(poll!(&mut waits).is_pending(), "the script took it back");
    run(&mut other, "RPUSH other y");
    assert_eq!(shown(&waits.await), "*2|$5|other|$1|y|");
}

#[tokio::test]
async fn what_is_moved_for_one_client_serves_the_next() {
    let handle = Handle::in_memory();
    let (mut one, mut two, mut three) = (session(&handle), session(&handle), session(&handle));
    let mut pusher = session(&handle);
    let last = words("BLPOP c 0");
    let middle = words("BLMOVE b c RIGHT LEFT 0");
    let first = words("BRPOPLPUSH a b 0");
    let mut last = pin!(three.call(&last));
    let mut middle = pin!(two.call(&middle));
    let mut first = pin!(one.call(&first));
    for waits in [&mut last, &mut middle, &mut first] {
        assert!(poll!(waits).is_pending());
    }
    run(&mut pusher, "LPUSH a x");
    assert_eq!(shown(&first.await), "$1|x|");
    assert_eq!(shown(&middle.await), "$1|x|");
    assert_eq!(shown(&last.await), "*2|$1|c|$1|x|");
    assert_eq!(run(&mut pusher, "DBSIZE"), ":0|");
}

#[tokio::test]
async fn a_dropped_call_takes_nothing() {
    let handle = Handle::in_memory();
    let (mut one, mut other) = (session(&handle), session(&handle));
    let args = words("BLPOP list 0");
    {
        let mut waits = pin!(one.call(&args));
        assert!(poll!(&mut waits).is_pending());
    }
    run(&mut other, "RPUSH list a");
    assert_eq!(run(&mut other, "LRANGE list 0 -1"), "*1|$1|a|");
    assert_eq!(run(&mut one, "PING"), "+PONG|");
}

/// The element has been popped and the reply is ready when the call is dropped.
#[tokio::test]
async fn an_element_popped_for_a_dropped_call_goes_back() {
    for (command, push, left) in [
        ("BLPOP k 0", "RPUSH k a b c", "*3|$1|a|$1|b|$1|c|"),
        ("BRPOP k 0", "RPUSH k a b c", "*3|$1|a|$1|b|$1|c|"),
        (
            "BLMPOP 0 2 j k LEFT COUNT 2",
            "RPUSH k a b c",
            "*3|$1|a|$1|b|$1|c|",
        ),
        (
            "BLMPOP 0 1 k RIGHT COUNT 2",
            "RPUSH k a b c",
            "*3|$1|a|$1|b|$1|c|",
        ),
    ] {
        let handle = Handle::in_memory();
        let (mut one, mut other) = (session(&handle), session(&handle));
        let args = words(command);
        {
            let mut waits = pin!(one.call(&args));
            assert!(poll!(&mut waits).is_pending());
            run(&mut other, push);
            assert_ne!(run(&mut other, "LLEN k"), ":3|", "{command} was served");
        }
        assert_eq!(run(&mut other, "LRANGE k 0 -1"), left, "{command}");
    }
}

#[tokio::test]
async fn what_goes_back_serves_the_next_who_waits() {
    let handle = Handle::in_memory();
    let (mut one, mut two, mut pusher) = (session(&handle), session(&handle), session(&handle));
    let args = words("BLPOP list 0");
    let mut second = pin!(two.call(&args));
    {
        let mut first = pin!(one.call(&args));
        assert!(poll!(&mut first).is_pending());
        assert!(poll!(&mut second).is_pending());
        run(&mut pusher, "RPUSH list a");
    }
    assert_eq!(shown(&second.await), "*2|$4|list|$1|a|");
}

#[tokio::test]
async fn a_moved_element_stays_where_it_was_moved_to() {
    let handle = Handle::in_memory();
    let (mut one, mut other) = (session(&handle), session(&handle));
    let args = words("BLMOVE from to LEFT RIGHT 0");
    {
        let mut waits = pin!(one.call(&args));
        assert!(poll!(&mut waits).is_pending());
        run(&mut other, "RPUSH from a");
    }
    assert_eq!(run(&mut other, "LRANGE to 0 -1"), "*1|$1|a|");
    assert_eq!(run(&mut other, "EXISTS from"), ":0|");
}

#[tokio::test]
async fn waiting_ends_with_its_time_or_by_unblock() {
    let handle = Handle::in_memory();
    let (mut one, mut other) = (session(&handle), session(&handle));
    assert_eq!(shown(&one.call(&words("BLPOP k 0.001")).await), "*-1|");
    assert_eq!(
        shown(&one.call(&words("BLMOVE k l LEFT LEFT 0.001")).await),
        "*-1|"
    );
    let id = one.id();
    for (how, reply) in [
        ("", "*-1|"),
        (" TIMEOUT", "*-1|"),
        (" ERROR", "-UNBLOCKED client unblocked via CLIENT UNBLOCK|"),
    ] {
        let args = words("BRPOP k 0");
        let mut waits = pin!(one.call(&args));
        assert!(poll!(&mut waits).is_pending());
        assert_eq!(run(&mut other, &format!("CLIENT UNBLOCK {id}{how}")), ":1|");
        assert_eq!(shown(&waits.await), reply);
        assert_eq!(run(&mut other, &format!("CLIENT UNBLOCK {id}")), ":0|");
    }
    assert_eq!(run(&mut other, "RPUSH k a"), ":1|");
    assert_eq!(run(&mut other, "LLEN k"), ":1|");
}

#[tokio::test]
async fn a_killed_client_waits_no_longer() {
    let handle = Handle::in_memory();
    let (mut one, mut other) = (session(&handle), session(&handle));
    let id = one.id();
    let args = words("BLPOP k 0");
    let mut waits = Box::pin(one.call(&args));
    assert!(poll!(&mut waits).is_pending());
    assert_eq!(run(&mut other, &format!("CLIENT KILL ID {id}")), ":1|");
    assert_eq!(shown(&waits.await), "-ERR the client was killed|");
    assert!(one.is_over());
    assert_eq!(one.next_push().now_or_never(), Some(None));
    run(&mut other, "RPUSH k a");
    assert_eq!(run(&mut other, "LLEN k"), ":1|");
}

#[tokio::test]
async fn another_kind_of_value_wakes_nobody() {
    let handle = Handle::in_memory();
    let (mut one, mut other) = (session(&handle), session(&handle));
    let args = words("BLPOP j k 0");
    let mut waits = pin!(one.call(&args));
    assert!(poll!(&mut waits).is_pending());
    run(&mut other, "SET j x");
    run(&mut other, "SADD k x");
    assert!(poll!(&mut waits).is_pending());
    run(&mut other, "DEL k");
    run(&mut other, "RPUSH k a");
    // The string at j does not matter: the client is served from the key that became ready.
    assert_eq!(shown(&waits.await), "*2|$1|k|$1|a|");
}

#[tokio::test]
async fn a_renamed_list_serves_too() {
    let handle = Handle::in_memory();
    let (mut one, mut other) = (session(&handle), session(&handle));
    let args = words("BLPOP k 0");
    let mut waits = pin!(one.call(&args));
    assert!(poll!(&mut waits).is_pending());
    run(&mut other, "RPUSH j a");
    run(&mut other, "RENAME j k");
    assert_eq!(shown(&waits.await), "*2|$1|k|$1|a|");
}

#[tokio::test]
async fn nothing_waits_in_a_transaction() {
    let mut one = session(&Handle::in_memory());
    for command in ["MULTI", "BLPOP k 0", "BLMOVE k l LEFT LEFT 0", "BRPOP k 0"] {
        run(&mut one, command);
    }
    assert_eq!(run(&mut one, "EXEC"), "*3|*-1|$-1|*-1|");
}
