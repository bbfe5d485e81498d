//! Runs the steps of a context's flows: waits for a changed flow, claims it under a lease, and runs a step.

use meshwork_macros::boxed;
use std::sync::Arc;
use std::time::Duration;

use meshwork_broker::flow::{FlowClaim, Flows};
use meshwork_broker::{BlockingConn, Broker};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::step::{self, StepEnd};
use super::{FlowError, Sender};
use crate::context::{ContextHandle, Identity};

/// Lease duration of a flow; each commit renews it. After a crash, another stepper continues when it has expired.
const LEASE: Duration = Duration::from_secs(10);
/// Longest wait for the next flow: a wakeup is lost if its receiver dies.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// Longest wait if a poller watches for due flows.
const LONGEST_WATCHED: Duration = Duration::from_secs(300);
/// Pause after a failed call.
const PAUSE: Duration = Duration::from_millis(500);

/// Runs the steps of the flows of a context.
#[derive(Debug, Clone)]
pub struct Stepper {
    flows: Flows,
    lease: Duration,
    /// Signer of the messages of flows.
    sender: Option<Sender>,
    /// Notified when a flow is due. Without it, the stepper blocks on a connection.
    wakeups: Option<Arc<Notify>>,
}

/// A running stepper. It stops when dropped; another stepper continues its flow.
#[derive(Debug)]
pub struct StepperHandle {
    stop: DropGuard,
    task: JoinHandle<()>,
}

impl Stepper {
    /// Creates a stepper for the context of the broker's session.
    ///
    /// # Errors
    /// [`FlowError::NoContext`] if the session is not that of a context.
    pub fn new(broker: &Broker) -> Result<Self, FlowError> {
        let flows = Flows::of(broker).ok_or(FlowError::NoContext)?;
        let (lease, wakeups, sender) = (LEASE, None, None);
        Ok(Self {
            flows,
            lease,
            sender,
            wakeups,
        })
    }

    /// Waits for these notifications, not on a connection.
    pub(crate) fn woken_by(mut self, wakeups: &Arc<Notify>) -> Self {
        self.wakeups = Some(Arc::clone(wakeups));
        self
    }

    /// Sends the messages of flows from `context`, signed by `me`. Without it, jobs in other contexts and waits for messages are
    /// left to other steppers.
    #[must_use]
    pub fn signing(mut self, context: &ContextHandle, me: &Identity) -> Self {
        let (context, me) = (context.clone(), me.clone());
        self.sender = Some(Sender { context, me });
        self
    }

    pub(crate) fn with_sender(self, sender: Option<Sender>) -> Self {
        Self { sender, ..self }
    }

    const fn longest_wait(&self) -> Duration {
        match self.wakeups {
            Some(_) => LONGEST_WATCHED,
            None => LONGEST_WAIT,
        }
    }

    /// Sets the lease duration.
    #[must_use]
    pub const fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Runs a step of one due flow. If none is due, returns the time until the next one.
    ///
    /// # Errors
    /// A call to the server fails, or a plan is damaged.
    #[boxed]
    pub async fn step(&self) -> Result<Option<Duration>, FlowError> {
        let token = uuid::Uuid::new_v4().to_string();
        match self.flows.claim(&token, self.lease).await? {
            FlowClaim::Idle(next) => Ok(Some(next.unwrap_or(self.longest_wait()))),
            FlowClaim::Claimed(lease) => {
                let ended = step::run(&self.flows, &lease, self.sender.as_ref()).await;
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

    /// Starts to run steps, until the handle is dropped or stopped.
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

    /// Waits for a wakeup, on a separate connection.
    async fn wait(&self, blocking: &mut Option<BlockingConn>, wait: Duration) {
        // The server counts in milliseconds, and 0 would mean no timeout.
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
    /// Stops. Another stepper continues its flow when the lease has expired.
    #[boxed]
    pub async fn stop(self) {
        drop(self.stop);
        // The task has no result, and a panic has stopped it too.
        let _ = self.task.await;
    }

    /// Returns a guard that stops the stepper when dropped.
    pub(crate) fn into_guard(self) -> DropGuard {
        self.stop
    }
}
