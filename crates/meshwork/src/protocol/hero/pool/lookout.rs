//! Lookout: looks into the queues of all workers of a pool, five times per second, with commands that only read. So an idle
//! process of many contexts runs no scripts and needs no connection per queue.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use super::PoolState;

/// Between two looks: a job in an idle context waits as long, at most.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// One of this many looks is also for tasks that are due, so once a second in each context.
const DUE_EVERY: usize = 5;

/// Looks for ever.
pub(super) async fn look_out(pool: Arc<PoolState>) {
    let mut ticks = tokio::time::interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    for round in 0_usize.. {
        ticks.tick().await;
        let members = pool.live();
        let looks = members.iter().enumerate().map(async |(at, member)| {
            let looked = member.look(&pool, (round + at) % DUE_EVERY == 0).await;
            let outages = member.broker().outages();
            // The reason is logged once for all.
            let _ = outages.observe("look", looked);
        });
        join_all(looks).await;
    }
}
