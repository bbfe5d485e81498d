//! Maintenance: retries failed actions when they are due, and deletes completed entries.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::select_all;
use meshwork_broker::Error;
use meshwork_broker::nooble::{MAX_WAIT, Nooble};
use tokio::time::sleep;

use super::queue::Queue;
use meshwork_worker::dedicated_thread::{Never, best_effort};

/// Longest pause between two checks of retries, since another process may have added one.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Shortest pause between two checks of retries.
const LOOK_SOON: Duration = Duration::from_millis(5);
/// Pause between two cleanups of a stream.
const TRIM_EVERY: Duration = Duration::from_secs(10);
/// Retention of entries that foreign workers acknowledged, for inspection.
const KEEP: Duration = Duration::from_secs(600);

/// Runs all tasks until the connection breaks. Each call takes at most a lease.
pub(super) async fn run(
    broker: &Nooble,
    queues: &[Arc<Queue>],
    lease: Duration,
) -> Result<Never, Error> {
    if queues.is_empty() {
        return std::future::pending().await;
    }
    let each = queues.iter().map(|queue| {
        Box::pin(async move {
            tokio::select! {
                failed = promote(broker, queue, lease) => failed,
                failed = trim(broker, queue, lease) => failed,
            }
        })
    });
    select_all(each).await.0
}

/// Returns failed actions to their queue when they are due.
async fn promote(broker: &Nooble, queue: &Queue, lease: Duration) -> Result<Never, Error> {
    loop {
        let promoted = broker.promote(&queue.source);
        let promoted = best_effort(broker.outages(), "promote", lease, promoted).await?;
        let next = promoted.and_then(|(_, next)| next).unwrap_or(LOOK_EVERY);
        sleep(next.clamp(LOOK_SOON, LOOK_EVERY)).await;
    }
}

/// Deletes completed entries of a stream, and consumers that are gone.
async fn trim(broker: &Nooble, queue: &Queue, lease: Duration) -> Result<Never, Error> {
    // A consumer does not show that it is alive during a blocking read.
    let gone = lease + MAX_WAIT;
    loop {
        let deleted = broker.trim(&queue.source, KEEP, gone);
        let deleted = best_effort(broker.outages(), "trim", lease, deleted).await?;
        let pause = match deleted {
            Some(many) if many > 0 => LOOK_SOON,
            _ => TRIM_EVERY,
        };
        sleep(pause).await;
    }
}
