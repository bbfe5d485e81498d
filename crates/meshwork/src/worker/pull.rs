//! Pull: claims jobs while slots are free, and hands each to a task of its own.

use std::sync::Arc;
use std::time::Duration;

use meshwork_broker::{Claim, Claimed, Taken};
use tokio::sync::{Notify, Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Setup;
use super::held::Held;
use super::{execute, report};
use crate::backoff::Backoff;

/// Between two claims while nothing comes: what no wake-up told of is found then.
const SAFETY: Duration = Duration::from_secs(5);
/// How long a feeder that brought an id waits for the claim before it waits for the next id.
const CLAIM_SOON: Duration = Duration::from_secs(1);

/// What the pull loop and the feeders tell each other.
#[derive(Debug)]
pub(super) struct Appetite {
    hungry: watch::Sender<bool>,
    claims: watch::Sender<u64>,
    fed: Notify,
}

impl Appetite {
    pub(super) fn new() -> Self {
        Self {
            hungry: watch::Sender::new(false),
            claims: watch::Sender::new(0),
            fed: Notify::new(),
        }
    }

    /// Returns when slots are free and the last claim found the queues empty.
    pub(super) async fn hungry(&self) {
        // The sender lives as long as `self`.
        let _ = self.hungry.subscribe().wait_for(|hungry| *hungry).await;
    }

    /// An id has come: wakes the pull loop, and returns when it has claimed.
    pub(super) async fn feed(&self) {
        let mut claims = self.claims.subscribe();
        claims.mark_unchanged();
        self.fed.notify_one();
        let _ = tokio::time::timeout(CLAIM_SOON, claims.changed()).await;
    }
}

/// Claims and starts jobs until `stop`.
pub(super) async fn pull(
    setup: Arc<Setup>,
    held: Arc<Held>,
    appetite: Arc<Appetite>,
    running: TaskTracker,
    stop: CancellationToken,
) {
    let slots = Arc::new(Semaphore::new(setup.concurrency));
    let mut backoff = Backoff::new();
    while !stop.is_cancelled() {
        let free = slots.available_permits();
        let taken = match claim(&setup, free).await {
            Ok(taken) => taken,
            Err(error) => {
                tracing::warn!(%error, "claim failed; trying again");
                tokio::select! {
                    () = backoff.wait() => continue,
                    () = stop.cancelled() => return,
                }
            }
        };
        backoff = Backoff::new();
        if taken.dropped > 0 {
            tracing::debug!(
                ids = taken.dropped,
                "dropped ids of jobs that are not there to run"
            );
        }
        let (got, more) = (taken.jobs.len(), taken.more);
        for claimed in taken.jobs {
            let task = work(Arc::clone(&setup), Arc::clone(&held), claimed);
            let Ok(slot) = Arc::clone(&slots).try_acquire_owned() else {
                // Not more was wanted than there were slots, and nobody else takes one.
                tracing::error!("no slot for a claimed job; its lease will end");
                continue;
            };
            running.spawn(async move {
                task.await;
                drop(slot);
            });
        }
        appetite.claims.send_modify(|claims| *claims += 1);
        if got < free && !more {
            idle(&appetite, &stop).await;
        } else if !more {
            full(&appetite, &slots, &stop).await;
        }
    }
}

/// Nothing to take and a slot free: the feeders wait.
async fn idle(appetite: &Appetite, stop: &CancellationToken) {
    appetite.hungry.send_replace(true);
    tokio::select! {
        () = appetite.fed.notified() => {}
        () = tokio::time::sleep(SAFETY) => {}
        () = stop.cancelled() => {}
    }
    appetite.hungry.send_replace(false);
}

/// No slot free: waits for one. An id that still comes through a feeder that was waiting goes back at
/// once, by a claim of nothing.
async fn full(appetite: &Appetite, slots: &Semaphore, stop: &CancellationToken) {
    tokio::select! {
        _ = slots.acquire() => {}
        () = appetite.fed.notified() => {}
        () = stop.cancelled() => {}
    }
}

async fn claim(setup: &Setup, want: usize) -> Result<Taken, meshwork_broker::Error> {
    let token = setup.identity.token();
    setup
        .broker
        .claim(Claim {
            queues: &setup.queues,
            old: 0,
            want,
            lease: setup.lease,
            worker: setup.identity.worker(),
            token: &token,
        })
        .await
}

/// One job from claim to report.
async fn work(setup: Arc<Setup>, held: Arc<Held>, claimed: Claimed) {
    let stop = held.add(&claimed);
    let outcome = execute::execute(&setup, &claimed, &stop).await;
    if let Some(outcome) = outcome {
        report::report(&setup, &claimed, outcome, &stop).await;
    }
    held.remove(&claimed);
}
