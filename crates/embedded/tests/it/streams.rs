//! Clients that wait for entries of streams: their replies, and the end of their groups.

use std::pin::pin;

use crate::common::{run, shown, words};
use futures_util::poll;
use meshwork_embedded::{Handle, Reply};

const ENTRY: &str = "*1|*2|$1|s|*1|*2|$3|1-1|*2|$1|f|$1|v|";

async fn eval(session: &mut meshwork_embedded::Session, script: &str) -> Reply {
    let eval = [&words("EVAL")[..], &[script.to_owned().into()], &words("0")].concat();
    session.call(&eval).await
}

#[tokio::test]
async fn an_entry_serves_all_who_wait_for_it() {
    let handle = Handle::in_memory();
    let (mut one, mut two, mut other) = (handle.session(), handle.session(), handle.session());
    run(&mut two, "HELLO 3");
    let args = words("XREAD BLOCK 0 STREAMS nope s 0 $");
    let mut first = pin!(one.call(&args));
    let mut second = pin!(two.call(&args));
    assert!(poll!(&mut first).is_pending());
    assert!(poll!(&mut second).is_pending());
    run(&mut other, "XADD s 1-1 f v");
    assert_eq!(shown(&first.await), ENTRY);
    assert!(matches!(second.await, Reply::Map(_)), "as RESP3 has it");
}

#[tokio::test]
async fn an_entry_serves_one_of_each_group() {
    let handle = Handle::in_memory();
    let mut other = handle.session();
    for group in ["g", "h"] {
        run(&mut other, &format!("XGROUP CREATE s {group} $ MKSTREAM"));
    }
    let mut sessions = [(); 3].map(|()| handle.session());
    let [one, two, three] = &mut sessions;
    let in_group = |group| words(&format!("XREADGROUP GROUP {group} c BLOCK 0 STREAMS s >"));
    let (g, h) = (in_group("g"), in_group("h"));
    let mut first = pin!(one.call(&g));
    let mut second = pin!(two.call(&g));
    let mut third = pin!(three.call(&h));
    assert!(poll!(&mut first).is_pending());
    assert!(poll!(&mut second).is_pending());
    assert!(poll!(&mut third).is_pending());
    run(&mut other, "XADD s 1-1 f v");
    assert_eq!(shown(&first.await), ENTRY);
    assert_eq!(shown(&third.await), ENTRY);
    assert!(poll!(&mut second).is_pending());
    assert_eq!(run(&mut other, "XLEN s"), ":1|");
    run(&mut other, "XADD s 2-1 f v");
    assert_eq!(shown(&second.await), ENTRY.replace("1-1", "2-1"));
    assert_eq!(run(&mut other, "XACK s g 1-1 2-1"), ":2|");
}

#[tokio::test]
async fn entries_of_scripts_and_transactions_serve_at_their_end() {
    let handle = Handle::in_memory();
    let (mut one, mut other) = (handle.session(), handle.session());
    let args = words("XREAD COUNT 1 BLOCK 0 STREAMS s $");
    let mut waits = Box::pin(one.call(&args));
    assert!(poll!(&mut waits).is_pending());
    for command in ["MULTI", "XADD s 1-1 f v", "XADD s 1-2 f v"] {
        run(&mut other, command);
    }
    assert!(poll!(&mut waits).is_pending());
    run(&mut other, "EXEC");
    assert_eq!(shown(&waits.await), ENTRY);

    let mut waits = Box::pin(one.call(&args));
    assert!(poll!(&mut waits).is_pending());
    let script = "redis.call('xadd', 's', '2-1', 'f', 'v') return redis.call('xdel', 's', '2-1')";
    assert_eq!(eval(&mut other, script).await, Reply::Int(1));
    // The entry existed, and is gone: as in Redis.
    assert_eq!(shown(&waits.await), "*1|*2|$1|s|*0|");
}

