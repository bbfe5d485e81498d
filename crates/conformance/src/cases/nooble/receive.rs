//! receive: messages come in order, each to one worker, and missing groups are created again.

use std::time::Duration;

use meshwork_broker::Error;
use meshwork_broker::nooble::{MAX_WAIT, PendingCallback};

use super::{GROUP, HAND_WAITS, Outcome, Side, W1, W2, World, cases, check, same, texts};
use crate::cases::harness::world::PATIENCE;

cases![
    the_oldest_comes_first,
    each_comes_to_one,
    what_stood_there_before_the_group_comes_too,
    what_comes_while_one_waits,
    a_wait_ends,
    a_group_that_is_gone_is_made_again,
    a_stream_that_is_deleted_is_made_again,
    an_entry_without_a_message_comes_too,
    a_queue_of_another_kind_is_an_error,
    a_queue_may_be_made_again,
    callbacks_come_from_a_list,
    what_was_asked_is_kept_for_so_long,
    answers_come_together,
    what_is_in_the_hand_is_told,
    what_is_in_the_hand_ends,
];

async fn the_oldest_comes_first(world: &World) -> Outcome {
    for side in Side::both(world)? {
        side.send(&["m1", "m2", "m3"]).await?;
        same!(texts(&side.receive_as(W1, 2).await?), ["m1", "m2"]);
        same!(texts(&side.receive_as(W1, 2).await?), ["m3"]);
        same!(side.receive_as(W1, 2).await?, []);
    }
    Ok(())
}

async fn each_comes_to_one(world: &World) -> Outcome {
    for side in Side::both(world)? {
        side.send(&["m1", "m2"]).await?;
        same!(texts(&side.receive_as(W1, 1).await?), ["m1"]);
        same!(texts(&side.receive_as(W2, 5).await?), ["m2"]);
        same!(side.hand(W1).await?, ["m1"]);
        same!(side.hand(W2).await?, ["m2"]);
    }
    Ok(())
}

async fn what_stood_there_before_the_group_comes_too(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    side.verbs.send(side.queue(), "m1", None).await?;
    side.verbs.prepare(&side.source).await?;
    same!(texts(&side.receive_as(W1, 1).await?), ["m1"]);
    Ok(())
}

async fn what_comes_while_one_waits(world: &World) -> Outcome {
    for side in Side::both(world)? {
        side.send(&[]).await?;
        let blocking = side.verbs.blocking_conn().await?;
        let wait = side
            .verbs
            .wait(&blocking, W1, &side.source, PATIENCE, Duration::ZERO);
        let (got, sent) = tokio::join!(wait, side.verbs.send(side.queue(), "m1", None));
        sent?;
        same!(texts(got?.as_slice()), ["m1"]);
        same!(side.hand(W1).await?, ["m1"]);
    }
    Ok(())
}

