//! leave: removes a worker that holds no message.

use super::{GROUP, HAND_WAITS, Outcome, Side, W1, W2, World, cases, check, same, texts};

cases![
    is_forgotten,
    what_it_has_in_hand_keeps_it,
    messages_in_flight_are_reclaimed_at_once,
    a_stream_that_is_gone_has_nobody
];

/// Returns the expiry of the worker's registration, if it has one at the queue.
async fn until(side: &Side<'_>) -> Result<Option<u64>, super::Failure> {
    let words = ["ZSCORE", &side.source.keys().workers, W1];
    side.world.raw(&words).await
}

/// Returns true if the group of a stream has it as a consumer.
async fn in_group(side: &Side<'_>) -> Result<bool, super::Failure> {
    let all: redis::Value = side
        .world
        .raw(&["XINFO", "CONSUMERS", side.queue(), GROUP])
        .await?;
    Ok(format!("{all:?}").contains(W1))
}

async fn is_forgotten(world: &World) -> Outcome {
    for side in Side::both(world)? {
        let got = side.started("m1").await?;
        side.renew(W1, &[]).await?;
        check!(until(&side).await?.is_some());
        side.verbs.release(W1, &got).await?;
        check!(side.verbs.deregister(W1, &side.source).await?);
        same!(until(&side).await?, None);
        check!(!side.is_stream() || !in_group(&side).await?);
        same!(side.waiting().await?, ["m1"]);
    }
    Ok(())
}

async fn what_it_has_in_hand_keeps_it(world: &World) -> Outcome {
    for side in Side::both(world)? {
        side.started("m1").await?;
        side.renew(W1, &[]).await?;
        check!(!side.verbs.deregister(W1, &side.source).await?);
        check!(until(&side).await?.is_some());
        check!(!side.is_stream() || in_group(&side).await?);
        same!(side.hand(W1).await?, ["m1"]);
    }
    Ok(())
}

/// The worker may have no registration.
async fn messages_in_flight_are_reclaimed_at_once(world: &World) -> Outcome {
    for side in Side::both(world)? {
        for message in ["m1", "m2"] {
            side.started(message).await?;
            check!(!side.verbs.deregister(W1, &side.source).await?);
            let days: i64 = side.ttl(&side.source.keys().workers).await?;
            same!(days, HAND_WAITS);
            side.renew(W2, &[]).await?;
            same!(texts(&side.reclaim(1).await?), [message]);
            side.renew(W1, &[]).await?;
        }
    }
    Ok(())
}

async fn a_stream_that_is_gone_has_nobody(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    side.renew(W1, &[]).await?;
    check!(side.verbs.deregister(W1, &side.source).await?);
    same!(until(&side).await?, None);
    check!(!side.exists(side.queue()).await?);
    Ok(())
}
