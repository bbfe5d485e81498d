//! `meshwork flow cancel`, `approve`, `reject` and `delete`.

use meshwork_model::keys::context::FlowId;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::identity::ContextArgs;

/// Outcome of a change of a flow.
#[derive(Debug, Serialize)]
struct Changed<'a> {
    id: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<&'a str>,
    outcome: &'a str,
}

/// Answer to a change of a flow.
#[derive(Deserialize)]
struct Done {
    job: Option<String>,
    result: String,
}

/// Changes a flow, and prints the outcome.
async fn change(
    context: &mut App,
    place: &ContextArgs,
    method: &str,
    (id, fields): (FlowId, Value),
) -> Result<Exit, CommandError> {
    let params = place.params(context, fields).await?;
    let Done { job, result } = context.call(method, &params).await?;
    let is_over = result == "ended";
    let outcome = match is_over {
        true => "ended already",
        false => &result,
    };
    let (id, job) = (id.0, job.as_deref());
    match context.out.is_json() {
        true => context.out.json(&Changed { id, job, outcome })?,
        false => context.out.line(outcome)?,
    }
    Ok(if is_over { Exit::FAILED } else { Exit::DONE })
}

/// Cancel a flow: pending jobs do not start, running jobs are cancelled, then compensations run
#[derive(Debug, clap::Args)]
pub(crate) struct Cancel {
    /// Number of the flow
    id: FlowId,
    /// Run no compensations
    #[arg(long)]
    no_compensate: bool,
    #[command(flatten)]
    place: ContextArgs,
}

impl Cancel {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let compensate = !self.no_compensate;
        let fields = json!({"id": self.id.0, "compensate": compensate});
        change(context, &self.place, "flow.cancel", (self.id, fields)).await
    }
}

/// Approve an approval of a flow, as the actor of the key file
#[derive(Debug, clap::Args)]
pub(crate) struct Approve {
    #[command(flatten)]
    answer: Answer,
}

/// Reject an approval of a flow, as the actor of the key file: the job fails
#[derive(Debug, clap::Args)]
pub(crate) struct Reject {
    #[command(flatten)]
    answer: Answer,
}

#[derive(Debug, clap::Args)]
struct Answer {
    /// Number of the flow
    id: FlowId,
    /// Name of the approval [default: the only open one]
    job: Option<String>,
    #[command(flatten)]
    place: ContextArgs,
}

impl Approve {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        self.answer.run(context, "flow.approve").await
    }
}

impl Reject {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        self.answer.run(context, "flow.reject").await
    }
}

impl Answer {
    async fn run(self, context: &mut App, method: &str) -> Result<Exit, CommandError> {
        let fields = json!({"id": self.id.0, "job": self.job});
        change(context, &self.place, method, (self.id, fields)).await
    }
}

/// Delete a flow that has ended, with its jobs
#[derive(Debug, clap::Args)]
pub(crate) struct Delete {
    /// Number of the flow
    id: FlowId,
    #[command(flatten)]
    place: ContextArgs,
}

impl Delete {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let fields = json!({"id": self.id.0});
        change(context, &self.place, "flow.delete", (self.id, fields)).await
    }
}
