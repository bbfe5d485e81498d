//! The commands, one file each. They hold no logic: they read options, call what does the work, and print.

mod action;
mod bananas;
mod batch;
mod completions;
mod dead;
mod doctor;
mod elsewhere;
mod events;
mod job;
mod metrics;
mod migrate;
mod queue;
mod run;
mod schedule;
mod service;
mod worker;

use crate::context::Context;
use crate::error::CommandError;
use crate::exit::Exit;

/// What to do.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Run(run::Run),
    Worker(worker::WorkerCommand),
    #[command(subcommand)]
    Job(job::JobCommand),
    #[command(subcommand)]
    Batch(batch::BatchCommand),
    #[command(subcommand)]
    Queue(queue::QueueCommand),
    #[command(subcommand, alias = "cron")]
    Schedule(schedule::ScheduleCommand),
    #[command(subcommand)]
    Dead(dead::DeadCommand),
    #[command(subcommand)]
    Bananas(bananas::BananasCommand),
    Service(service::ServiceCommand),
    #[command(subcommand)]
    Action(action::ActionCommand),
    #[command(subcommand)]
    Migrate(migrate::MigrateCommand),
    /// Print what a job wrote, as `job logs` does
    #[command(hide = true)]
    Logs(job::Logs),
    #[command(hide = true)]
    Dashboard(elsewhere::Elsewhere),
    #[command(hide = true)]
    Config(elsewhere::Elsewhere),
    Events(events::Events),
    Metrics(metrics::MetricsCommand),
    Doctor(doctor::Doctor),
    Completions(completions::Completions),
}

impl Command {
    /// Whether it says why its jobs failed where it runs them.
    pub(crate) fn tells_failures(&self) -> bool {
        matches!(self, Self::Run(_))
    }

    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, CommandError> {
        match self {
            Self::Run(run) => Box::pin(run.run(context)).await,
            Self::Worker(worker) => Box::pin(worker.run(context)).await,
            Self::Job(job) => Box::pin(job.run(context)).await,
            Self::Batch(batch) => Box::pin(batch.run(context)).await,
            Self::Queue(queue) => Box::pin(queue.run(context)).await,
            Self::Schedule(schedule) => Box::pin(schedule.run(context)).await,
            Self::Migrate(migrate) => Box::pin(migrate.run(context)).await,
            Self::Bananas(bananas) => Box::pin(bananas.run(context)).await,
            Self::Service(service) => Box::pin(service.run(context)).await,
            Self::Action(action) => Box::pin(action.run(context)).await,
            Self::Dead(dead) => Box::pin(dead.run(context)).await,
            Self::Logs(logs) => Box::pin(logs.run(context)).await,
            Self::Dashboard(_) => Err(elsewhere::dashboard()),
            Self::Config(_) => Err(elsewhere::config()),
            Self::Events(events) => events.run(context).await,
            Self::Metrics(metrics) => Box::pin(metrics.run(context)).await,
            Self::Doctor(doctor) => Box::pin(doctor.run(context)).await,
            Self::Completions(completions) => completions.run(context),
        }
    }
}
