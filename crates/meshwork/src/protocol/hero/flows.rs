//! Flows of a worker of a context: it continues them, and their jobs get their environment.

use std::sync::Arc;

use meshwork_broker::Broker;
use meshwork_model::job::{EnvTooLarge, Job};
use meshwork_model::outcome::{Failure, FailureKind};
use tokio::sync::Notify;
use tokio_util::sync::DropGuard;

use super::Worker;
use super::job_reads::repeated;
use super::state::HeroProtocol;
use crate::context::{ContextHandle, Identity as Actor};
use crate::flow::{Sender, Stepper};

impl Worker {
    /// Sends the messages of flows from `context`, signed by `me`: those of jobs in other contexts. Other workers of the context
    /// leave such jobs to this one.
    #[must_use]
    pub fn signing(mut self, context: &ContextHandle, me: &Actor) -> Self {
        let (context, me) = (context.clone(), me.clone());
        self.sender = Some(Sender { context, me });
        self
    }
}

/// Returns the job with the environment of its flow, which a plain client may have written just now.
pub(super) async fn with_flow(hero: &HeroProtocol, job: &Arc<Job>) -> Result<Arc<Job>, Failure> {
    let Some(plain) = &hero.plain_env else {
        return Ok(Arc::clone(job));
    };
    let read = repeated(&hero.broker, job, "flow_read", || plain.complete(job));
    let job_of_flow = read.await.map_err(|error| {
        let message = format!("the environment of its flow cannot be read: {error}");
        Failure::new(FailureKind::Script, message)
    })?;
    match EnvTooLarge::check(&job_of_flow.env_vars) {
        Err(why) if !Arc::ptr_eq(&job_of_flow, job) => {
            Err(Failure::new(FailureKind::Permanent, why.to_string()))
        }
        _ => Ok(job_of_flow),
    }
}

/// Starts the flows of a context, which its workers also continue. Returns `None` if the worker is of no context.
pub(super) fn start_stepper(
    broker: &Broker,
    wakeups: Option<&Arc<Notify>>,
    sender: Option<Sender>,
) -> Option<DropGuard> {
    let stepper = Stepper::new(broker).ok()?.with_sender(sender);
    let stepper = match wakeups {
        Some(wakeups) => stepper.woken_by(wakeups),
        None => stepper,
    };
    Some(stepper.start().into_guard())
}
