//! Flows in the store of a context. Any worker runs their steps.
//!
//! A [`Stepper`] claims flows that changed, each under a lease. It reads their state, asks the
//! [`Decider`](meshwork_flow::run::Decider), and commits the decisions. All state is in the store and each commit is atomic, so
//! after a crash another stepper continues.

mod adopt;
mod calm;
mod deploy;
mod error;
mod items;
mod look;
mod message;
mod node;
mod plain_env;
mod plain_run;
mod results;
mod retry;
mod scheduled;
mod sender;
mod session;
mod status;
mod step;
mod stepper;
mod stop;
mod submit;
mod view;
mod without_plan;

use meshwork_macros::boxed;
use std::time::Duration;

use meshwork_broker::Broker;
use meshwork_broker::flow::{FlowFields, Flows, Stopped};
use meshwork_model::context::FlowStatus;
use meshwork_model::flow::Plan;
use meshwork_model::keys::context::FlowId;
use meshwork_model::stored;
use tokio::time::Instant;

use crate::flow::{FlowDag, FlowSummary};

pub use error::FlowError;
pub(crate) use plain_env::PlainEnv;
pub(crate) use sender::Sender;
pub use session::FlowSession;
pub use status::{FlowView, ItemView, JobView};
pub use stepper::{Stepper, StepperHandle};
pub use submit::not_runnable;

/// Polling interval of callers that wait for the end of a flow.
const LOOK: Duration = Duration::from_millis(100);
/// Polling interval for started jobs, which do not change the state of the flow.
const LOOK_AT_JOBS: Duration = Duration::from_secs(1);
/// Greatest number of flows in a list.
const MAX_LISTED: usize = 1_000;

/// The flows of a context, without checks of permissions ([`FlowSession`] has them); cheap to clone.
///
/// The [example `flow`](https://github.com/meshwork/meshwork/blob/main/crates/meshwork/examples/flow.rs) waits for the end of one.
#[derive(Debug, Clone)]
pub struct FlowClient {
    flows: Flows,
}

impl FlowClient {
    /// Creates a client for the flows of the broker's context.
    ///
    /// # Errors
    /// [`FlowError::NoContext`] if the broker's session is not that of a context.
    pub fn new(broker: &Broker) -> Result<Self, FlowError> {
        let flows = Flows::of(broker).ok_or(FlowError::NoContext)?;
        Ok(Self { flows })
    }

    /// Returns the number of the context.
    #[must_use]
    pub fn context(&self) -> meshwork_model::keys::context::ContextId {
        self.flows.keys().context()
    }

    /// Returns the id of a job from the text in a view; `None` if the text is not the key of a job.
    #[must_use]
    pub fn job_id(&self, job: &str) -> Option<meshwork_model::name::JobId> {
        Some(self.flows.job_id(job.parse().ok()?))
    }

    /// Reads the status of a flow.
    ///
    /// # Errors
    /// The flow does not exist, or a call to the server fails.
    #[boxed]
    pub async fn status(&self, id: FlowId) -> Result<FlowView, FlowError> {
        status::read(&self.flows, id).await
    }

    /// Waits for the end of a flow, and passes each changed state to `each`.
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

    /// Returns the plan of a flow.
    ///
    /// # Errors
    /// The flow does not exist, or the call to the server fails.
    #[boxed]
    pub async fn plan(&self, id: FlowId) -> Result<Plan, FlowError> {
        view::plan(&self.flows, id).await
    }

    /// Requests the cancellation of a flow. Without `compensate`, no compensation runs. Returns false if the flow had
    /// ended before.
    ///
    /// # Errors
    /// The flow does not exist, or the call to the server fails.
    #[boxed]
    pub async fn cancel(&self, id: FlowId, compensate: bool) -> Result<bool, FlowError> {
        match self.flows.stop(id, !compensate).await? {
            Stopped::Stopping => Ok(true),
            Stopped::Ended => Ok(false),
            Stopped::Missing => Err(FlowError::NoFlow(id)),
        }
    }

