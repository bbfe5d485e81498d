//! Poller: polls the queues of all workers of a pool five times per second, by commands that only read. An idle process
//! with many contexts therefore runs no scripts and needs no connection per queue. A context whose server reports changes
//! is polled only after a change. A poll that waits for the answer of one server, such as a node of a Cluster, delays no
//! other poll.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};

use tokio::time::Instant;

use super::PoolState;
use super::member::Member;

/// Interval of the polls: the longest wait of a job in an idle context.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Number of polls after which one also checks for due tasks: once a second in each context.
const DUE_EVERY: usize = 5;
/// Greatest number of idle contexts in a poll, of those whose server reports no changes. More are polled in turn.
const MOST_IDLE: usize = 100;
/// Shortest time between two rounds over all members because of changes.
const CHANGES_EVERY: Duration = Duration::from_millis(10);

/// Polls until the task is dropped.
pub(super) async fn poll_queues(pool: Arc<PoolState>) {
    let mut ticks = tokio::time::interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    // Each member skips polls while one is running, so there are few.
    let mut looks = FuturesUnordered::<BoxFuture<'_, ()>>::new();
    let (mut round, changes) = (0_usize, &pool.watches.changes);
    let mut next = Instant::now();
    loop {
        let is_tick = tokio::select! {
            _ = ticks.tick() => true,
            () = changes.noted(next) => false,
            Some(()) = looks.next() => continue,
        };
        next = Instant::now() + CHANGES_EVERY;
        let (changed, all) = changes.take();
        let is_changed = |it: &Member| all || it.context().is_some_and(|id| changed.contains(&id));
        round += usize::from(is_tick);
        let members = pool.live();
        let idle = members.iter().filter(|member| member.is_polled_idle());
        let shares = idle.count().div_ceil(MOST_IDLE).max(1);
        for (at, member) in members.into_iter().enumerate() {
            let is_changed = is_changed(&member);
            if is_changed {
                member.note_change();
            }
            let shares = if member.is_polled_idle() { shares } else { 1 };
            let turn = round + at;
            let is_turn = is_tick && turn.is_multiple_of(shares);
            let due = is_turn && (turn / shares).is_multiple_of(DUE_EVERY);
            // The first change of an idle context is looked at now, later ones in the next poll.
            if (is_turn || is_changed && member.is_calm()) && member.is_look_due(due) {
                looks.push(Box::pin(look(&pool, member, due)));
            }
        }
        if is_tick && round.is_multiple_of(DUE_EVERY) {
            looks.push(Box::pin(pool.watches.check(&pool.node)));
        }
    }
}

async fn look(pool: &PoolState, member: Arc<Member>, due: bool) {
    let looked = member.look(pool, due).await;
    // Outages are logged once for all members.
    let _ = member.broker().outages().observe("look", looked);
}
