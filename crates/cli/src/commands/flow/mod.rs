//! `meshwork flow`.

mod change;
pub(super) mod check;
mod dag;
mod deploy;
mod graph;
mod live;
mod logs;
mod look;
pub(super) mod place;
mod retry;
mod run;
mod schema;

use meshwork::flow::{FlowFaults, Plan};
use meshwork::view::FlowDag;
use meshwork_model::flow::Dag;

use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;

/// Run flows: files of jobs that depend on each other (docs/flows.md)
#[derive(Debug, clap::Subcommand)]
pub(crate) enum FlowCommand {
    Run(Box<run::Run>),
    Submit(Box<run::Submit>),
    Deploy(deploy::Deploy),
    Undeploy(deploy::Undeploy),
    List(look::List),
    Status(look::Status),
    Logs(logs::Logs),
    Cancel(change::Cancel),
    Retry(retry::Retry),
    Approve(change::Approve),
    Reject(change::Reject),
    Delete(change::Delete),
    Check(check::Check),
    Dag(dag::DagCommand),
    Graph(graph::Graph),
    Schema(schema::Schema),
}

impl FlowCommand {
    /// Returns true if the command runs jobs and prints their failures itself.
    pub(crate) fn tells_failures(&self) -> bool {
        matches!(self, Self::Run(_) | Self::Retry(_))
    }

    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        match self {
            Self::Run(run) => Box::pin(run.run(context)).await,
            Self::Submit(submit) => Box::pin(submit.run(context)).await,
            Self::Deploy(deploy) => Box::pin(deploy.run(context)).await,
            Self::Undeploy(undeploy) => undeploy.run(context).await,
            Self::List(list) => list.run(context).await,
            Self::Status(status) => Box::pin(status.run(context)).await,
            Self::Logs(logs) => Box::pin(logs.run(context)).await,
            Self::Cancel(cancel) => cancel.run(context).await,
            Self::Retry(retry) => Box::pin(retry.run(context)).await,
            Self::Approve(approve) => approve.run(context).await,
            Self::Reject(reject) => reject.run(context).await,
            Self::Delete(delete) => delete.run(context).await,
            Self::Check(check) => check.run(context).await,
            Self::Dag(dag) => dag.run(&mut context.out),
            Self::Graph(graph) => Box::pin(graph.run(context)).await,
            Self::Schema(schema) => schema.run(&mut context.out),
        }
    }
}

impl From<FlowFaults> for CommandError {
    fn from(faults: FlowFaults) -> Self {
        Self::usage(faults)
    }
}

/// Returns the graph of a plan, with the names of its jobs.
fn named(plan: &Plan) -> Result<Dag<String>, CommandError> {
    Ok(FlowDag::of_plan(plan).map_err(CommandError::usage)?.0)
}
