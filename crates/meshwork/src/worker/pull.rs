//! Pull: claims jobs while slots are free, and hands each to a task of its own.

use std::sync::Arc;
use std::time::Duration;

use meshwork_broker::{Backoff, Claim, Claimed, Taken};
use meshwork_model::outcome::{Failure, Report};
use tokio::sync::{Notify, Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Setup;
use super::held::Held;
use super::lists::Order;
use super::turn::{Place, Turns};
use super::{execute, report};
use crate::runner::{StopReason, StopSignal};

/// Between two claims while nothing comes: what no wake-up told of is found then, and what came to a list
/// that no connection waits on.
const SAFETY: Duration = Duration::from_secs(1);
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
    let mut starter = Starter {
        setup,
        held,
        slots: Arc::clone(&slots),
        turns: Turns::new(),
        running,
        one_by_one: false,
    };
    let (mut backoff, mut order) = (Backoff::new(), Order::default());
    while !stop.is_cancelled() {
        let want = starter.want();
        let taken = match claim(&starter.setup, want, order.is_reverse()).await {
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
        order.note(got);
        starter.start(taken.jobs).await;
        appetite.claims.send_modify(|claims| *claims += 1);
        if starter.turns.is_taken() {
            closed(&appetite, &starter.turns, &stop).await;
        } else if got < want && !more {
            idle(&appetite, &stop).await;
        } else if !more {
            full(&appetite, &slots, &stop).await;
        }
    }
}

/// Starts what was claimed.
struct Starter {
    setup: Arc<Setup>,
    held: Arc<Held>,
    slots: Arc<Semaphore>,
    turns: Turns,
    running: TaskTracker,
    /// The last claim brought a job that runs alone. Such jobs come in rows, and what is claimed beside one
    /// is handed back: until another kind comes they are claimed one by one.
    one_by_one: bool,
}

impl Starter {
    /// How many jobs to claim.
    fn want(&self) -> usize {
        match (self.turns.is_taken(), self.one_by_one) {
            (true, _) => 0,
            (false, true) => self.slots.available_permits().min(1),
            (false, false) => self.slots.available_permits(),
        }
    }

    /// Starts those that run beside others, then the first of those that run alone; the rest of these goes
    /// back at no cost, since another worker may be free for it long before this one is.
    async fn start(&mut self, jobs: Vec<Claimed>) {
        let (alone, beside_others): (Vec<_>, Vec<_>) = jobs
            .into_iter()
            .partition(|claimed| !claimed.job.concurrent);
        if !alone.is_empty() || !beside_others.is_empty() {
            self.one_by_one = !alone.is_empty();
        }
        for claimed in beside_others {
            self.spawn(claimed, self.turns.beside_others());
        }
        let mut alone = alone.into_iter();
        if let Some(first) = alone.next() {
            self.spawn(first, self.turns.alone());
        }
        // Each goes to the head of its queue: the last one first keeps their order.
        for claimed in alone.rev() {
            if let Err(error) = self.setup.broker.release(&claimed).await {
                tracing::warn!(job = claimed.job.id, %error, "not handed back; its lease will end");
            }
        }
    }

    fn spawn(&self, claimed: Claimed, place: Place) {
        let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() else {
            // Not more was wanted than there were slots, and nobody else takes one.
            tracing::error!("no slot for a claimed job; its lease will end");
            return;
        };
        // Now, so that they are held in the order in which they were claimed.
        let stop = self.held.add(&claimed);
        let task = work(
            Arc::clone(&self.setup),
            Arc::clone(&self.held),
            claimed,
            stop,
            place,
        );
        self.running.spawn(async move {
            task.await;
            drop(slot);
        });
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

/// A job waits to run alone, or does: waits for its end. What still comes through a feeder goes back at once.
async fn closed(appetite: &Appetite, turns: &Turns, stop: &CancellationToken) {
    tokio::select! {
        () = turns.free() => {}
        () = appetite.fed.notified() => {}
        () = stop.cancelled() => {}
    }
}

async fn claim(setup: &Setup, want: usize, reverse: bool) -> Result<Taken, meshwork_broker::Error> {
    let token = setup.identity.token();
    let lists = setup.lists();
    setup
        .broker
        .claim(Claim {
            queues: lists.queues(),
            old: lists.old(),
            reverse,
            want,
            lease: setup.lease,
            worker: setup.identity.worker(),
            token: &token,
        })
        .await
}

/// One job from claim to report.
async fn work(
    setup: Arc<Setup>,
    held: Arc<Held>,
    claimed: Claimed,
    stop: StopSignal,
    place: Place,
) {
    let outcome = tokio::select! {
        turn = place.turn() => {
            let outcome = execute::execute(&setup, &claimed, &stop).await;
            drop(turn);
            outcome
        }
        // It has not begun.
        reason = stop.stopped() => match reason {
            StopReason::Requested => Some(Report::failed(Failure::stopped())),
            StopReason::Lost => None,
        },
    };
    drop(place);
    if let Some(outcome) = outcome {
        report::report(&setup, &claimed, outcome, &stop).await;
    }
    held.remove(&claimed);
}
