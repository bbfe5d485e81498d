//! `meshwork flow` with `--api`.

use std::time::Duration;

use meshwork::flow::{FlowView, graph};
use meshwork::view::FlowSummary;
use meshwork_model::keys::context::FlowId;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::change::{Answer, Cancel, Changed, tell};
use super::look::{self, List, Status};
use super::retry::{Retry, Retrying};
use super::{FlowCommand, logs, run};
use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::identity::ContextArgs;
use crate::interrupt::Interrupt;

/// Longest wait of one call: a proxy may end longer ones.
const WAIT: Duration = Duration::from_secs(50);

/// Answer to a change of a flow.
#[derive(Deserialize)]
struct Done {
    job: Option<String>,
    result: String,
}

/// Page of log lines.
#[derive(Deserialize)]
struct LogPage {
    lines: Vec<logs::Line<'static>>,
    next: Option<String>,
}

impl ContextArgs {
    /// Adds the context to parameters of the API.
    fn with(&self, fields: Value) -> Map<String, Value> {
        let Value::Object(mut fields) = fields else {
            return Map::new();
        };
        if let Some(id) = self.context {
            fields.insert("context".to_owned(), id.get().into());
        }
        fields
    }
}

impl FlowCommand {
    /// Runs the command by the API.
    pub(super) async fn by_api(self, app: &mut App) -> Result<Exit, CommandError> {
        match self {
            Self::List(list) => list.by_api(app).await,
            Self::Status(status) => status.by_api(app).await,
            Self::Logs(logs) => logs.by_api(app).await,
            Self::Cancel(cancel) => cancel.by_api(app).await,
            Self::Retry(retry) => retry.by_api(app).await,
            Self::Approve(approve) => approve.answer.by_api(app, "flow.approve").await,
            Self::Reject(reject) => reject.answer.by_api(app, "flow.reject").await,
            Self::Delete(delete) => {
                let params = delete.place.with(json!({"id": delete.id.0}));
                changed(app, "flow.delete", delete.id, params).await
            }
            // The table of commands refuses them.
            _ => Ok(Exit::USAGE),
        }
    }
}

/// Changes a flow, and prints the outcome.
async fn changed(
    app: &mut App,
    method: &str,
    id: FlowId,
    params: Map<String, Value>,
) -> Result<Exit, CommandError> {
    let Done { job, result } = app.call(method, &params).await?;
    let is_over = result == "ended";
    let outcome = match is_over {
        true => "ended already",
        false => &result,
    };
    let (id, job) = (id.0, job.as_deref());
    tell(app, &Changed { id, job, outcome })?;
    Ok(if is_over { Exit::FAILED } else { Exit::DONE })
}

impl List {
    async fn by_api(self, app: &mut App) -> Result<Exit, CommandError> {
        if self.deployed {
            return Err(CommandError::usage(
                "--deployed does not work with --api: list the deployed flows where the store is",
            ));
        }
        let params = self.place.with(json!({"name": self.name}));
        let pages = app.pages("flow.list", params, ("flows", usize::MAX));
        let (flows, _): (Vec<FlowSummary>, _) = pages.await?;
        app.out.rows(flows.into_iter().map(look::Line))?;
        Ok(Exit::DONE)
    }
}

/// Reads a flow.
async fn read(app: &App, params: &Map<String, Value>) -> Result<FlowView, CommandError> {
    let mut view: FlowView = app.call("flow.get", params).await?;
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    let outputs = view.outputs.iter();
    view.result = outputs
        .map(|(name, value)| (name.clone(), text(value)))
        .collect();
    Ok(view)
}

impl Status {
    async fn by_api(self, app: &mut App) -> Result<Exit, CommandError> {
        let mut params = self.place.with(json!({"id": self.id.0}));
        if self.wait {
            params.insert("wait".to_owned(), WAIT.as_secs().into());
            let ended = async {
                loop {
                    let view = app.retried(async || read(app, &params).await).await?;
                    if view.is_ended() {
                        return Ok::<_, CommandError>(view);
                    }
                }
            };
            let id = self.id;
            let how = format!("flow {id} goes on: `meshwork flow status {id} --wait` waits for it");
            let interrupt = Interrupt::listen_quietly()?;
            let view = interrupt.or_detach(ended, how).await?;
            return run::print(&view, app);
        }
        let view = read(app, &params).await?;
        if app.out.is_json() {
            app.out.json(&view)?;
            return Ok(Exit::DONE);
        }
        // The plan, of which the tree is drawn, is in the store.
        if self.waterfall {
            let width = look::width(app);
            let drawing = graph::waterfall_text(&view.bars(), meshwork::host_ms(), width);
            drawing.lines().try_for_each(|line| app.out.line(line))?;
        } else {
            app.out
                .line(format_args!("{} {}", view.name, view.status))?;
            for job in &view.jobs {
                app.out
                    .line(format_args!("  {:9} {}", job.status, job.name))?;
            }
        }
        look::tell(&view, app)?;
        Ok(Exit::DONE)
    }
}

impl Cancel {
    async fn by_api(self, app: &mut App) -> Result<Exit, CommandError> {
        let compensate = !self.no_compensate;
        let fields = json!({"id": self.id.0, "compensate": compensate});
        changed(app, "flow.cancel", self.id, self.place.with(fields)).await
    }
}

impl Retry {
    async fn by_api(self, app: &mut App) -> Result<Exit, CommandError> {
        if !self.detach || self.force {
            return Err(CommandError::usage(
                "`flow retry` with --api needs --detach, without --force: `meshwork flow status ID --wait` waits for the end",
            ));
        }
        let from: Vec<_> = self.from.iter().map(ToString::to_string).collect();
        let fields = json!({"id": self.id.0, "from_jobs": from, "all": self.all});
        let Done { .. } = app.call("flow.retry", &self.place.with(fields)).await?;
        Retrying::print(self.id, app)
    }
}

impl Answer {
    async fn by_api(self, app: &mut App, method: &str) -> Result<Exit, CommandError> {
        let fields = json!({"id": self.id.0, "job": self.job});
        changed(app, method, self.id, self.place.with(fields)).await
    }
}

impl logs::Logs {
    async fn by_api(self, app: &mut App) -> Result<Exit, CommandError> {
        if self.follow {
            return Err(CommandError::usage(
                "--follow does not work with --api: `meshwork job logs -f` follows one job of the flow",
            ));
        }
        let fields = json!({"id": self.id.0, "job": self.job});
        let mut params = self.place.with(fields);
        loop {
            let LogPage { lines, next } = app.call("flow.logs", &params).await?;
            lines.iter().try_for_each(|line| line.print(app))?;
            let Some(next) = next else {
                return Ok(Exit::DONE);
            };
            params.insert("cursor".to_owned(), next.into());
        }
    }
}
