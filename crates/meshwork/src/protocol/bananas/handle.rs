//! A running worker, and how it stops.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use meshwork_broker::bananas::Back;
use tokio::task::JoinHandle;
use tokio_util::sync::DropGuard;
use tokio_util::task::TaskTracker;

use super::feed::feed;
use super::keep;
use super::pull::pull;
use super::run::back;
use super::state::State;
use crate::worker::dedicated_thread::Thread;
use crate::worker::release::{ENDED, ended_or_cut_off};
use crate::{Error, Monitor};

/// How long a stopping worker waits for its parked connections to come back.
const UNPARK: Duration = Duration::from_secs(2);

/// A running worker for jobs of Bananas. Dropped without [`WorkerHandle::stop`], it takes no more jobs, and what it
/// runs comes back when the leases end.
pub struct WorkerHandle {
    state: Arc<State>,
    pull: JoinHandle<()>,
    feeders: Vec<JoinHandle<()>>,
    running: TaskTracker,
    keeper: Thread,
    stop: DropGuard,
    monitor: Monitor,
}

pub(super) fn start(state: Arc<State>) -> Result<WorkerHandle, Error> {
    let keeper = keep::start(Arc::clone(&state))?;
    let running = TaskTracker::new();
    let pull = tokio::spawn(pull(Arc::clone(&state), running.clone()));
    let lists = state.setup.lists.iter().cloned();
    let feeders = lists.map(|list| tokio::spawn(feed(Arc::clone(&state), list)));
    let monitor = Monitor::new(Arc::clone(&state) as _, &state.stop, &pull);
    Ok(WorkerHandle {
        pull,
        monitor,
        feeders: feeders.collect(),
        running,
        keeper,
        stop: state.stop.clone().drop_guard(),
        state,
    })
}

impl WorkerHandle {
    /// The worker's name with its incarnation.
    #[must_use]
    pub fn name(&self) -> &str {
        self.state.setup.identity.worker()
    }

    /// What tells how it is, and what it counts; it stays valid while the worker stops, and after.
    #[must_use]
    pub fn monitor(&self) -> Monitor {
        self.monitor.clone()
    }

    /// The lists that it takes from, in this order.
    #[must_use]
    pub fn lists(&self) -> &[String] {
        &self.state.setup.lists
    }

    /// Returns when it is known to the server.
    pub async fn registered(&self) {
        // The sender lives as long as `self`.
        let _ = self.state.alive.subscribe().wait_for(Option::is_some).await;
    }

    /// Stops it in order: it takes no more, waits for what it runs as long as its grace allows, ends the rest, and
    /// hands it back at no cost when it has ended or was cut off. Returns how many jobs it handed back.
    pub async fn stop(self) -> usize {
        let Self {
            state,
            pull,
            feeders,
            running,
            keeper,
            stop,
            monitor: _,
        } = self;
        drop(stop);
        let parted = tokio::time::timeout(UNPARK, join_all(feeders))
            .await
            .is_ok();
        if let Err(error) = pull.await {
            tracing::error!(%error, "the loop that takes jobs did not end well");
        }
        let setup = &state.setup;
        if parted {
            leave(&state).await;
        }
        running.close();
        let _ = tokio::time::timeout(setup.grace, running.wait()).await;
        let left = state.give_up();
        // Until the last run has ended, or is cut off, the keeper renews: none begins elsewhere before.
        ended_or_cut_off(running.wait(), ENDED).await;
        // Together: where the server is gone, each waits for it.
        let hand_back = left.iter().map(|one| back(&state, one, Back::Next));
        let handed_back = join_all(hand_back).await;
        keeper.end().await;
        handed_back.into_iter().filter(|back| *back).count()
    }
}

async fn leave(state: &State) {
    let mut listening = state.listening.lock().await;
    *listening = false;
    let setup = &state.setup;
    let left = setup.broker.leave(setup.identity.worker(), &setup.lists);
    if let Err(error) = left.await {
        tracing::warn!(%error, "not taken off the list of listeners; that ends by itself");
    }
}

impl std::fmt::Debug for WorkerHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkerHandle")
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}
