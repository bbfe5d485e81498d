//! Commands, one file each, without logic: they parse options, call the library, and print.

mod action;
mod actor;
mod bananas;
mod batch;
mod completions;
mod context;
mod dashboard;
mod dead;
mod doctor;
mod elsewhere;
mod events;
mod export;
mod flow;
mod import;
mod job;
mod key;
mod mcp;
mod mesh;
mod message;
mod metrics;
mod migrate;
#[cfg(feature = "outbox")]
mod outbox;
mod queue;
mod rpc;
mod run;
mod runner;
mod runtime;
mod schedule;
mod service;
mod store;
mod supervisor;
mod worker;

use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;

/// Command to run.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Run(run::Run),
    Worker(Box<worker::WorkerCommand>),
    Job(job::Jobs),
    #[command(subcommand)]
    Batch(batch::BatchCommand),
    Queue(queue::Queues),
    #[command(visible_alias = "cron")]
    Schedule(schedule::Schedules),
    #[command(subcommand)]
    Flow(flow::FlowCommand),
    Dead(dead::Dead),
    #[command(name = "bananas-worker", hide = true)]
    BananasWorker(Box<worker::BananasWorker>),
    #[command(subcommand, hide = true)]
    Bananas(bananas::BananasCommand),
    Service(service::ServiceCommand),
    #[command(subcommand)]
    Action(action::ActionCommand),
    #[command(subcommand)]
    Migrate(migrate::MigrateCommand),
    #[command(hide = true)]
    Config(elsewhere::Elsewhere),
    Events(events::Events),
    Metrics(metrics::MetricsCommand),
    Doctor(doctor::Doctor),
    #[cfg(feature = "outbox")]
    #[command(subcommand)]
    Outbox(outbox::OutboxCommand),
    Export(export::Export),
    Import(import::Import),
    #[command(subcommand)]
    Store(store::StoreCommand),
    #[command(subcommand)]
    Actor(actor::ActorCommand),
    #[command(subcommand)]
    Context(context::ContextCommand),
    #[command(subcommand)]
    Runner(runner::RunnerCommand),
    #[command(subcommand)]
    Runtime(runtime::RuntimeCommand),
    #[command(subcommand)]
    Message(message::MessageCommand),
    Supervisor(supervisor::Supervisor),
    Dashboard(dashboard::DashboardCommand),
    #[command(subcommand)]
    Mesh(mesh::MeshCommand),
    #[command(subcommand)]
    Key(key::KeyCommand),
    Rpc(rpc::Rpc),
    Mcp(mcp::McpCommand),
    Completions(completions::Completions),
}

impl Command {
    /// Returns true if the command prints the failures of its jobs itself.
    pub(crate) fn tells_failures(&self) -> bool {
        match self {
            Self::Run(_) => true,
            Self::Flow(flow) => flow.tells_failures(),
            _ => false,
        }
    }

    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        match self {
            Self::Run(run) => Box::pin(run.run(context)).await,
            Self::Worker(worker) => Box::pin(worker.run(context)).await,
            Self::Job(job) => Box::pin(job.run(context)).await,
            Self::Batch(batch) => Box::pin(batch.run(context)).await,
            Self::Queue(queue) => Box::pin(queue.run(context)).await,
            Self::Flow(flow) => Box::pin(flow.run(context)).await,
            Self::Schedule(schedule) => Box::pin(schedule.run(context)).await,
            Self::Migrate(migrate) => Box::pin(migrate.run(context)).await,
            Self::BananasWorker(worker) => Box::pin(worker.run(context)).await,
            Self::Bananas(bananas) => Box::pin(bananas.run(context)).await,
            Self::Service(service) => Box::pin(service.run(context)).await,
            Self::Action(action) => Box::pin(action.run(context)).await,
            Self::Dead(dead) => Box::pin(dead.run(context)).await,
            Self::Config(_) => Err(elsewhere::config()),
            Self::Events(events) => events.run(context).await,
            Self::Metrics(metrics) => Box::pin(metrics.run(context)).await,
            Self::Export(export) => Box::pin(export.run(context)).await,
            Self::Import(import) => Box::pin(import.run(context)).await,
            Self::Store(store) => Box::pin(store.run(context)).await,
            Self::Doctor(doctor) => Box::pin(doctor.run(context)).await,
            #[cfg(feature = "outbox")]
            Self::Outbox(outbox) => Box::pin(outbox.run(context)).await,
            Self::Actor(actor) => Box::pin(actor.run(context)).await,
            Self::Context(of_context) => Box::pin(of_context.run(context)).await,
            Self::Message(message) => Box::pin(message.run(context)).await,
            Self::Mesh(mesh) => Box::pin(mesh.run(context)).await,
            Self::Key(key) => Box::pin(key.run(context)).await,
            Self::Rpc(rpc) => Box::pin(rpc.run(context)).await,
            Self::Mcp(mcp) => Box::pin(mcp.run(context)).await,
            Self::Supervisor(supervisor) => Box::pin(supervisor.run(context)).await,
            Self::Dashboard(dashboard) => Box::pin(dashboard.run(context)).await,
            Self::Runtime(runtime) => Box::pin(runtime.run(context)).await,
            Self::Runner(runner) => Box::pin(runner.run(context)).await,
            Self::Completions(completions) => completions.run(context),
        }
    }
}
