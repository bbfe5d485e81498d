//! renew: a worker keeps the messages that it holds.

use super::{Outcome, Side, W1, W2, World, cases, check, same};
use crate::cases::harness::world::{LEASE_MS, START};

cases![
    a_worker_is_there_for_so_long,
    what_the_last_one_leaves_ends,
    a_stream_gets_no_end,
    a_message_of_a_stream_was_given_just_now,
    a_renewal_reports_reclaimed_messages,
    what_is_over_is_told,
];

async fn a_worker_is_there_for_so_long(world: &World) -> Outcome {
    for (side, passed) in Side::both(world)?.iter().zip([7, 14]) {
        world.pass(7);
        same!(side.renew(W1, &[]).await?, Vec::<String>::new());
        let workers = &side.source.keys().workers;
        let until: u64 = world.raw(&["ZSCORE", workers, W1]).await?;
        same!(until, START + passed + LEASE_MS);
    }
    Ok(())
}

async fn what_the_last_one_leaves_ends(world: &World) -> Outcome {
    const DAYS: i64 = 86_400_000;
    for side in Side::both(world)? {
        side.started("m1").await?;
        let keys = side.source.keys();
        // The message was delivered long ago.
        let hand = keys.processing_of(W1);
        world.raw::<()>(&["PEXPIRE", &hand, "60000"]).await?;
        side.renew(W1, &[]).await?;
        let of_hand = (!side.is_stream()).then_some(&hand);
        for key in std::iter::once(&keys.workers).chain(of_hand) {
            let left: i64 = world.raw(&["PTTL", key]).await?;
            check!((29 * DAYS..=30 * DAYS).contains(&left));
        }
    }
    Ok(())
}

/// Services of other systems share the stream: a time to live would delete its messages and its groups.
async fn a_stream_gets_no_end(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    let held = [side.started("m1").await?];
    side.renew(W1, &held).await?;
    side.renew(W1, &[]).await?;
    same!(world.raw::<i64>(&["PTTL", side.queue()]).await?, -1);
    Ok(())
}

async fn a_message_of_a_stream_was_given_just_now(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    let got = side.started("m1").await?;
    side.idle(&got.id, 60_000).await?;
    let held = [got];
    same!(side.renew(W1, &held).await?, Vec::<String>::new());
    let pending = side.pending().await?;
    check!(pending[0].2 < 30_000);
    same!(pending[0].3, 1);
    same!(side.reclaim(1).await?, []);
    Ok(())
}

async fn a_renewal_reports_reclaimed_messages(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    let got = [side.started("m1").await?, side.started("m2").await?];
    side.lose(&got[..1]).await?;
    let taken = side.reclaim(1).await?;
    same!(taken.len(), 1);
    same!(side.renew(W1, &got).await?, [got[0].id.clone()]);
    // The other worker's message stays, and a message that was delivered again is another run.
    same!(side.hand(W2).await?, ["m1"]);
    let words = ["XCLAIM", side.queue(), super::GROUP, W1, "0", &got[1].id];
    world.raw::<()>(&words).await?;
    same!(side.renew(W1, &got[1..]).await?, [got[1].id.clone()]);
    Ok(())
}

async fn what_is_over_is_told(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    let got = [side.started("m1").await?];
    side.verbs.release(W1, &got[0]).await?;
    same!(side.renew(W1, &got).await?, [got[0].id.clone()]);
    world.raw::<()>(&["DEL", side.queue()]).await?;
    same!(side.renew(W1, &got).await?, [got[0].id.clone()]);
    Ok(())
}