async fn a_wait_ends(world: &World) -> Outcome {
    for side in Side::both(world)? {
        side.send(&[]).await?;
        let blocking = side.verbs.blocking_conn().await?;
        let soon = Duration::from_millis(10);
        same!(
            side.verbs
                .wait(&blocking, W1, &side.source, soon, Duration::ZERO)
                .await?,
            None
        );
        let wait = side
            .verbs
            .wait(&blocking, W1, &side.source, 2 * MAX_WAIT, Duration::ZERO);
        let ended = async {
            // The blocked call may have reached the server only after the call to end it.
            loop {
                if let Err(error) = side.verbs.unblock(&blocking).await {
                    return error;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            got = wait => same!(got?, None),
            error = ended => return Err(error.into()),
        }
    }
    Ok(())
}

async fn a_group_that_is_gone_is_made_again(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    side.send(&["m1"]).await?;
    world
        .raw::<()>(&["XGROUP", "DESTROY", side.queue(), GROUP])
        .await?;
    same!(side.receive_as(W1, 1).await?, []);
    same!(texts(&side.receive_as(W1, 1).await?), ["m1"]);
    Ok(())
}

async fn a_stream_that_is_deleted_is_made_again(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    side.send(&[]).await?;
    world.raw::<()>(&["DEL", side.queue()]).await?;
    let blocking = side.verbs.blocking_conn().await?;
    same!(
        side.verbs
            .wait(&blocking, W1, &side.source, PATIENCE, Duration::ZERO)
            .await?,
        None
    );
    side.verbs.send(side.queue(), "m1", None).await?;
    let got = side
        .verbs
        .wait(&blocking, W1, &side.source, PATIENCE, Duration::ZERO)
        .await?;
    same!(texts(got.as_slice()), ["m1"]);
    Ok(())
}

async fn an_entry_without_a_message_comes_too(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    side.send(&[]).await?;
    world
        .raw::<()>(&["XADD", side.queue(), "*", "other", "x"])
        .await?;
    world
        .raw::<()>(&["XADD", side.queue(), "*", "other", "x", "data", "m2"])
        .await?;
    let got = side.receive_as(W1, 2).await?;
    same!(got[0].message, None);
    same!(texts(&got[1..]), ["m2"]);
    Ok(())
}

async fn a_queue_of_another_kind_is_an_error(world: &World) -> Outcome {
    for side in Side::both(world)? {
        world.raw::<()>(&["SET", side.queue(), "x"]).await?;
        let names_it =
            |says: String| says.contains(side.queue()) && says.contains("rename or delete");
        check!(
            side.receive_as(W1, 1)
                .await
                .is_err_and(|it| names_it(it.to_string()))
        );
        let blocking = side.verbs.blocking_conn().await?;
        let waits = side
            .verbs
            .wait(&blocking, W1, &side.source, PATIENCE, Duration::ZERO);
        check!(waits.await.is_err_and(|it| names_it(it.to_string())));
        let made = side.verbs.prepare(&side.source).await;
        let named = matches!(&made, Err(Error::WrongType { key, .. }) if key == side.queue());
        check!(named == side.is_stream() && made.is_err() == named);
    }
    Ok(())
}

async fn a_queue_may_be_made_again(world: &World) -> Outcome {
    for side in Side::both(world)? {
        side.send(&["m1"]).await?;
        side.verbs.prepare(&side.source).await?;
        same!(side.waiting().await?, ["m1"]);
    }
    Ok(())
}

async fn callbacks_come_from_a_list(world: &World) -> Outcome {
    for side in Side::both(world)? {
        let source = side.verbs.callbacks("tester", "tester.done", None);
        world.raw::<()>(&["LPUSH", source.queue(), "c1"]).await?;
        side.verbs.prepare(&source).await?;
        let got = side.verbs.receive(W1, &source, 1).await?;
        same!(texts(&got), ["c1"]);
        same!(world.list(&source.keys().processing_of(W1)).await?, ["c1"]);
    }
    Ok(())
}

async fn what_was_asked_is_kept_for_so_long(world: &World) -> Outcome {
    for side in Side::both(world)? {
        side.send(&[]).await?;
        let key = side.pending_callback();
        let pending = PendingCallback {
            key: &key,
            record: "{}",
            stays: Duration::from_secs(60),
        };
        side.verbs.send(side.queue(), "m1", Some(pending)).await?;
        same!(
            side.verbs.pending_callback(&key).await?.as_deref(),
            Some("{}")
        );
        same!(side.ttl(&key).await?, 60);
        same!(side.waiting().await?, ["m1"]);
        same!(side.verbs.pending_callback(&side.replies()).await?, None);
    }
    Ok(())
}

async fn answers_come_together(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    let (list, other) = (side.replies(), format!("{}:other", side.replies()));
    world.raw::<()>(&["LPUSH", &list, "r1", "r2"]).await?;
    let blocking = side.verbs.blocking_conn().await?;
    let both = [other.clone(), list.clone()];
    let wait = async |wait| {
        let waits = side.verbs.replies(&blocking, &both, wait, Duration::ZERO);
        waits.await
    };
    same!(wait(PATIENCE).await?, [b"r1", b"r2"]);
    same!(wait(Duration::from_millis(10)).await?.len(), 0);
    world.raw::<()>(&["LPUSH", &list, "r3"]).await?;
    world.raw::<()>(&["LPUSH", &other, "r4"]).await?;
    same!(wait(PATIENCE).await?, [b"r4"]);
    world.raw::<()>(&["LPUSH", &other, "r5"]).await?;
    side.verbs.delete_replies(&both).await?;
    check!(!side.exists(&list).await? && !side.exists(&other).await?);
    Ok(())
}

/// No other worker has a message that came when the connection broke.
async fn what_is_in_the_hand_is_told(world: &World) -> Outcome {
    for side in Side::both(world)? {
        side.send(&["m1", "m2", "m3"]).await?;
        side.receive_as(W1, 2).await?;
        let held = side.verbs.in_flight(W1, &side.source).await?;
        let expected: &[&str] = if side.is_stream() { &[] } else { &["m1", "m2"] };
        same!(texts(&held), expected);
    }
    Ok(())
}

/// Its worker may be killed at any moment, so the key of its messages has a time to live, whichever way they came.
async fn what_is_in_the_hand_ends(world: &World) -> Outcome {
    let [_, side] = Side::both(world)?;
    let hand = side.source.keys().processing_of(W1);
    side.send(&["m1", "m2"]).await?;
    same!(texts(&side.receive_as(W1, 1).await?), ["m1"]);
    same!(side.ttl(&hand).await?, HAND_WAITS);
    world.raw::<()>(&["DEL", &hand]).await?;
    let blocking = side.verbs.blocking_conn().await?;
    let wait = side
        .verbs
        .wait(&blocking, W1, &side.source, PATIENCE, Duration::ZERO);
    same!(texts(wait.await?.as_slice()), ["m2"]);
    same!(side.ttl(&hand).await?, HAND_WAITS);
    same!(side.receive_as(W2, 1).await?, []);
    check!(!side.exists(&side.source.keys().processing_of(W2)).await?);
    Ok(())
}
