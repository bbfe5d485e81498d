//! `meshwork flow deploy` and `undeploy`.

use std::path::PathBuf;

use meshwork::flow;
use meshwork_model::name::ScheduleName;
use meshwork_model::time;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::place::{Place, texts_of};
use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::identity::ContextArgs;
use crate::out::warn;

/// Store a flow with its scripts under its name, and its schedule
///
/// Replaces an earlier deployment of the name in one step; flows that run keep their plans. `schedule:` in the file says
/// when workers of the context start the flow; `meshwork schedule` lists and pauses these times. `flow run NAME` and `flow
/// submit NAME` start a deployed flow.
#[derive(Debug, clap::Args)]
pub(crate) struct Deploy {
    /// The file: YAML, or TOML if its name ends with .toml
    file: PathBuf,
    #[command(flatten)]
    place: ContextArgs,
}

/// A flow that was deployed.
#[derive(Debug, Serialize, Deserialize)]
struct Deployed {
    name: String,
    deployments: u64,
    next_at: Option<String>,
    #[serde(skip_serializing)]
    paused: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

impl Deploy {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let deployed = match context.remote {
            Some(_) => {
                let texts = texts_of(&flow::texts(&self.file)?);
                let params = self.place.params(context, texts).await?;
                context.call("flow.deploy", &params).await?
            }
            None => self.near(context).await?,
        };
        warn(&deployed.warnings);
        if context.out.is_json() {
            context.out.json(&deployed)?;
            return Ok(Exit::DONE);
        }
        let next = match (&deployed.next_at, deployed.paused) {
            (Some(next), _) => format!(", next {next}"),
            (None, true) => ", next paused".to_owned(),
            (None, false) => String::new(),
        };
        let Deployed {
            name, deployments, ..
        } = &deployed;
        context
            .out
            .line(format_args!("{name} deployed, number {deployments}{next}"))?;
        Ok(Exit::DONE)
    }

    async fn near(&self, context: &App) -> Result<Deployed, CommandError> {
        let plan = flow::load(&self.file)?;
        let place = Place::create(&self.place, context).await?;
        let deployments = place.session.deploy(&plan).await?;
        let name: ScheduleName = plan.name.parse().map_err(CommandError::usage)?;
        let schedule = match plan.schedule {
            Some(_) => place.flows.scheduled(&name).await?,
            None => None,
        };
        let next = schedule.as_ref().and_then(|it| it.next);
        Ok(Deployed {
            name: plan.name.clone(),
            deployments,
            next_at: next.map(time::iso),
            paused: schedule.is_some() && next.is_none(),
            warnings: place.warnings(&plan).await?,
        })
    }
}

/// Remove a deployed flow and its schedule; flows that run are not changed
#[derive(Debug, clap::Args)]
pub(crate) struct Undeploy {
    /// Name of the flow
    name: ScheduleName,
    #[command(flatten)]
    place: ContextArgs,
}

#[derive(Debug, Serialize)]
struct Removed<'a> {
    name: &'a str,
    outcome: &'static str,
}

impl Undeploy {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let fields = json!({"name": self.name.as_str()});
        let params = self.place.params(context, fields).await?;
        let _: IgnoredAny = context.call("flow.undeploy", &params).await?;
        let (name, outcome) = (self.name.as_str(), "undeployed");
        match context.out.is_json() {
            true => context.out.json(&Removed { name, outcome })?,
            false => context.out.line(format_args!("{name} {outcome}"))?,
        }
        Ok(Exit::DONE)
    }
}
