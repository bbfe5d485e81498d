//! reclaim: takes over the messages of dead workers, and no others.

use std::time::Duration;

use super::{GROUP, HAND_WAITS, Outcome, Side, W1, W2, World, cases, check, same, texts};
use crate::cases::harness::world::{LEASE, LEASE_MS};

cases![
    takes_over_and_counts,
    leaves_what_is_renewed,
    takes_no_more_than_wanted,
    goes_on_where_it_stopped,
    leaves_what_others_have_unless_it_is_said,
    does_not_take_its_own_list,
    who_is_not_there_takes_nothing,
    what_a_killed_worker_had_is_not_behind_what_others_have,
    who_renews_less_often_keeps_what_it_has,
    what_came_without_its_knowledge_is_its_own,
    messages_of_an_unknown_worker_are_reclaimed,
    a_worker_whose_wait_may_go_on_is_looked_after,
    what_was_deleted_is_passed_over,
    an_entry_without_a_message_is_taken_too,
    a_group_that_is_gone_is_made_again,
];

async fn takes_over_and_counts(world: &World) -> Outcome {
    for side in Side::both(world)? {
        let got = side.started("m1").await?;
        side.lose(std::slice::from_ref(&got)).await?;
        let taken = side.reclaim(5).await?;
        same!(texts(&taken), ["m1"]);
        same!(taken[0].lost, 1);
        same!(taken[0].id, got.id);
        same!(side.hand(W1).await?, Vec::<String>::new());
        same!(side.hand(W2).await?, ["m1"]);
        same!(side.ttl(&side.tries("m1")).await?, 86_400);
        if side.is_stream() {
            same!(taken[0].given, 2);
        } else {
            let hand = side.source.keys().processing_of(W2);
            same!(side.ttl(&hand).await?, HAND_WAITS);
        }
        side.renew(W1, &[]).await?;
        world.pass(LEASE_MS - 1);
        side.renew(W1, &[]).await?;
        world.pass(1);
        let idle = (LEASE, None);
        let again = side.verbs.reclaim(W1, &side.source, 5, idle, "-").await?;
        same!(again.messages.len(), 1);
        same!(again.messages[0].lost, 2);
    }
    Ok(())
}

async fn leaves_what_is_renewed(world: &World) -> Outcome {
    for side in Side::both(world)? {
        let got = [side.started("m1").await?];
        side.renew(W1, &got).await?;
        world.pass(LEASE_MS - 1);
        if side.is_stream() {
            side.idle(&got[0].id, LEASE_MS / 2).await?;
        }
        side.renew(W2, &[]).await?;
        same!(side.reclaim(5).await?, []);
        same!(side.hand(W1).await?, ["m1"]);
        check!(!side.exists(&side.tries("m1")).await?);
    }
    Ok(())
}

async fn takes_no_more_than_wanted(world: &World) -> Outcome {
    for side in Side::both(world)? {
        side.send(&["m1", "m2", "m3"]).await?;
        let got = side.receive_as(W1, 3).await?;
        side.lose(&got).await?;
        same!(side.reclaim(0).await?, []);
        same!(texts(&side.reclaim(2).await?), ["m1", "m2"]);
        same!(side.hand(W1).await?, ["m3"]);
        same!(texts(&side.reclaim(2).await?), ["m3"]);
    }
    Ok(())
}

/// The first hundred messages are held by a foreign worker.
async fn goes_on_where_it_stopped(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    let messages: Vec<_> = (0..150).map(|n| format!("m{n}")).collect();
    let messages: Vec<_> = messages.iter().map(String::as_str).collect();
    side.send(&messages).await?;
    let got = side.receive_as("python", 149).await?;
    for one in &got {
        side.idle(&one.id, LEASE_MS).await?;
    }
    let last = side.receive().await?;
    side.idle(&last.id, LEASE_MS).await?;
    side.renew(W2, &[]).await?;
    let idle = (LEASE, None);
    let first = side.verbs.reclaim(W2, &side.source, 5, idle, "-").await?;
    same!(first.messages, []);
    let second = side
        .verbs
        .reclaim(W2, &side.source, 5, idle, &first.next)
        .await?;
    same!(texts(&second.messages), ["m149"]);
    same!(second.next, "-");
    Ok(())
}

async fn leaves_what_others_have_unless_it_is_said(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    side.send(&["m1", "m2"]).await?;
    let got = side.receive_as("demo-worker-w0", 2).await?;
    side.idle(&got[0].id, 60_000).await?;
    side.idle(&got[1].id, 30_000).await?;
    side.renew(W2, &[]).await?;
    same!(side.reclaim(5).await?, []);
    let idle = (LEASE, Some(Duration::from_secs(45)));
    let taken = side.verbs.reclaim(W2, &side.source, 5, idle, "-").await?;
    same!(texts(&taken.messages), ["m1"]);
    let consumers: Vec<_> = side.pending().await?.into_iter().map(|one| one.1).collect();
    same!(consumers, [W2, "demo-worker-w0"]);
    Ok(())
}

/// Its own renewals came late: it keeps the messages that it holds.
async fn does_not_take_its_own_list(world: &World) -> Outcome {
    let [_, side] = Side::both(world)?;
    side.started("m1").await?;
    side.renew(W1, &[]).await?;
    world.pass(10 * LEASE_MS);
    let idle = (LEASE, None);
    let taken = side.verbs.reclaim(W1, &side.source, 5, idle, "-").await?;
    same!(taken.messages, []);
    same!(side.hand(W1).await?, ["m1"]);
    check!(
        world
            .raw::<Option<u64>>(&["ZSCORE", &side.source.keys().workers, W1])
            .await?
            .is_some()
    );
    Ok(())
}

