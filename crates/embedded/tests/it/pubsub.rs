//! Publish and subscribe.

use crate::common::{pushed, run};
use futures_util::FutureExt as _;
use meshwork_embedded::Handle;

#[test]
fn messages_reach_channels_and_patterns_in_order() {
    let handle = Handle::in_memory();
    let (mut one, mut other) = (handle.session(), handle.session());
    assert_eq!(run(&mut one, "SUBSCRIBE a b"), "");
    assert_eq!(run(&mut one, "PSUBSCRIBE a*"), "");
    assert_eq!(
        pushed(&mut one),
        [
            "*3|$9|subscribe|$1|a|:1|",
            "*3|$9|subscribe|$1|b|:2|",
            "*3|$10|psubscribe|$2|a*|:3|",
        ]
    );
    assert_eq!(run(&mut other, "PUBLISH a x"), ":2|");
    assert_eq!(run(&mut other, "PUBLISH ab y"), ":1|");
    assert_eq!(run(&mut other, "PUBLISH c z"), ":0|");
    assert_eq!(
        pushed(&mut one),
        [
            "*3|$7|message|$1|a|$1|x|",
            "*4|$8|pmessage|$2|a*|$1|a|$1|x|",
            "*4|$8|pmessage|$2|a*|$2|ab|$1|y|",
        ]
    );
    assert_eq!(run(&mut other, "PUBSUB NUMSUB a c"), "*4|$1|a|:1|$1|c|:0|");
    assert_eq!(run(&mut other, "PUBSUB NUMPAT"), ":1|");
    drop(one);
    assert_eq!(run(&mut other, "PUBLISH a x"), ":0|");
    assert_eq!(run(&mut other, "PUBSUB CHANNELS"), "*0|");
}

#[test]
fn resp2_allows_a_listener_little() {
    let mut one = Handle::in_memory().session();
    run(&mut one, "SUBSCRIBE a");
    let refused = "-ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / \
                   RESET are allowed in this context|";
    assert_eq!(run(&mut one, "GET k"), refused);
    assert_eq!(run(&mut one, "PING"), "*2|$4|pong|$0||");
    run(&mut one, "UNSUBSCRIBE");
    assert_eq!(run(&mut one, "GET k"), "$-1|");
    run(&mut one, "SUBSCRIBE a");
    assert_eq!(run(&mut one, "RESET"), "+RESET|");
    assert_eq!(run(&mut one, "GET k"), "$-1|");
    run(&mut one, "HELLO 3");
    run(&mut one, "SUBSCRIBE a");
    assert_eq!(run(&mut one, "GET k"), "$-1|");
}

#[test]
fn shard_channels_are_apart() {
    let handle = Handle::in_memory();
    let (mut one, mut other) = (handle.session(), handle.session());
    run(&mut one, "SSUBSCRIBE a");
    assert_eq!(run(&mut other, "PUBLISH a x"), ":0|");
    assert_eq!(run(&mut other, "SPUBLISH a x"), ":1|");
    assert_eq!(
        pushed(&mut one),
        ["*3|$10|ssubscribe|$1|a|:1|", "*3|$8|smessage|$1|a|$1|x|"]
    );
}

/// A message is in the queue of its subscriber before its publisher gets a reply.
#[tokio::test]
async fn a_listener_that_never_reads_is_cut_off() {
    let handle = Handle::in_memory();
    let (mut one, mut other) = (handle.session(), handle.session());
    run(&mut one, "SUBSCRIBE a");
    let mut sent = 0;
    while !one.is_over() {
        run(&mut other, "PUBLISH a x");
        sent += 1;
        assert!(sent < 1_000_000, "the queue has no bound");
    }
    let mut read = 0;
    while one.next_push().await.is_some() {
        read += 1;
    }
    // The confirmation was one of them, and the last message did not fit.
    assert_eq!(read, sent);
    assert_eq!(run(&mut one, "PING"), "");
}

#[tokio::test]
async fn whoever_quits_gets_no_more() {
    let handle = Handle::in_memory();
    let (mut one, mut other) = (handle.session(), handle.session());
    run(&mut one, "SUBSCRIBE a");
    pushed(&mut one);
    assert!(one.next_push().now_or_never().is_none());
    assert_eq!(run(&mut one, "QUIT"), "+OK|");
    assert!(one.is_over());
    run(&mut other, "PUBLISH a x");
    assert_eq!(one.next_push().await, None);
}