#[tokio::test]
async fn who_waits_in_a_group_that_goes_is_told() {
    const GONE: &str = "-UNBLOCKED the stream key no longer exists|";
    const NO_GROUP: &str =
        "-NOGROUP the consumer group this client was blocked on no longer exists|";
    for (ends, expected) in [
        ("DEL s", GONE),
        ("SET s x", GONE),
        ("RENAME s t", GONE),
        ("FLUSHALL", GONE),
        ("PEXPIREAT s 1", GONE),
        ("XGROUP DESTROY s g", NO_GROUP),
    ] {
        let handle = Handle::in_memory();
        let (mut one, mut two, mut other) = (handle.session(), handle.session(), handle.session());
        run(&mut other, "XGROUP CREATE s g $ MKSTREAM");
        let args = words("XREADGROUP GROUP g c BLOCK 0 STREAMS s >");
        let mut waits = pin!(one.call(&args));
        assert!(poll!(&mut waits).is_pending());
        let args = words("XREAD BLOCK 0 STREAMS s $");
        let mut reads = pin!(two.call(&args));
        assert!(poll!(&mut reads).is_pending());
        run(&mut other, ends);
        assert_eq!(shown(&waits.await), expected, "{ends}");
        assert!(poll!(&mut reads).is_pending(), "{ends}: entries may come");
        run(&mut other, "DEL s");
        run(&mut other, "XADD s 1-1 f v");
        assert_eq!(shown(&reads.await), ENTRY, "{ends}");
    }
}

#[tokio::test]
async fn each_kind_of_value_serves_its_own() {
    let handle = Handle::in_memory();
    let (mut one, mut two, mut other) = (handle.session(), handle.session(), handle.session());
    let args = words("BLPOP s 0");
    let mut pops = pin!(one.call(&args));
    assert!(poll!(&mut pops).is_pending());
    let args = words("XREAD BLOCK 0 STREAMS s $");
    let mut reads = pin!(two.call(&args));
    assert!(poll!(&mut reads).is_pending());
    run(&mut other, "XADD s 1-1 f v");
    assert_eq!(shown(&reads.await), ENTRY);
    assert!(poll!(&mut pops).is_pending());
    run(&mut other, "DEL s");
    run(&mut other, "RPUSH s a");
    assert_eq!(shown(&pops.await), "*2|$1|s|$1|a|");
}

#[tokio::test]
async fn waiting_ends_with_its_time_or_does_not_begin() {
    let handle = Handle::in_memory();
    let mut one = handle.session();
    let waits = words("XREAD BLOCK 1 STREAMS s $");
    assert_eq!(shown(&one.call(&waits).await), "*-1|");
    for command in ["MULTI", "XREAD BLOCK 0 STREAMS s $"] {
        run(&mut one, command);
    }
    assert_eq!(run(&mut one, "EXEC"), "*1|*-1|");
    let script = "return redis.call('xread', 'block', 0, 'streams', 's', '$')";
    let refused = shown(&eval(&mut one, script).await);
    let text = "-ERR xread command is not allowed with BLOCK option from scripts";
    assert!(refused.starts_with(text), "{refused}");
}

/// A delivered entry stays pending for the consumer, although its call was dropped.
#[tokio::test]
async fn what_was_delivered_to_a_dropped_call_is_pending() {
    let handle = Handle::in_memory();
    let (mut one, mut other) = (handle.session(), handle.session());
    run(&mut other, "XGROUP CREATE s g $ MKSTREAM");
    let args = words("XREADGROUP GROUP g c BLOCK 0 STREAMS s >");
    {
        let mut waits = pin!(one.call(&args));
        assert!(poll!(&mut waits).is_pending());
        run(&mut other, "XADD s 1-1 f v");
    }
    assert_eq!(
        run(&mut other, "XPENDING s g"),
        "*4|:1|$3|1-1|$3|1-1|*1|*2|$1|c|$1|1|"
    );
}
