//! Looks after the flows of a context: waits until one is to be looked at, takes it under a lease, and takes it on.

use std::sync::Arc;
use std::time::Duration;

use meshwork_broker::flow::{FlowClaim, Flows};
use meshwork_broker::{BlockingConn, Broker};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::FlowError;
use super::step::{self, StepEnd};

/// The time that a flow is a stepper's own from each commit on: when its process dies, another goes on after it.
const LEASE: Duration = Duration::from_secs(10);
/// The longest wait for the next flow. A wakeup may be lost with who took it.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// The same where somebody looks for flows that are due.
const LONGEST_WATCHED: Duration = Duration::from_secs(300);
/// The pause after a failed call.
const PAUSE: Duration = Duration::from_millis(500);

/// Takes the flows of a context on.
#[derive(Debug, Clone)]
pub struct Stepper {
    flows: Flows,
    lease: Duration,
    /// Notified when a flow is due; without this, a connection waits.
    wakeups: Option<Arc<Notify>>,
}

/// A stepper that runs. Dropped, it stops; what it was about is gone on with by another.
#[derive(Debug)]
pub struct StepperHandle {
    stop: DropGuard,
    task: JoinHandle<()>,
}

impl Stepper {
    /// One for the context whose session this is.
    ///
    /// # Errors
    /// [`FlowError::NoContext`] if it is none of a context.
    pub fn new(broker: &Broker) -> Result<Self, FlowError> {
        let flows = Flows::of(broker).ok_or(FlowError::NoContext)?;
        let (lease, wakeups) = (LEASE, None);
        Ok(Self {
            flows,
            lease,
            wakeups,
        })
    }

    /// With somebody who looks for flows that are due, and tells.
    pub(crate) fn woken_by(mut self, wakeups: &Arc<Notify>) -> Self {
        self.wakeups = Some(Arc::clone(wakeups));
        self
    }

    const fn longest_wait(&self) -> Duration {
        match self.wakeups {
            Some(_) => LONGEST_WATCHED,
            None => LONGEST_WAIT,
        }
    }

    /// With another lease.
    #[must_use]
    pub const fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Takes on one flow that is due, if there is one. Otherwise in how long the next one is.
    ///
    /// # Errors
    /// If the server does not take a call, or a plan cannot be read.
    pub async fn step(&self) -> Result<Option<Duration>, FlowError> {
        let token = uuid::Uuid::new_v4().to_string();
        match self.flows.claim(&token, self.lease).await? {
            FlowClaim::Idle(next) => Ok(Some(next.unwrap_or(self.longest_wait()))),
            FlowClaim::Claimed(lease) => {
                let ended = step::run(&self.flows, &lease).await;
                let id = lease.id;
                match ended {
                    Ok(StepEnd::Rests) => {}
                    Ok(StepEnd::Lost) => tracing::info!(flow = %id, "flow left to another worker"),
                    Err(error) => {
                        tracing::warn!(flow = %id, %error, "flow step failed: trying again");
                        return Err(error);
                    }
                }
                Ok(None)
            }
        }
    }

    /// Begins to look after flows, until the handle is dropped or stopped.
    #[must_use]
    pub fn start(self) -> StepperHandle {
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let task = tokio::spawn(async move {
            tokio::select! {
                () = stopped.cancelled() => {}
                () = self.work() => {}
            }
        });
        StepperHandle {
            stop: stop.drop_guard(),
            task,
        }
    }

    async fn work(&self) {
        let mut blocking = None;
        loop {
            match self.step().await {
                Ok(None) => {}
                Ok(Some(wait)) => {
                    let wait = wait.min(self.longest_wait());
                    self.wait(&mut blocking, wait).await;
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    /// Waits for a wakeup, on a connection of its own.
    async fn wait(&self, blocking: &mut Option<BlockingConn>, wait: Duration) {
        // The server counts in milliseconds, and takes 0 for no end.
        let wait = wait.max(Duration::from_millis(1));
        if let Some(wakeups) = &self.wakeups {
            let _ = tokio::time::timeout(wait, wakeups.notified()).await;
            return;
        }
        if blocking.is_none() {
            *blocking = self.flows.broker().blocking_conn().await.ok();
        }
        let Some(conn) = blocking else {
            return tokio::time::sleep(PAUSE).await;
        };
        if self.flows.wait_for_step(conn, wait).await.is_err() {
            *blocking = None;
            tokio::time::sleep(PAUSE).await;
        }
    }
}

impl StepperHandle {
    /// Stops. A flow that it has is gone on with by another when its lease is over.
    pub async fn stop(self) {
        drop(self.stop);
        // It has no result; one that panicked has stopped too.
        let _ = self.task.await;
    }

    /// The stepper as a guard: it stops when that is dropped.
    pub(crate) fn into_guard(self) -> DropGuard {
        self.stop
    }
}
