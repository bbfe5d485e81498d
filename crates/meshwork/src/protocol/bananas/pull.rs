//! Pull: takes jobs while slots are free, and hands each to a task of its own.

use std::sync::Arc;
use std::time::Duration;

use meshwork_broker::Backoff;
use meshwork_broker::bananas::{Back, Claim, Claimed, Taken};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::left::Left;
use super::run::run;
use super::state::State;
use crate::worker::Holds;
use crate::worker::release::hand_back;

/// Between two claims while nothing comes: what no connection told of is found then.
const SAFETY: Duration = Duration::from_secs(1);

/// Takes and runs jobs until the worker stops.
pub(super) async fn pull(state: Arc<State>, running: TaskTracker) {
    let slots = Arc::new(Semaphore::new(state.setup.concurrency));
    // Holds at most a line for each slot: while it is not read, none is given out.
    let (tell, ended) = mpsc::unbounded_channel();
    let mut pull = Pull {
        state,
        running,
        slots,
        holds: Holds::default(),
        tell,
        ended,
        brought: 0,
        fed: false,
        left: Left::default(),
    };
    let mut backoff = Backoff::new();
    while let Some(free) = pull.free().await {
        // A lease begins when the server has the call.
        let until = Instant::now() + pull.state.setup.lease;
        let taken = match pull.claim(free.len()).await {
            Ok(taken) => taken,
            Err(error) => {
                pull.state.setup.broker.outages().failed("claim", &error);
                tokio::select! {
                    () = pull.state.stop.cancelled() => return,
                    () = backoff.wait() => continue,
                }
            }
        };
        backoff = Backoff::new();
        pull.state.setup.broker.outages().succeeded("claim");
        let empty = taken.jobs.len() < free.len() && !taken.more;
        if taken.jobs.is_empty() || Instant::now() < until {
            pull.start(taken, free);
        } else {
            pull.give_back(taken).await;
        }
        if empty {
            pull.rest().await;
        }
    }
}

struct Pull {
    state: Arc<State>,
    running: TaskTracker,
    slots: Arc<Semaphore>,
    /// Lists whose routes are at a limit.
    holds: Holds,
    /// From which lists jobs came that have ended since.
    tell: mpsc::UnboundedSender<String>,
    ended: mpsc::UnboundedReceiver<String>,
    /// Claims that have brought jobs.
    brought: usize,
    /// An id has come since the last claim.
    fed: bool,
    left: Left,
}

impl Pull {
    /// All slots that are free, at least one. What comes while none is goes back. None when the worker stops.
    async fn free(&mut self) -> Option<Vec<OwnedSemaphorePermit>> {
        let state = Arc::clone(&self.state);
        let first = loop {
            tokio::select! {
                biased;
                () = state.stop.cancelled() => return None,
                slot = Arc::clone(&self.slots).acquire_owned() => break slot.ok()?,
                _ = state.appetite.fed() => {
                    self.fed = true;
                    if let Err(error) = self.claim(0).await {
                        state.setup.broker.outages().failed("claim", &error);
                    }
                }
            }
        };
        let mut free = vec![first];
        while let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() {
            free.push(slot);
        }
        Some(free)
    }

    /// Claims so many, off all lists but those that are held back. What has come may be of one of these: then it
    /// goes back.
    async fn claim(&mut self, want: usize) -> Result<Taken, meshwork_broker::Error> {
        while let Ok(list) = self.ended.try_recv() {
            self.may_pass(&list);
        }
        let skipped = match self.fed {
            true => Vec::new(),
            false => self.holds.skipped(Instant::now()),
        };
        if want > 0 {
            self.left.look(&self.state).await?;
        }
        let mut lists = self.state.lists(self.brought);
        lists.retain(|list| !skipped.contains(list));
        let setup = &self.state.setup;
        let token = setup.identity.token();
        let taken = setup.broker.claim(Claim {
            lists: &lists,
            want,
            lease: setup.lease,
            worker: setup.identity.worker(),
            token: &token,
        });
        let taken = taken.await;
        if let Err(error) = &taken {
            setup.meter.failed("claim", error);
        }
        if let Ok(taken) = &taken {
            setup.meter.took(taken.jobs.len());
            let held = taken.held.clone();
            let now = Instant::now();
            self.holds.told(&self.state.appetite, &skipped, held, now);
            let some = usize::from(!taken.jobs.is_empty());
            self.brought = self.brought.wrapping_add(some);
            self.fed = false;
        }
        self.state.appetite.claimed();
        taken
    }

    /// A job that came from this list has ended: a slot of its route may be free.
    fn may_pass(&mut self, list: &str) {
        let keys = self.state.setup.broker.keys();
        let route = |list: &str| keys.parse_list(list).map(|(route, _)| route);
        let of = route(list);
        self.holds
            .may_pass(Instant::now(), |held| route(held) == of);
    }

    /// Starts the jobs, one in each slot.
    fn start(&self, taken: Taken, free: Vec<OwnedSemaphorePermit>) {
        for (claimed, slot) in taken.jobs.into_iter().zip(free) {
            let (state, tell) = (Arc::clone(&self.state), self.tell.clone());
            let in_hand = state.take(claimed);
            self.running.spawn(async move {
                run(&state, &in_hand).await;
                state.done(&in_hand.claimed);
                // Nobody listens when the worker stops.
                let _ = tell.send(in_hand.claimed.list);
                drop(slot);
            });
        }
    }

    /// Hands back what came after its lease, since this process was stopped or the answer held up: others may have begun
    /// it by now.
    async fn give_back(&self, taken: Taken) {
        let setup = &self.state.setup;
        tracing::warn!(
            jobs = taken.jobs.len(),
            "a claim was answered after its lease"
        );
        hand_back(taken.jobs, setup.lease, Claimed::id, |claimed| async move {
            setup.broker.release(&claimed, Back::Next).await
        })
        .await;
    }

    /// Waits until an id comes, a list that is held back is worth another look, or for a while.
    async fn rest(&mut self) {
        let (state, safety) = (Arc::clone(&self.state), Instant::now() + SAFETY);
        state.appetite.tell(true);
        while !self.fed {
            let until = self.holds.next().map_or(safety, |next| next.min(safety));
            tokio::select! {
                _ = state.appetite.fed() => self.fed = true,
                // The sender is in `self`.
                Some(list) = self.ended.recv() => self.may_pass(&list),
                () = tokio::time::sleep_until(until) => break,
                () = state.stop.cancelled() => break,
            }
        }
        state.appetite.tell(false);
    }
}
