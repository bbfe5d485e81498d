//! Maintenance: promotes due jobs, fires cron schedules, and rescues orphans of workers of Bananas.

use std::time::Duration;

use meshwork_broker::Error;
use meshwork_broker::bananas::Bananas;
use tokio::time::{MissedTickBehavior, interval};

use super::client::new_id;
use super::state::BananasProtocol;
use meshwork_worker::dedicated_thread::{Never, best_effort};

/// Pause between two checks of delayed jobs, since clients of Bananas send no wakeup.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Shortest pause between two checks.
const LOOK_SOON: Duration = Duration::from_millis(5);

/// Runs all tasks until the connection breaks. Each call takes at most a lease.
pub(super) async fn run(
    broker: &Bananas,
    state: &BananasProtocol,
    lease: Duration,
) -> Result<Never, Error> {
    tokio::select! {
        failed = look(broker, state, lease) => failed,
        failed = crons(broker, state, lease) => failed,
        failed = rescue_orphans(broker, state, lease) => failed,
    }
}

/// Promotes due jobs.
async fn look(broker: &Bananas, state: &BananasProtocol, lease: Duration) -> Result<Never, Error> {
    if !state.scheduler {
        std::future::pending::<()>().await;
    }
    loop {
        let due = best_effort(broker.outages(), "due", lease, broker.due()).await?;
        let due = due.unwrap_or_default();
        if !due.is_empty() {
            let promoted = broker.promote(&due, state.peer);
            let promoted = best_effort(broker.outages(), "promote", lease, promoted).await?;
            let promoted = promoted.unwrap_or_default();
            if promoted.buried > 0 {
                let ids = promoted.buried;
                tracing::warn!(
                    ids,
                    "delayed jobs became dead letters: their records are gone"
                );
            }
            // Without this check, jobs that cannot be moved would cause an endless loop.
            if promoted.moved > 0 {
                continue;
            }
        }
        let next = due.next.unwrap_or(LOOK_EVERY);
        tokio::time::sleep(next.clamp(LOOK_SOON, LOOK_EVERY)).await;
    }
}

/// Fires the due slots of cron schedules.
async fn crons(broker: &Bananas, state: &BananasProtocol, lease: Duration) -> Result<Never, Error> {
    if !state.scheduler {
        std::future::pending::<()>().await;
    }
    let mut ticks = interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let crons = best_effort(broker.outages(), "crons", lease, broker.crons()).await?;
        let crons = crons.unwrap_or_default();
        for kept in crons.due() {
            let fired = broker.fire_schedule(kept, crons.now, new_id(), state.peer);
            if best_effort(broker.outages(), "fire", lease, fired).await? == Some(true) {
                tracing::debug!(schedule = %kept.name, "its job waits");
            }
        }
    }
}

/// Requeues orphans of workers of Bananas.
async fn rescue_orphans(
    broker: &Bananas,
    state: &BananasProtocol,
    lease: Duration,
) -> Result<Never, Error> {
    let Some(age) = state.rescue_orphans_after else {
        return std::future::pending().await;
    };
    let mut ticks = interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let orphans = best_effort(broker.outages(), "orphans", lease, broker.orphans(age)).await?;
        for orphan in orphans.unwrap_or_default() {
            let rescued = broker.rescue(&orphan, state.peer);
            if best_effort(broker.outages(), "rescue", lease, rescued).await? == Some(true) {
                let job = String::from_utf8_lossy(&orphan.id).into_owned();
                tracing::warn!(job, "job requeued: its Bananas worker is gone");
            }
        }
    }
}
