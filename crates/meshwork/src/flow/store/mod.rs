//! Flows in the store of a context: they are submitted, and go on by steps that any worker takes.
//!
//! A [`Stepper`] takes flows that something has happened to, each under a lease, reads their state, asks the
//! [`Decider`](super::run::Decider) and commits what it decides. Killed at any point, it leaves a flow that another one
//! goes on with: all that counts is in the store, and each commit holds as a whole or not at all.

mod calm;
mod error;
mod node;
mod results;
mod retry;
mod status;
mod step;
mod stepper;
mod submit;
mod view;

use std::time::Duration;

use meshwork_broker::Broker;
use meshwork_broker::flow::{Answered, Flows, Stopped};
use meshwork_model::context::FlowStatus;
use meshwork_model::flow::Plan;
use meshwork_model::keys::context::{ActorId, FlowId, JobKey};
use meshwork_model::stored;
use tokio::time::Instant;

pub use error::FlowError;
pub use status::{FlowView, ItemView, JobView};
pub use stepper::{Stepper, StepperHandle};

/// Between two looks of who waits for the end of a flow.
const LOOK: Duration = Duration::from_millis(100);
/// The same where only a job has started, which changes nothing for the flow.
const LOOK_AT_JOBS: Duration = Duration::from_secs(1);
/// The most flows that a list has.
const MAX_LISTED: usize = 1_000;

/// The flows of a context; cheap to clone.
#[derive(Debug, Clone)]
pub struct FlowClient {
    flows: Flows,
}

impl FlowClient {
    /// The flows of the context whose session this is.
    ///
    /// # Errors
    /// [`FlowError::NoContext`] if it is none of a context.
    pub fn new(broker: &Broker) -> Result<Self, FlowError> {
        let flows = Flows::of(broker).ok_or(FlowError::NoContext)?;
        Ok(Self { flows })
    }

    /// The context.
    #[must_use]
    pub fn context(&self) -> meshwork_model::keys::context::ContextId {
        self.flows.keys().context()
    }

    /// The id of a job by what a view says of it; none if that is no job.
    #[must_use]
    pub fn job_id(&self, job: &str) -> Option<meshwork_model::name::JobId> {
        Some(self.flows.job_id(job.parse().ok()?))
    }

    /// Reads the status of a flow.
    ///
    /// # Errors
    /// The flow does not exist, or a call to the server fails.
    pub async fn status(&self, id: FlowId) -> Result<FlowView, FlowError> {
        status::read(&self.flows, id).await
    }

    /// Waits for the end of a flow, and tells each state that differs from the one before.
    ///
    /// # Errors
    /// The flow does not exist, or a call to the server fails.
    pub async fn wait(
        &self,
        id: FlowId,
        mut seen: impl FnMut(&FlowView),
    ) -> Result<FlowView, FlowError> {
        let (mut before, mut looked) = (None, Instant::now());
        loop {
            let record = self.flows.record(id).await?;
            let mark = ["status", "mw_dirty"].map(|name| record.get(name).cloned());
            if before.as_ref() != Some(&mark) || looked.elapsed() >= LOOK_AT_JOBS {
                (before, looked) = (Some(mark), Instant::now());
                let view = self.status(id).await?;
                seen(&view);
                if view.is_ended() {
                    return Ok(view);
                }
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// The plan of a flow.
    ///
    /// # Errors
    /// The flow does not exist, or the call to the server fails.
    pub async fn plan(&self, id: FlowId) -> Result<Plan, FlowError> {
        view::plan(&self.flows, id).await
    }

    /// Asks a flow to stop; without `compensate` nothing is undone. True if it stops, false if it had ended.
    ///
    /// # Errors
    /// The flow does not exist, or the call to the server fails.
    pub async fn cancel(&self, id: FlowId, compensate: bool) -> Result<bool, FlowError> {
        match self.flows.stop(id, !compensate).await? {
            Stopped::Stopping => Ok(true),
            Stopped::Ended => Ok(false),
            Stopped::Missing => Err(FlowError::NoFlow(id)),
        }
    }

    /// Answers an approval, for an actor who may. The first answer counts.
    ///
    /// # Errors
    /// If the flow has no such approval, it is not open yet, it has ended, or the actor may not answer; and if the server
    /// does not take a call.
    pub async fn answer(
        &self,
        id: FlowId,
        job: &str,
        actor: ActorId,
        yes: bool,
    ) -> Result<(), FlowError> {
        let plan = view::plan(&self.flows, id).await?;
        let no_approval = || FlowError::NoApproval(id, job.to_owned());
        let node = plan.job(job).ok_or_else(no_approval)?;
        let meshwork_model::flow::Work::Approve(approve) = &node.work else {
            return Err(no_approval());
        };
        let record = self.flows.record(id).await?;
        let submitted_by = record.get("caller_id").and_then(|text| text.parse().ok());
        if approve.four_eyes && submitted_by == Some(actor) {
            return Err(FlowError::FourEyes(job.to_owned(), actor));
        }
        if !approve.approvers.is_empty() && !approve.approvers.contains(&actor.0) {
            return Err(FlowError::NoApprover(job.to_owned(), actor));
        }
        let names = self.flows.names(id).await?;
        let number = names.get(job).and_then(|text| text.parse().ok());
        let (Some(caller), Some(number)) = (submitted_by, number) else {
            return Err(no_approval());
        };
        let key = self.flows.job_id(JobKey { caller, id: number });
        match self.flows.answer(id, &key, actor, yes).await? {
            Answered::Answered => Ok(()),
            Answered::Ended(answer) => {
                let job = job.to_owned();
                Err(FlowError::Answered { job, answer })
            }
            Answered::Late => Err(FlowError::Late(job.to_owned())),
            Answered::Waiting => Err(FlowError::NotAsked(job.to_owned())),
            Answered::Missing => Err(no_approval()),
        }
    }

    /// Flows from the one that was submitted last on, each with its record's fields.
    ///
    /// # Errors
    /// A call to the server fails.
    pub async fn list(
        &self,
    ) -> Result<Vec<(FlowId, meshwork_broker::flow::FlowFields)>, FlowError> {
        let mut found = Vec::new();
        for id in self.flows.list(0, MAX_LISTED).await? {
            let record = self.flows.record(id).await?;
            if !record.is_empty() {
                found.push((id, record));
            }
        }
        Ok(found)
    }

    /// Forgets a flow that has ended, with its jobs.
    ///
    /// # Errors
    /// If there is no such flow, or it has not ended; or a call to the server fails.
    pub async fn delete(&self, id: FlowId) -> Result<(), FlowError> {
        let record = self.flows.record(id).await?;
        let status = record.get("status").ok_or(FlowError::NoFlow(id))?;
        if !is_final(status) {
            return Err(FlowError::NotEnded(id));
        }
        step::delete(&self.flows, id, &record).await
    }
}

fn is_final(status: &str) -> bool {
    status
        .parse::<FlowStatus>()
        .is_ok_and(|status| matches!(status, FlowStatus::Finished | FlowStatus::Error))
}

/// The output of a job, as expressions see it.
fn output(result: Option<Vec<u8>>) -> serde_json::Value {
    let plain = result.and_then(stored::plain_output);
    let text = plain.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    text.map_or(serde_json::Value::Null, |text| {
        super::expr::output_value(&text)
    })
}
