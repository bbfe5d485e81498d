//! Health of a running worker: liveness, readiness and counters. Reads make no calls, so they may be frequent.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::meter::Meter;

/// After how long without an answer of the server a worker counts as ill: it asks at least as often as it
/// renews leases, and reconnects within seconds once the server is back.
const SILENCE: Duration = Duration::from_secs(60);

/// A worker of any protocol, as its health sees it.
pub(crate) trait HealthSource: Send + Sync {
    /// Its name with its incarnation.
    fn name(&self) -> &str;
    /// Number of jobs in flight.
    fn busy(&self) -> usize;
    /// Until when the server counts it as alive; none while it is not registered.
    fn alive_until(&self) -> Option<Instant>;
    /// Its counters.
    fn meter(&self) -> &Meter;
}

/// Looks at one worker; cheap to clone. It holds no part of the worker up, and outlives it.
#[derive(Clone)]
pub struct Monitor {
    worker: Arc<dyn HealthSource>,
    stop: CancellationToken,
    fetchers: Arc<[AbortHandle]>,
}

/// Why a worker is not healthy, or not ready.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unfit {
    /// It takes no more jobs; what it runs may still go on.
    #[error("the worker is quiet or stopping")]
    Stopping,
    /// Its fetcher has ended without a shutdown.
    #[error("the worker takes no jobs any more; start it again")]
    Ended,
    /// It has not registered yet, or its registration has run out.
    #[error("the worker is not registered as a listener: it has just begun, or the server is away")]
    Unregistered,
    /// The server does not answer it.
    #[error("the server has not answered for {}", seconds(*.0))]
    Silence(Duration),
}

fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs())
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
    /// The reason.
    pub fn healthy(&self) -> Result<(), Unfit> {
        let is_over = self.fetchers.iter().any(AbortHandle::is_finished);
        if is_over && !self.stop.is_cancelled() {
            return Err(Unfit::Ended);
        }
        match self.meter().since_contact() {
            silence if silence > SILENCE => Err(Unfit::Silence(silence)),
            _ => Ok(()),
        }
    }

    /// Readiness: healthy, registered, and not shutting down.
    ///
    /// # Errors
    /// The reason.
    pub fn ready(&self) -> Result<(), Unfit> {
        if self.stop.is_cancelled() {
            return Err(Unfit::Stopping);
        }
        self.healthy()?;
        match self.worker.alive_until() {
            Some(until) if until > Instant::now() => Ok(()),
            _ => Err(Unfit::Unregistered),
        }
    }

    /// The worker's name with its incarnation.
    #[must_use]
    pub fn name(&self) -> &str {
        self.worker.name()
    }

    /// Number of jobs in flight.
    #[must_use]
    pub fn busy(&self) -> usize {
        self.worker.busy()
    }

    pub(crate) fn meter(&self) -> &Meter {
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
