//! Health of a running worker: liveness, readiness and counters. Reads make no calls, so they may be frequent.

use std::sync::Arc;
use std::time::Duration;

use meshwork_model::time::duration_of;
use tokio::task::{AbortHandle, JoinHandle};
use tokio_util::sync::CancellationToken;

use super::meter::Meter;
use super::readiness::Faults;

/// Time without an answer of the server after which a worker is unhealthy. A worker calls the server at least as often
/// as it renews leases, and reconnects within seconds.
const SILENCE: Duration = Duration::from_secs(60);

/// State of a worker that its health depends on.
pub(crate) trait HealthSource: Send + Sync {
    /// Returns its name with its incarnation.
    fn name(&self) -> &str;
    /// Returns the number of jobs in flight.
    fn busy(&self) -> usize;
    /// Returns true while the server counts it as alive, for all of its queues.
    fn is_registered(&self) -> bool;
    /// Returns the commands that its user may not send to the server, although its calls need them.
    fn lacks(&self) -> Vec<&'static str>;
    /// Returns the runtimes that cannot start runs, with the reasons.
    fn faults(&self) -> Faults;
    /// Returns its counters.
    fn meter(&self) -> &Meter;
}

/// Health and counters of one worker; cheap to clone. It does not keep the worker alive, and outlives it.
///
/// [`WorkerHandle::monitor`](crate::WorkerHandle::monitor) returns it; [`WorkerHandle`](crate::WorkerHandle) has an example.
#[derive(Clone)]
pub struct Monitor {
    worker: Arc<dyn HealthSource>,
    stop: CancellationToken,
    fetchers: Arc<[AbortHandle]>,
}

/// Reason why a worker is not healthy, or not ready.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unhealthy {
    /// It claims no more jobs; running ones may continue.
    #[error("the worker is quiet or stopping")]
    Stopping,
    /// Its fetcher has ended without a shutdown.
    #[error("the worker claims no more jobs; start it again")]
    Ended,
    /// It has not registered yet, or its registration has expired.
    #[error("the worker is not registered as a listener: it has just begun, or the server is away")]
    Unregistered,
    /// Its user lacks rights on the server.
    #[error("its user may not send {} to the server: see docs/operations.md, \"An ACL user\"", .0.join(", "))]
    Rights(Vec<&'static str>),
    /// A runtime cannot start runs here; its jobs wait for another worker.
    #[error("the runtime {runtime} cannot start runs: {reason}")]
    Faulty {
        /// Script type of the runtime.
        runtime: String,
        /// Reason.
        reason: String,
    },
    /// The server has not answered for this time.
    #[error("the server has not answered for {}", duration_of(*.0))]
    Silence(Duration),
}

impl Monitor {
    pub(crate) fn new(
        worker: Arc<dyn HealthSource>,
        stop: &CancellationToken,
        fetchers: &[JoinHandle<()>],
    ) -> Self {
        Self {
            worker,
            stop: stop.clone(),
            fetchers: fetchers.iter().map(JoinHandle::abort_handle).collect(),
        }
    }

    /// Liveness: the worker claims jobs unless it shuts down, and the server has answered within the last 60 s.
    /// Restart an unhealthy process.
    ///
    /// # Errors
    /// The reason why the worker is unhealthy.
    pub fn healthy(&self) -> Result<(), Unhealthy> {
        let is_over = self.fetchers.iter().any(AbortHandle::is_finished);
        if is_over && !self.stop.is_cancelled() {
            return Err(Unhealthy::Ended);
        }
        match self.meter().since_contact() {
            silence if silence > SILENCE => Err(Unhealthy::Silence(silence)),
            _ => Ok(()),
        }
    }

    /// Readiness: healthy, registered, with all rights on the server, not shutting down, and every runtime can start runs.
    ///
    /// # Errors
    /// The reason why the worker is not ready.
    pub fn ready(&self) -> Result<(), Unhealthy> {
        if self.stop.is_cancelled() {
            return Err(Unhealthy::Stopping);
        }
        self.healthy()?;
        let lacks = self.worker.lacks();
        if !lacks.is_empty() {
            return Err(Unhealthy::Rights(lacks));
        }
        match self.worker.is_registered() {
            true => self.sound(),
            false => Err(Unhealthy::Unregistered),
        }
    }

    /// Checks that every runtime can start runs.
    ///
    /// # Errors
    /// A runtime that cannot, and the reason ([`Unhealthy::Faulty`]).
    pub fn sound(&self) -> Result<(), Unhealthy> {
        match self.worker.faults().pop_first() {
            Some((runtime, reason)) => Err(Unhealthy::Faulty { runtime, reason }),
            None => Ok(()),
        }
    }

    /// Returns the worker's name with its incarnation.
    #[must_use]
    pub fn name(&self) -> &str {
        self.worker.name()
    }

    /// Returns the number of jobs in flight.
    #[must_use]
    pub fn busy(&self) -> usize {
        self.worker.busy()
    }

    /// Returns the figures of the worker.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        self.worker.meter()
    }
}

impl std::fmt::Debug for Monitor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Monitor")
            .field("worker", &self.name())
            .finish_non_exhaustive()
    }
}
