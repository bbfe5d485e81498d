//! Poller: polls the queues of all workers of a pool five times per second, by commands that only read. An idle process
//! with many contexts therefore runs no scripts and needs no connection per queue. A poll that waits for the answer of
//! one server, such as a node of a Cluster, delays no other poll.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};

use super::PoolState;

/// Interval of the polls: the longest wait of a job in an idle context.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Number of polls after which one also checks for due tasks: once a second in each context.
const DUE_EVERY: usize = 5;

/// Polls until the task is dropped.
pub(super) async fn poll_queues(pool: Arc<PoolState>) {
    let mut ticks = tokio::time::interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    // Each member skips polls while one is running, so there are few.
    let mut looks = FuturesUnordered::new();
    let mut round = 0_usize;
    loop {
        tokio::select! {
            _ = ticks.tick() => round += 1,
            Some(()) = looks.next() => continue,
        }
        for (at, member) in pool.live().into_iter().enumerate() {
            let (pool, due) = (&pool, (round + at).is_multiple_of(DUE_EVERY));
            looks.push(async move {
                let looked = member.look(pool, due).await;
                let outages = member.broker().outages();
                // Outages are logged once for all members.
                let _ = outages.observe("look", looked);
            });
        }
    }
}