    /// Returns the latest flows, the latest submission first; at most 1,000.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn list(&self) -> Result<Vec<FlowSummary>, FlowError> {
        Ok(self.page(0, MAX_LISTED).await?.0)
    }

    /// Returns at most `most` flows after the latest `from` ones, the latest submission first, and true if more may follow.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn page(
        &self,
        from: usize,
        most: usize,
    ) -> Result<(Vec<FlowSummary>, bool), FlowError> {
        let ids = self.flows.list(from, most.min(MAX_LISTED)).await?;
        let is_full = ids.len() == most.min(MAX_LISTED);
        Ok((self.summaries(&ids).await?, is_full))
    }

    /// Same as [`Self::list`], for flows of this name, and those that a schedule of this name has started.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn list_named(&self, name: &str) -> Result<Vec<FlowSummary>, FlowError> {
        let (mut found, mut from) = (Vec::new(), 0);
        while found.len() < MAX_LISTED {
            let (page, is_full) = self.page(from, MAX_LISTED).await?;
            let is_named =
                |flow: &FlowSummary| flow.name == name || flow.schedule.as_deref() == Some(name);
            found.extend(page.into_iter().filter(is_named));
            from += MAX_LISTED;
            if !is_full {
                break;
            }
        }
        found.truncate(MAX_LISTED);
        Ok(found)
    }

    /// Reads flows in one round trip. A flow that was deleted meanwhile is left out.
    async fn summaries(&self, ids: &[FlowId]) -> Result<Vec<FlowSummary>, FlowError> {
        let records = self.flows.flow_fields(ids, &FlowSummary::FIELDS).await?;
        let both = ids.iter().zip(&records);
        Ok(both
            .filter_map(|(id, record)| match record {
                Some(record) => FlowSummary::read(*id, record),
                None => Some(FlowSummary::damaged(*id, &self.flows.keys().flow(*id))),
            })
            .collect())
    }

    /// Returns the graph of a flow, with the names and states of its jobs.
    ///
    /// # Errors
    /// The flow does not exist, or a call to the server fails.
    #[boxed]
    pub async fn dag(&self, id: FlowId) -> Result<FlowDag, FlowError> {
        let (plan, view) = (self.plan(id).await?, self.status(id).await?);
        FlowDag::of(&plan, &view, self.context())
            .map_err(|cycle| FlowError::Plan(cycle.to_string()))
    }

    /// Deletes a flow that has ended, with its jobs.
    ///
    /// # Errors
    /// The flow does not exist or has not ended, or a call to the server fails.
    #[boxed]
    pub async fn delete(&self, id: FlowId) -> Result<(), FlowError> {
        let record = self.ended(id).await?;
        self.delete_ended(id, &record).await
    }

    /// Returns the record of a flow that has ended.
    async fn ended(&self, id: FlowId) -> Result<FlowFields, FlowError> {
        let record = self.flows.record(id).await?;
        let status = record.get("status").ok_or(FlowError::NoFlow(id))?;
        if !is_final(status) {
            return Err(FlowError::NotEnded(id));
        }
        Ok(record)
    }

    async fn delete_ended(&self, id: FlowId, record: &FlowFields) -> Result<(), FlowError> {
        step::delete(&self.flows, id, record).await
    }
}

fn is_final(status: &str) -> bool {
    status
        .parse::<FlowStatus>()
        .is_ok_and(|status| matches!(status, FlowStatus::Finished | FlowStatus::Error))
}

/// Returns the output of a job in the form that expressions use.
fn output(result: Option<Vec<u8>>) -> serde_json::Value {
    let text = result.and_then(output_text);
    text.map_or(serde_json::Value::Null, |text| {
        meshwork_flow::expr::output_value(&text)
    })
}

/// Returns the text of a job's output.
fn output_text(result: Vec<u8>) -> Option<String> {
    let plain = stored::plain_output(result)?;
    Some(String::from_utf8_lossy(&plain).into_owned())
}
