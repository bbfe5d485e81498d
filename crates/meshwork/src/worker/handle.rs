//! A running worker, and how it stops.

use std::sync::Arc;

use futures_util::future::join_all;
use meshwork_broker::{Claimed, Listener, Released};
use meshwork_model::name::JobId;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::Setup;
use super::appetite::Appetite;
use super::feed::Feeders;
use super::held::Held;
use super::meter::Meter;
use super::monitor::{Monitor, Watched};
use super::pull::{self, Ends};
use super::renew::{Alive, Keeper};
use crate::Error;
use crate::worker::release::{ENDED, ended_or_cut_off};

/// A running worker. Dropped without [`WorkerHandle::stop`], it takes no more jobs, and what it runs comes
/// back when the leases end.
pub struct WorkerHandle {
    setup: Arc<Setup>,
    held: Arc<Held>,
    pull: JoinHandle<()>,
    quiet: oneshot::Receiver<()>,
    given_up: CancellationToken,
    running: TaskTracker,
    feeders: Feeders,
    keeper: Keeper,
    stop: DropGuard,
    monitor: Monitor,
}

/// What a monitor sees of a worker.
struct Seen {
    setup: Arc<Setup>,
    held: Arc<Held>,
    alive: Alive,
}

impl Watched for Seen {
    fn name(&self) -> &str {
        self.setup.identity.worker()
    }

    fn busy(&self) -> usize {
        self.held.len()
    }

    fn alive_until(&self) -> Option<Instant> {
        self.alive.borrow().as_ref().map(|listed| listed.until)
    }

    fn meter(&self) -> &Meter {
        &self.setup.meter
    }
}

pub(super) fn start(setup: Arc<Setup>) -> Result<WorkerHandle, Error> {
    let held = Arc::new(Held::default());
    let keeper = Keeper::start(Arc::clone(&setup), Arc::clone(&held))?;
    let (appetite, running) = (Arc::new(Appetite::new()), TaskTracker::new());
    let (stop, given_up) = (CancellationToken::new(), CancellationToken::new());
    let (tell, quiet) = oneshot::channel();
    let feeders = Feeders::start(&setup, &appetite, &keeper.alive, &stop);
    let pull = tokio::spawn(pull::pull(
        Arc::clone(&setup),
        Arc::clone(&held),
        appetite,
        running.clone(),
        Ends {
            stop: stop.clone(),
            given_up: given_up.clone(),
            quiet: tell,
        },
    ));
    let seen = Seen {
        setup: Arc::clone(&setup),
        held: Arc::clone(&held),
        alive: keeper.alive.clone(),
    };
    let monitor = Monitor::new(Arc::new(seen), &stop, &pull);
    Ok(WorkerHandle {
        setup,
        held,
        pull,
        quiet,
        given_up,
        running,
        feeders,
        keeper,
        stop: stop.drop_guard(),
        monitor,
    })
}

impl WorkerHandle {
    /// The worker's name with its incarnation.
    #[must_use]
    pub fn name(&self) -> &str {
        self.setup.identity.worker()
    }

    /// The number of jobs it runs now.
    #[must_use]
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// What tells how it is, and what it counts; it stays valid while the worker stops, and after.
    #[must_use]
    pub fn monitor(&self) -> Monitor {
        self.monitor.clone()
    }

    /// Returns when it is registered as a listener, so that clients see it.
    pub async fn registered(&self) {
        // The keeper that sends lives as long as `self`.
        let _ = self.keeper.alive.clone().wait_for(Option::is_some).await;
    }

    /// Asks the run of a job to stop, if this worker holds the job. It has the grace of
    /// [`Worker::stop_grace`](super::Worker::stop_grace), and the job ends in error `stopped_by_request`.
    #[must_use]
    pub fn stop_job(&self, id: &JobId) -> bool {
        self.held.request_stop(id.as_str())
    }

    /// Stops it in order: it takes no more, waits for what it runs as long as its grace allows, ends the rest, and
    /// hands it back at no cost when it has ended or was cut off. Returns how many jobs it handed back.
    pub async fn stop(self) -> usize {
        let Self {
            setup,
            held,
            pull,
            quiet,
            given_up,
            running,
            feeders,
            keeper,
            stop,
            monitor: _,
        } = self;
        drop(stop);
        // An error means that the loop is gone, so nothing comes either; its end is told below.
        let (parted, _) = tokio::join!(feeders.ended(), quiet);
        if parted {
            leave(&setup).await;
        }
        running.close();
        let _ = tokio::time::timeout(setup.grace, running.wait()).await;
        let left = held.give_up();
        given_up.cancel();
        // Until the last run has ended, or is cut off, the keeper renews: none begins elsewhere before.
        let ended = ended_or_cut_off(running.wait(), ENDED).await;
        let handed_back = hand_back(&setup, &left).await;
        if !ended {
            // It would wait for the run, whose result nobody asks for any more.
            pull.abort();
        }
        if let Err(error) = pull.await
            && !error.is_cancelled()
        {
            tracing::error!(%error, "the pull loop did not end well");
        }
        keeper.end().await;
        handed_back
    }
}

/// Hands jobs back, and gives how many that were: what ended at the last moment is none of them.
async fn hand_back(setup: &Setup, jobs: &[Arc<Claimed>]) -> usize {
    // In this order, but together: where the server is gone, each waits for it.
    let released = jobs
        .iter()
        .map(async |claimed| setup.broker.release(claimed).await);
    let released = join_all(released).await;
    let failed = released
        .iter()
        .filter_map(|released| released.as_ref().err());
    if let Some(error) = failed.clone().next() {
        tracing::warn!(jobs = failed.count(), %error, "jobs not released; their leases will end");
    }
    let released = released.iter();
    released
        .filter(|released| matches!(released, Ok(Released::Released)))
        .count()
}

async fn leave(setup: &Setup) {
    let mut listening = setup.listening.lock().await;
    *listening = false;
    let lists = setup.lists();
    let listener = Listener {
        worker: setup.identity.worker(),
        queues: lists.names(),
    };
    if let Err(error) = setup.broker.leave(listener).await {
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
