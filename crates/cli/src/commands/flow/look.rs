//! `meshwork flow list` and `status`.

use meshwork::flow::FlowView;
use meshwork::flow::graph;
use meshwork::view::{FlowDag, FlowSummary};
use meshwork_model::keys::context::{ContextId, FlowId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::live;
use super::place::Place;
use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::identity::ContextArgs;
use crate::interrupt::Interrupt;
use crate::out::{Column, Row, indented};

/// List flows, the last submitted first
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// Only flows of this name, and those that a schedule of this name has started
    #[arg(long, value_name = "NAME", conflicts_with = "deployed")]
    name: Option<String>,
    /// List the deployed flows instead, the last deployed first
    #[arg(long)]
    deployed: bool,
    #[command(flatten)]
    place: ContextArgs,
}

/// Flow in a list.
#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
struct Line(FlowSummary);

impl List {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let of = self.place.for_calls(context).await?;
        if self.deployed {
            let flows = rows(context, of, "flow.deployed", json!({})).await?;
            context.out.rows::<DeployedLine>(flows)?;
        } else {
            let name = json!({"name": self.name});
            let flows = rows(context, of, "flow.list", name).await?;
            context.out.rows::<Line>(flows)?;
        }
        Ok(Exit::DONE)
    }
}

/// Reads a list of flows; none without a context.
async fn rows<R: DeserializeOwned>(
    context: &App,
    of: Option<ContextId>,
    method: &str,
    fields: Value,
) -> Result<Vec<R>, CommandError> {
    let (Some(of), Value::Object(mut params)) = (of, fields) else {
        return Ok(Vec::new());
    };
    params.insert("context".to_owned(), of.get().into());
    let all = context.pages(method, params, ("flows", usize::MAX));
    Ok(all.await?.0)
}

/// Deployed flow in a list.
#[derive(Debug, Serialize, Deserialize)]
struct DeployedLine {
    name: String,
    deployments: u64,
    deployed_at: String,
    by: Option<u32>,
}

impl Row for DeployedLine {
    fn columns() -> Vec<Column> {
        let numbers = ["deployments", "actor"];
        Column::named(["name", "deployments", "deployed", "actor"], &numbers)
    }

    fn cells(&self) -> Vec<String> {
        vec![
            self.name.clone(),
            self.deployments.to_string(),
            self.deployed_at.clone(),
            self.by.map_or_else(String::new, |by| by.to_string()),
        ]
    }
}

impl Row for Line {
    fn columns() -> Vec<Column> {
        Column::named(["id", "name", "status", "submitted", "error"], &["id"])
    }

    fn optional() -> &'static [&'static str] {
        &["submitted"]
    }

    fn cells(&self) -> Vec<String> {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        vec![
            self.0.id.to_string(),
            self.0.name.clone(),
            self.0.status.clone(),
            text(&self.0.created_at),
            text(&self.0.error),
        ]
    }
}

/// Show the state of a flow: a tree of its jobs, and the errors
#[derive(Debug, clap::Args)]
pub(crate) struct Status {
    /// Number of the flow
    id: FlowId,
    /// Wait until the flow has ended, or until Ctrl-C or q; the exit code is its outcome
    #[arg(long)]
    wait: bool,
    /// Show when the jobs ran: a bar for each, from its start to its end
    #[arg(long, conflicts_with = "wait")]
    waterfall: bool,
    #[command(flatten)]
    place: ContextArgs,
}

impl Status {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        if self.wait {
            let interrupt = Interrupt::listen_quietly()?;
            let view = match context.remote {
                Some(_) => {
                    let params = self.place.params(context, json!({"id": self.id.0})).await?;
                    live::watch_by_api(context, self.id, &params, &interrupt).await?
                }
                None => {
                    let place = Place::open(&self.place, context).await?;
                    let plan = place.flows.plan(self.id).await?;
                    live::watch(&place, (self.id, &plan), &interrupt).await?
                }
            };
            return super::run::print(&view, context);
        }
        let params = self.place.params(context, json!({"id": self.id.0})).await?;
        let view = live::read(context, &params).await?;
        if context.out.is_json() {
            context.out.json(&view)?;
            return Ok(Exit::DONE);
        }
        let width = width(context);
        let drawing = match self.waterfall {
            true => graph::waterfall_text(&view.bars(), meshwork::host_ms(), width),
            false => {
                let dag: FlowDag = context.call("flow.dag", &params).await?;
                live::drawing(&dag.0, &view, (width, MAX_LINES))
            }
        };
        for line in drawing.lines() {
            context.out.line(line)?;
        }
        tell(&view, context)?;
        Ok(Exit::DONE)
    }
}

/// The most failed items of a job whose errors are printed; --json has all.
const SHOWN_ITEMS: usize = 10;

/// Greatest number of lines of a printed tree with the jobs that have failed or run: the greatest tree has half of it.
const MAX_LINES: usize = 140;

/// Greatest width of a printed tree, in columns.
const WIDTH: usize = 100;

/// Returns the width of a drawing, in columns.
fn width(context: &App) -> usize {
    let width = context.out.width();
    width.map_or(WIDTH, |width| WIDTH.min(width.into()))
}

/// Prints open approvals, and errors.
fn tell(view: &FlowView, context: &mut App) -> Result<(), CommandError> {
    for job in &view.jobs {
        if let Some(question) = &job.question {
            context
                .out
                .line(format_args!("{} asks: {}", job.name, indented(question)))?;
        }
        if let Some(error) = &job.error {
            let error = indented(error);
            context.out.line(format_args!("{}: {error}", job.name))?;
        }
        let failed = job.items.iter().enumerate();
        let failed = failed.filter_map(|(item, of)| Some((item, of.error.as_ref()?)));
        for (item, error) in failed.take(SHOWN_ITEMS) {
            context
                .out
                .line(format_args!("{}[{item}]: {}", job.name, indented(error)))?;
        }
    }
    if let Some(error) = &view.error {
        context
            .out
            .line(format_args!("error: {}", indented(error)))?;
    }
    Ok(())
}
