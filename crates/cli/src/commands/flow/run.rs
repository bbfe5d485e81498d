//! `meshwork flow run` and `submit`.

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use futures_util::future::join_all;
use meshwork::flow::{FlowView, Plan};
use meshwork::{Client, Worker, WorkerHandle, runtime};
use meshwork_model::flow::Work;
use meshwork_model::keys::context::{ContextId, FlowId};
use meshwork_model::name::{Group, ScriptType};
use meshwork_model::route::Route;
use serde::{Deserialize, Serialize};
use serde_json::Map;

use super::live;
use super::place::{InputArgs, NewPlace, Place, Source, new_flow};
use crate::app::App;
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::interrupt::{Interrupt, tell_released};
use crate::out::{note, warn};

/// Submit a flow and show its progress, until it has ended
///
/// Runs scripts in this process too, for types without a worker; not with --api. If the process is killed, workers of the context
/// continue the flow. Draws a tree on a terminal, else prints a line for each change; then prints the outputs, or with
/// --json one object with outputs and results. Exits with 0 if the flow finished, else with 1. Ctrl-C detaches: workers of
/// the context continue the flow, and the command prints how to show and to cancel it.
#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// The file: YAML, or TOML if its name ends with .toml. Or the name of a deployed flow
    file: PathBuf,
    #[command(flatten)]
    inputs: InputArgs,
    /// Greatest number of concurrent jobs in this process [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = parsers::whole::<u16>(1..=1000))]
    concurrency: Option<u16>,
    #[command(flatten)]
    place: NewPlace,
}

/// Submit a flow and print its number; workers of the context run it
#[derive(Debug, clap::Args)]
pub(crate) struct Submit {
    /// The file: YAML, or TOML if its name ends with .toml. Or the name of a deployed flow
    file: PathBuf,
    #[command(flatten)]
    inputs: InputArgs,
    #[command(flatten)]
    place: NewPlace,
}

/// A flow that was submitted.
#[derive(Debug, Serialize, Deserialize)]
struct Submitted {
    id: FlowId,
    context: ContextId,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

impl Submit {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let submitted = match context.remote {
            Some(_) => {
                let params = new_flow((&self.place, self.inputs), &self.file)?;
                context.call("flow.submit", &params).await?
            }
            None => self.near(context).await?,
        };
        warn(&submitted.warnings);
        match context.out.is_json() {
            true => context.out.json(&submitted)?,
            false => context.out.line(submitted.id)?,
        }
        Ok(Exit::DONE)
    }

    async fn near(self, context: &App) -> Result<Submitted, CommandError> {
        let mut source = Source::read(&self.file)?;
        let inputs = source.fill(self.inputs, &self.file)?;
        let place = Place::to_submit((&self.place, &source), context).await?;
        let mut plan = source.plan(&place.flows).await?;
        if let Some(inputs) = inputs {
            inputs.fill(&mut plan, &self.file)?;
        }
        Ok(Submitted {
            id: place.session.submit(&plan).await?,
            context: place.flows.context(),
            warnings: place.warnings(&plan).await?,
        })
    }
}

impl Run {
    /// Submits the flow by the API, and shows its progress. Runs nothing here.
    async fn by_api(self, context: &mut App) -> Result<Exit, CommandError> {
        let interrupt = Interrupt::listen_quietly()?;
        let params = new_flow((&self.place, self.inputs), &self.file)?;
        let flow: Submitted = context.call("flow.submit", &params).await?;
        note(format_args!("flow {} of context {}", flow.id, flow.context));
        warn(&flow.warnings);
        let of = Map::from_iter([
            ("id".to_owned(), flow.id.0.into()),
            ("context".to_owned(), flow.context.get().into()),
        ]);
        let view = live::watch_by_api(context, flow.id, &of, &interrupt).await?;
        print(&view, context)
    }

    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        if context.remote.is_some() {
            return self.by_api(context).await;
        }
        let mut source = Source::read(&self.file)?;
        let inputs = source.fill(self.inputs, &self.file)?;
        let interrupt = Interrupt::listen_quietly()?;
        let place = interrupt
            .or(Place::to_run((&self.place, &source), context))
            .await?;
        let mut plan = source.plan(&place.flows).await?;
        if let Some(inputs) = inputs {
            inputs.fill(&mut plan, &self.file)?;
        }
        let id = place.session.submit(&plan).await?;
        note(format_args!(
            "flow {id} of context {}",
            place.flows.context()
        ));
        let slots = self.concurrency.map(usize::from);
        follow(&place, (id, &plan), slots, &interrupt, context).await
    }
}

/// Shows the progress of a flow until it has ended, and runs scripts of types without a worker in this process.
pub(super) async fn follow(
    place: &Place,
    (id, plan): (FlowId, &Plan),
    slots: Option<usize>,
    interrupt: &Interrupt,
    context: &mut App,
) -> Result<Exit, CommandError> {
    let stepper = place.stepper()?;
    let workers = workers(&place.client, plan, slots).await?;
    workers.iter().for_each(|worker| interrupt.holds(worker));
    let ended = live::watch(place, (id, plan), interrupt).await;
    let released = join_all(workers.into_iter().map(|worker| interrupt.stop(worker))).await;
    tell_released(released.iter().sum());
    stepper.stop().await;
    print(&ended?, context)
}

/// Starts workers in this process for the types of scripts without another worker.
async fn workers(
    client: &Client,
    plan: &Plan,
    slots: Option<usize>,
) -> Result<Vec<WorkerHandle>, CommandError> {
    let mut wanted: BTreeSet<(&str, Option<&str>)> = BTreeSet::new();
    for job in &plan.jobs {
        if let Work::Run(run) = &job.work {
            wanted.insert((&run.script_type, run.group.as_deref()));
        }
    }
    // A killed worker counts as listening until its lease expires.
    client.reclaim_dead().await?;
    let mut workers = Vec::new();
    for (name, group) in wanted {
        let script_type: ScriptType = name.parse().map_err(CommandError::usage)?;
        let mut route = Route::to(script_type.clone());
        let group: Option<Group> = group
            .map(str::parse)
            .transpose()
            .map_err(CommandError::usage)?;
        route.group.clone_from(&group);
        if client.has_worker(&route).await? {
            continue;
        }
        if !runtime::runtimes().any(|known| known == name) {
            note(format_args!(
                "no worker runs scripts of type `{name}`: the flow waits for a worker"
            ));
            continue;
        }
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        let mut worker = Worker::new(client)
            .script_type(&script_type)?
            .concurrency(slots.unwrap_or_else(processors))
            .shutdown_timeout(Duration::ZERO);
        if let Some(group) = group {
            worker = worker.group(group);
        }
        workers.push(worker.start().await?);
    }
    Ok(workers)
}

/// Prints the outcome of a flow, and returns its exit code.
pub(super) fn print(view: &FlowView, context: &mut App) -> Result<Exit, CommandError> {
    let exit = match view.is_finished() {
        true => Exit::DONE,
        false => Exit::FAILED,
    };
    if context.out.is_json() {
        context.out.json(view)?;
        return Ok(exit);
    }
    for (name, text) in &view.result {
        match (view.result.len(), std::io::stdout().is_terminal()) {
            (1, _) => context.out.line(text)?,
            _ => context.out.line(format_args!("{name}: {text}"))?,
        }
    }
    if let Some(error) = &view.error {
        note(format_args!("flow {} failed: {error}", view.id));
    }
    Ok(exit)
}
