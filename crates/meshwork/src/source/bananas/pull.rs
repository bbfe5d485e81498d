//! Pull: takes jobs while slots are free, and hands each to a task of its own.

use std::sync::Arc;
use std::time::Duration;

use meshwork_broker::Backoff;
use meshwork_broker::bananas::{Claim, Taken};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;

use super::run::run;
use super::state::State;

/// Between two claims while nothing comes: what no connection told of is found then.
const SAFETY: Duration = Duration::from_secs(1);

/// Takes and runs jobs until the worker stops.
pub(super) async fn pull(state: Arc<State>, running: TaskTracker) {
    let slots = Arc::new(Semaphore::new(state.setup.concurrency));
    let (mut backoff, mut brought) = (Backoff::new(), 0_usize);
    while !state.stop.is_cancelled() {
        let Some(free) = free(&state, &slots, brought).await else {
            return;
        };
        let taken = match claim(&state, brought, free.len()).await {
            Ok(taken) => taken,
            Err(error) => {
                tracing::warn!(%error, "a claim failed; trying again");
                tokio::select! {
                    () = state.stop.cancelled() => return,
                    () = backoff.wait() => continue,
                }
            }
        };
        backoff = Backoff::new();
        brought = brought.wrapping_add(usize::from(!taken.jobs.is_empty()));
        let empty = taken.jobs.len() < free.len() && !taken.more;
        start(&state, &running, taken, free);
        if empty {
            rest(&state).await;
        }
    }
}

/// All slots that are free, at least one. What comes while none is goes back. None when the worker stops.
async fn free(
    state: &State,
    slots: &Arc<Semaphore>,
    brought: usize,
) -> Option<Vec<OwnedSemaphorePermit>> {
    let first = loop {
        tokio::select! {
            biased;
            () = state.stop.cancelled() => return None,
            slot = Arc::clone(slots).acquire_owned() => break slot.ok()?,
            _ = state.appetite.fed() => {
                if let Err(error) = claim(state, brought, 0).await {
                    tracing::warn!(%error, "what came for no free slot waits for the next claim");
                }
            }
        }
    };
    let mut free = vec![first];
    while let Ok(slot) = Arc::clone(slots).try_acquire_owned() {
        free.push(slot);
    }
    Some(free)
}

async fn claim(
    state: &State,
    brought: usize,
    want: usize,
) -> Result<Taken, meshwork_broker::Error> {
    let setup = &state.setup;
    let claim = Claim {
        lists: &state.lists(brought),
        want,
        lease: setup.lease,
        worker: setup.identity.worker(),
        token: &setup.identity.token(),
    };
    let taken = setup.broker.claim(claim).await;
    state.appetite.claimed();
    taken
}

/// Starts the jobs, one in each slot.
fn start(state: &Arc<State>, running: &TaskTracker, taken: Taken, free: Vec<OwnedSemaphorePermit>) {
    for (claimed, slot) in taken.jobs.into_iter().zip(free) {
        let state = Arc::clone(state);
        let in_hand = state.take(claimed);
        running.spawn(async move {
            run(&state, &in_hand).await;
            state.done(&in_hand.claimed);
            drop(slot);
        });
    }
}

/// Waits until an id comes, or for a while.
async fn rest(state: &State) {
    state.appetite.tell(true);
    tokio::select! {
        _ = state.appetite.fed() => {}
        () = tokio::time::sleep(SAFETY) => {}
        () = state.stop.cancelled() => {}
    }
    state.appetite.tell(false);
}
