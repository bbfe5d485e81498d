//! Poller: polls the queues of all workers of a pool five times per second, by commands that only read. An idle process
//! with many contexts therefore runs no scripts and needs no connection per queue.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use super::PoolState;

/// Interval of the polls: the longest wait of a job in an idle context.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Number of polls after which one also checks for due tasks: once a second in each context.
const DUE_EVERY: usize = 5;

/// Polls until the task is dropped.
pub(super) async fn poll_queues(pool: Arc<PoolState>) {
    let mut ticks = tokio::time::interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    for round in 0_usize.. {
        ticks.tick().await;
        let members = pool.live();
        let looks = members.iter().enumerate().map(async |(at, member)| {
            let looked = member.look(&pool, (round + at) % DUE_EVERY == 0).await;
            let outages = member.broker().outages();
            // Outages are logged once for all members.
            let _ = outages.observe("look", looked);
        });
        join_all(looks).await;
    }
}
