//! `meshwork flow deploy` and `undeploy`.

use std::path::PathBuf;

use meshwork::flow;
use meshwork_model::name::ScheduleName;
use meshwork_model::time;
use serde::Serialize;

use super::place::Place;
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

#[derive(Debug, Serialize)]
struct Deployed<'a> {
    name: &'a str,
    deployments: u64,
    next_at: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

impl Deploy {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let plan = flow::load(&self.file)?;
        let place = Place::create(&self.place, context).await?;
        let deployments = place.session.deploy(&plan).await?;
        let name: ScheduleName = plan.name.parse().map_err(CommandError::usage)?;
        let next_at = match plan.schedule {
            Some(_) => place.flows.scheduled(&name).await?,
            None => None,
        };
        let next_at = next_at.map(|there| there.next.map(time::iso));
        let warnings = place.warnings(&plan).await?;
        warn(&warnings);
        if context.out.is_json() {
            context.out.json(&Deployed {
                name: name.as_str(),
                deployments,
                next_at: next_at.flatten(),
                warnings,
            })?;
            return Ok(Exit::DONE);
        }
        let next = next_at.map(|next| next.unwrap_or_else(|| "paused".to_owned()));
        let next = next.map_or_else(String::new, |next| format!(", next {next}"));
        context
            .out
            .line(format_args!("{name} deployed, number {deployments}{next}"))?;
        Ok(Exit::DONE)
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
        let place = Place::open(&self.place, context).await?;
        place.session.undeploy(&self.name).await?;
        let (name, outcome) = (self.name.as_str(), "undeployed");
        match context.out.is_json() {
            true => context.out.json(&Removed { name, outcome })?,
            false => context.out.line(format_args!("{name} {outcome}"))?,
        }
        Ok(Exit::DONE)
    }
}
