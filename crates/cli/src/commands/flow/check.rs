//! `meshwork flow check`.

use std::path::PathBuf;
use std::time::Duration;

use meshwork::flow::{self, FlowFault, Given, Plan};
use meshwork_model::access::{Object, Operation};
use meshwork_model::number::counted;
use meshwork_ops::warnings;
use serde::Serialize;
use tokio::time::timeout;

use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::identity::ContextArgs;
use crate::out::warn;

/// Check a flow's file: its form, names, cycles, expressions and scripts
///
/// Needs no server and no key. Looks up which types of scripts have a worker in the context if both are there, unless
/// --offline is given. Exits with 2 if there is a fault.
#[derive(Debug, clap::Args)]
pub(crate) struct Check {
    /// The file: YAML, or TOML if its name ends with .toml
    file: PathBuf,
    /// Do not look up the workers' types in the store
    #[arg(long)]
    offline: bool,
    /// Check that the flow accepts this input; all inputs without a default are required then
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = given)]
    inputs: Vec<(String, String)>,
    #[command(flatten)]
    place: ContextArgs,
}

/// Longest time to look up workers.
const LOOK: Duration = Duration::from_secs(2);

#[derive(Debug, Serialize)]
struct Report<'a> {
    flow: Option<&'a str>,
    jobs: usize,
    faults: Vec<FaultLine>,
    warnings: Vec<String>,
}

#[derive(Debug, Serialize)]
struct FaultLine {
    file: Option<String>,
    line: Option<u32>,
    column: Option<u32>,
    message: String,
}

impl Check {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let mut plan = match flow::load(&self.file) {
            Ok(plan) => plan,
            Err(faults) if context.out.is_json() => {
                let faults = faults.0.into_iter().map(fault_line).collect();
                let (flow, jobs, warnings) = (None, 0, Vec::new());
                context.out.json(&Report {
                    flow,
                    jobs,
                    faults,
                    warnings,
                })?;
                return Ok(Exit::USAGE);
            }
            Err(faults) => return Err(faults.into()),
        };
        if !self.inputs.is_empty() {
            let given = self.inputs.into_iter();
            let given = given.map(|(name, value)| (name, Given::Text(value)));
            flow::set_inputs(&mut plan, given).map_err(CommandError::usage)?;
        }
        let mut warnings = unused(&plan);
        warnings.extend(flow::not_runnable(&plan));
        warnings.extend(flow::expr::hints(&plan).into_iter().map(hint));
        if !self.offline {
            // One try: a check is made while the server is away, too.
            context.place.connect_timeout = Duration::ZERO;
            let found = timeout(LOOK, without_worker(&plan, &self.place, context));
            let late = |_| Err(CommandError::new(Exit::SERVER, "no answer"));
            match found.await.unwrap_or_else(late) {
                Ok(found) => warnings.extend(found),
                Err(error) if self.place.context.is_some() => return Err(error),
                Err(error) => warnings.push(format!("workers were not looked up: {error}")),
            }
        }
        if context.out.is_json() {
            let (flow, faults) = (Some(plan.name.as_str()), Vec::new());
            let jobs = plan.total_jobs();
            context.out.json(&Report {
                flow,
                jobs,
                faults,
                warnings,
            })?;
            return Ok(Exit::DONE);
        }
        warn(&warnings);
        let jobs = counted(plan.total_jobs(), "job");
        context
            .out
            .line(format_args!("{}: {jobs}, no faults", plan.name))?;
        Ok(Exit::DONE)
    }
}

fn fault_line(fault: FlowFault) -> FaultLine {
    FaultLine {
        file: fault.file,
        line: fault.at.map(|at| at.line),
        column: fault.at.map(|at| at.column),
        message: fault.message,
    }
}

fn hint(hint: flow::expr::Fault) -> String {
    match hint.at {
        Some(at) => format!("{at}: {}", hint.message),
        None => hint.message,
    }
}

fn unused(plan: &Plan) -> Vec<String> {
    let used = flow::expr::output_names(plan);
    let jobs = meshwork_model::flow::unused(plan, &used).into_iter();
    jobs.map(|job| {
        format!(
            "job `{job}` changes nothing: no other job needs it, and it needs none or only waits"
        )
    })
    .collect()
}

/// Returns the warnings about scripts that no worker of the context runs. A check creates no context.
async fn without_worker(
    plan: &Plan,
    place: &ContextArgs,
    context: &App,
) -> Result<Vec<String>, CommandError> {
    let Some(handle) = place.existing(context).await? else {
        return Ok(warnings::of_plan(None, plan).await?);
    };
    let Some(me) = place.identity.find(&context.client().await?).await? else {
        return Ok(Vec::new());
    };
    let client = handle.client(&me, Object::Queue, Operation::Read).await?;
    Ok(warnings::of_plan(Some((&client, handle.id())), plan).await?)
}

/// Parses `NAME=VALUE`.
pub(in crate::commands) fn given(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}
