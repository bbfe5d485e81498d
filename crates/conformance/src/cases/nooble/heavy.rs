//! 100,000 actions: each call stays short, and repeated calls process all of them.

use std::time::Duration;

use super::{Outcome, Side, W1, W2, World, cases, check, same};
use crate::cases::harness::world::{LEASE, LEASE_MS, START};
use crate::cases::heavy_loads::heavy::{MANY, seed, short};

cases![
    taken_a_thousand_at_a_time,
    what_is_due_at_one_moment_is_moved_bit_by_bit,
    a_worker_with_all_messages_is_reclaimed_in_parts,
    a_long_stream_is_trimmed_bit_by_bit,
];

fn message(n: usize) -> Vec<String> {
    vec![format!("m{n}")]
}

fn entry(n: usize) -> Vec<String> {
    vec![format!("{}-1", n + 1), "data".to_owned(), format!("m{n}")]
}

fn due(n: usize) -> Vec<String> {
    vec!["1".to_owned(), format!("t m{n}")]
}

/// Fills a queue; a stream needs a command for each message.
async fn filled(side: &Side<'_>) -> Outcome {
    if !side.is_stream() {
        return seed(side.world, &["LPUSH", side.queue()], message).await;
    }
    side.send(&[]).await?;
    for from in (0..MANY).step_by(10_000) {
        let mut all = redis::pipe();
        for n in from..from + 10_000 {
            all.cmd("XADD").arg(side.queue()).arg(entry(n)).ignore();
        }
        let filled: Result<(), _> = all.query_async(&mut side.world.conn().clone()).await;
        filled?;
    }
    Ok(())
}

/// Makes the first worker hold all messages.
async fn in_flight(side: &Side<'_>) -> Outcome {
    if !side.is_stream() {
        let hand = side.source.keys().processing_of(W1);
        return seed(side.world, &["LPUSH", &hand], message).await;
    }
    filled(side).await?;
    for _ in 0..MANY / 1_000 {
        side.receive_as(W1, 1_000).await?;
    }
    Ok(())
}

async fn taken_a_thousand_at_a_time(world: &World) -> Outcome {
    for side in Side::both(world)? {
        filled(&side).await?;
        same!(
            short(side.verbs.receive(W1, &side.source, 1_000))
                .await?
                .len(),
            1_000
        );
        check!(side.verbs.receive(W1, &side.source, 1_001).await.is_err());
    }
    Ok(())
}

async fn what_is_due_at_one_moment_is_moved_bit_by_bit(world: &World) -> Outcome {
    for side in Side::both(world)? {
        seed(world, &["ZADD", &side.source.keys().delayed], due).await?;
        let (mut moved, mut calls) = (0, 0);
        loop {
            let (many, next) = short(side.verbs.promote(&side.source)).await?;
            (moved, calls) = (moved + many, calls + 1);
            if next.is_none() {
                break;
            }
        }
        same!((moved, calls), (MANY, MANY / 1_000));
    }
    Ok(())
}

async fn a_worker_with_all_messages_is_reclaimed_in_parts(world: &World) -> Outcome {
    for side in Side::both(world)? {
        in_flight(&side).await?;
        side.lose(&[]).await?;
        let taken = side
            .verbs
            .reclaim(W2, &side.source, 1_000, (LEASE, None), "-");
        let taken = short(taken).await?;
        same!(taken.messages.len(), 1_000);
        same!(taken.messages[0].message.as_deref(), Some(&b"m0"[..]));
    }
    Ok(())
}

async fn a_long_stream_is_trimmed_bit_by_bit(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    filled(&side).await?;
    world
        .raw::<()>(&["XGROUP", "SETID", side.queue(), super::GROUP, "$"])
        .await?;
    world.at(START + LEASE_MS);
    let first = short(side.verbs.trim(&side.source, Duration::ZERO, LEASE)).await?;
    check!((1..=1_000).contains(&first));
    loop {
        if short(side.verbs.trim(&side.source, Duration::ZERO, LEASE)).await? == 0 {
            break;
        }
    }
    check!(world.raw::<usize>(&["XLEN", side.queue()]).await? <= 100);
    Ok(())
}
