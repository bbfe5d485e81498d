//! A running service, and how it stops.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::task::JoinHandle;
use tokio_util::sync::DropGuard;

use super::Error;
use super::pull::{promote, pull, take_over, trim};
use super::run::release;
use super::state::{InHand, Setup, State};
use super::tidy::tidy;
use crate::Monitor;
use crate::worker::dedicated_thread::Thread;
use crate::worker::release::{ENDED, ended_or_cut_off, release_all};

/// How long a stopping service waits for its parked connections to come back.
const UNPARK: Duration = Duration::from_secs(2);
/// How long it waits until the trace is told of all that it ran.
const TIDY: Duration = Duration::from_secs(2);

/// A running service. Dropped without [`ServiceHandle::stop`], it takes no more, and what it runs is taken over by
/// others when its time is up.
pub struct ServiceHandle {
    state: Arc<State>,
    tasks: Vec<JoinHandle<()>>,
    tidies: JoinHandle<()>,
    keeper: Thread,
    stop: DropGuard,
    monitor: Monitor,
}

pub(super) fn start(state: Arc<State>) -> Result<ServiceHandle, Error> {
    let keeper = super::keep::start(Arc::clone(&state))?;
    let mut tasks = Vec::new();
    for queue in &state.setup.queues {
        let parts = || (Arc::clone(&state), Arc::clone(queue));
        let (shared, queue_of) = parts();
        tasks.push(tokio::spawn(pull(shared, queue_of)));
        let (shared, queue_of) = parts();
        tasks.push(tokio::spawn(take_over(shared, queue_of)));
        let (shared, queue_of) = parts();
        tasks.push(tokio::spawn(promote(shared, queue_of)));
        let (shared, queue_of) = parts();
        tasks.push(tokio::spawn(trim(shared, queue_of)));
    }
    let (broker, over) = (state.setup.broker.clone(), Arc::clone(&state.over));
    let ended = Arc::clone(&state);
    let ended = async move { ended.ended().await };
    let tidies = tokio::spawn(tidy(broker, over, ended));
    let monitor = Monitor::new(Arc::clone(&state) as _, &state.stop, &tasks);
    Ok(ServiceHandle {
        monitor,
        tasks,
        tidies,
        keeper,
        stop: state.stop.clone().drop_guard(),
        state,
    })
}

impl ServiceHandle {
    /// The name under which it takes messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.state.setup.worker
    }

    /// Its health and its metrics. They stay valid while the service stops, and after.
    #[must_use]
    pub fn monitor(&self) -> Monitor {
        self.monitor.clone()
    }

    /// The queues that it takes from.
    pub fn queues(&self) -> impl Iterator<Item = &str> {
        self.state
            .setup
            .queues
            .iter()
            .map(|queue| queue.source.queue())
    }

    /// Returns when it is known to the server, and takes messages of all its queues.
    pub async fn registered(&self) {
        for queue in &self.state.setup.queues {
            self.state.known(queue).await;
        }
    }

    /// Stops it in order: it takes no more, waits for what it runs as long as its grace allows, stops the rest, and hands that
    /// back at no cost. Returns how many messages it handed back.
    pub async fn stop(self) -> usize {
        self.stop_by(ENDED).await
    }

    /// The same where what is told to stop is cut off by then.
    #[doc(hidden)]
    pub async fn stop_by(self, cut_off: Duration) -> usize {
        let Self {
            state,
            tasks,
            tidies,
            keeper,
            stop,
            monitor: _,
        } = self;
        drop(stop);
        let takes_no_more = tokio::time::timeout(UNPARK, join_all(tasks)).await.is_ok();
        if !takes_no_more {
            tracing::warn!("a wait for messages has not ended; what it brings is taken over later");
        }
        let grace = state.setup.config.shutdown_timeout;
        let _ = tokio::time::timeout(grace, state.ended()).await;
        let left = state.all();
        // Another service begins with what is handed back at once: here it must be over.
        left.iter().for_each(|in_hand| in_hand.lost.cancel());
        ended_or_cut_off(state.ended(), cut_off).await;
        let lease = state.setup.config.lease;
        let give_back = |in_hand: Arc<InHand>| {
            let state = Arc::clone(&state);
            async move { Ok(release(&state, &in_hand).await) }
        };
        let released = release_all(left, lease, give_back).await;
        if tokio::time::timeout(TIDY, tidies).await.is_err() {
            tracing::warn!("the trace was not told of all that is over");
        }
        keeper.end().await;
        if takes_no_more {
            leave(&state.setup).await;
        }
        released
    }
}

async fn leave(setup: &Setup) {
    let leave = setup.queues.iter().map(|queue| async move {
        if let Err(error) = setup.broker.leave(&setup.worker, &queue.source).await {
            tracing::warn!(%error, "not forgotten; that ends by itself");
        }
    });
    join_all(leave).await;
}

impl std::fmt::Debug for ServiceHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServiceHandle")
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}