/// Returns the expiry of the first worker's registration, if it has one.
async fn listed(side: &Side<'_>) -> Result<Option<u64>, super::Failure> {
    let words = ["ZSCORE", &side.source.keys().workers, W1];
    side.world.raw(&words).await
}

async fn who_is_not_there_takes_nothing(world: &World) -> Outcome {
    for side in Side::both(world)? {
        let got = [side.started("m1").await?];
        side.lose(&got).await?;
        world.pass(LEASE_MS);
        same!(side.reclaim(5).await?, []);
        same!(side.hand(W1).await?, ["m1"]);
        side.renew(W2, &[]).await?;
        same!(texts(&side.reclaim(5).await?), ["m1"]);
    }
    Ok(())
}

async fn what_a_killed_worker_had_is_not_behind_what_others_have(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    let messages: Vec<_> = (0..150).map(|n| format!("m{n}")).collect();
    let messages: Vec<_> = messages.iter().map(String::as_str).collect();
    side.send(&messages).await?;
    for one in side.receive_as("python", 149).await? {
        side.idle(&one.id, LEASE_MS).await?;
    }
    let last = side.receive().await?;
    side.lose(&[last]).await?;
    same!(texts(&side.reclaim(5).await?), ["m149"]);
    Ok(())
}

/// A registered worker keeps its messages, however rarely it renews them.
async fn who_renews_less_often_keeps_what_it_has(world: &World) -> Outcome {
    for side in Side::both(world)? {
        let got = side.started("m1").await?;
        let alive = 6 * LEASE;
        side.verbs.renew(W1, &side.source, &[], alive).await?;
        if side.is_stream() {
            side.idle(&got.id, 5 * LEASE_MS).await?;
        }
        world.pass(6 * LEASE_MS - 1);
        side.renew(W2, &[]).await?;
        same!(side.reclaim(5).await?, []);
        world.pass(1);
        same!(texts(&side.reclaim(5).await?), ["m1"]);
    }
    Ok(())
}

async fn what_came_without_its_knowledge_is_its_own(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    side.send(&["m1", "m2", "m3"]).await?;
    let got = side.receive_as(W1, 3).await?;
    side.renew(W1, &[]).await?;
    side.renew(W2, &[]).await?;
    for one in &got[..2] {
        side.idle(&one.id, LEASE_MS).await?;
    }
    same!(side.reclaim(5).await?, []);
    let idle = (LEASE, None);
    for (most, came) in [(0, None), (1, Some("m1")), (5, Some("m2"))] {
        let taken = side
            .verbs
            .reclaim(W1, &side.source, most, idle, "-")
            .await?;
        same!(texts(&taken.messages), came.as_slice());
    }
    same!(side.hand(W1).await?, ["m1", "m2", "m3"]);
    Ok(())
}

/// The set of registrations was lost.
async fn messages_of_an_unknown_worker_are_reclaimed(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    side.send(&["m1", "m2"]).await?;
    let got = side.receive_as(W1, 2).await?;
    side.renew(W2, &[]).await?;
    side.idle(&got[0].id, LEASE_MS).await?;
    same!(texts(&side.reclaim(5).await?), ["m1"]);
    same!(side.hand(W1).await?, ["m2"]);
    Ok(())
}

/// Delivers a message to the first worker, as if it waited.
async fn comes_late(side: &Side<'_>, message: &str) -> Outcome {
    if side.is_stream() {
        return side.started(message).await.map(drop);
    }
    let hand = side.source.keys().processing_of(W1);
    side.world.raw(&["LPUSH", &hand, message]).await
}

async fn a_worker_whose_wait_may_go_on_is_looked_after(world: &World) -> Outcome {
    for side in Side::both(world)? {
        is_looked_after(&side).await?;
    }
    Ok(())
}

async fn is_looked_after(side: &Side<'_>) -> Outcome {
    let world = side.world;
    let got = side.started("m1").await?;
    side.lose(&[got]).await?;
    same!(side.reclaim(5).await?.len(), 1);
    check!(listed(side).await?.is_some());
    // A message comes to the worker after its death.
    comes_late(side, "m2").await?;
    world.pass(29_999);
    side.renew(W2, &[]).await?;
    same!(texts(&side.reclaim(5).await?), ["m2"]);
    check!(listed(side).await?.is_some());
    comes_late(side, "m3").await?;
    world.pass(1);
    same!(side.reclaim(0).await?, []);
    check!(listed(side).await?.is_some());
    same!(texts(&side.reclaim(5).await?), ["m3"]);
    check!(listed(side).await?.is_none());
    Ok(())
}

async fn what_was_deleted_is_passed_over(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    side.send(&["m1", "m2"]).await?;
    let got = side.receive_as(W1, 2).await?;
    side.lose(&got).await?;
    world.raw::<()>(&["XDEL", side.queue(), &got[0].id]).await?;
    same!(texts(&side.reclaim(5).await?), ["m2"]);
    Ok(())
}

async fn an_entry_without_a_message_is_taken_too(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    side.send(&[]).await?;
    world
        .raw::<()>(&["XADD", side.queue(), "*", "other", "x"])
        .await?;
    let got = side.receive().await?;
    same!(got.message, None);
    side.lose(&[got]).await?;
    let taken = side.reclaim(5).await?;
    same!(taken.len(), 1);
    same!(taken[0].message, None);
    Ok(())
}

async fn a_group_that_is_gone_is_made_again(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    side.send(&["m1"]).await?;
    side.renew(W2, &[]).await?;
    world
        .raw::<()>(&["XGROUP", "DESTROY", side.queue(), GROUP])
        .await?;
    same!(side.reclaim(5).await?, []);
    same!(texts(&side.receive_as(W1, 1).await?), ["m1"]);
    Ok(())
}
