//! `meshwork bananas`: commands for jobs of Bananas.

mod dead;
mod get;
mod limit;
mod queues;
mod schedule;
mod submit;
mod wait;

use meshwork::protocol::bananas::Client;
use meshwork::{Client as OurClient, Target};
use meshwork_broker::bananas::Bananas;
use meshwork_model::bananas::{ClientVariant, Outcome};
use meshwork_model::keys::bananas::BananasKeys as Keys;
use meshwork_model::name::Namespace;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::note;

/// Commands for jobs of Bananas, the same as `--protocol bananas` after a noun, with aliases
#[derive(Debug, clap::Subcommand)]
pub(crate) enum BananasCommand {
    /// Enqueue jobs of Bananas, wait for them, look at them; `worker --protocol bananas` runs them
    #[command(subcommand)]
    Job(JobCommand),
    /// Look at the queues of Bananas, and limit its routes
    #[command(subcommand)]
    Queue(QueueCommand),
    Dead(dead::Dead),
    /// Keep cron schedules in Redis; any worker with --protocol bananas runs their slots
    #[command(subcommand)]
    Schedule(schedule::ScheduleCommand),
    #[command(hide = true)]
    Submit(Box<submit::Submit>),
    #[command(hide = true)]
    Wait(wait::Wait),
    #[command(hide = true)]
    Get(get::Get),
    #[command(hide = true)]
    Queues(queues::Queues),
    #[command(subcommand, hide = true)]
    Limit(limit::LimitCommand),
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum JobCommand {
    #[command(name = "enqueue", visible_alias = "submit")]
    Enqueue(Box<submit::Submit>),
    Wait(wait::Wait),
    #[command(name = "show", visible_aliases = ["get", "status"])]
    Show(get::Get),
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum QueueCommand {
    #[command(name = "list")]
    List(queues::Queues),
    #[command(subcommand)]
    Limit(limit::LimitCommand),
}

impl BananasCommand {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        match self {
            Self::Job(JobCommand::Enqueue(submit)) | Self::Submit(submit) => {
                Box::pin(submit.run(context)).await
            }
            Self::Job(JobCommand::Wait(wait)) | Self::Wait(wait) => wait.run(context).await,
            Self::Job(JobCommand::Show(get)) | Self::Get(get) => get.run(context).await,
            Self::Queue(QueueCommand::List(queues)) | Self::Queues(queues) => {
                queues.run(context).await
            }
            Self::Dead(dead) => dead.run(context).await,
            Self::Queue(QueueCommand::Limit(limit)) | Self::Limit(limit) => {
                Box::pin(limit.run(context)).await
            }
            Self::Schedule(schedule) => Box::pin(schedule.run(context)).await,
        }
    }
}

/// Converts an error about a job or schedule of Bananas, with a hint at the commands that show them.
fn of_bananas(error: meshwork::Error) -> CommandError {
    use meshwork::Error as E;
    let hint = match &error {
        E::JobNotFound { .. } => {
            "`meshwork queue list --protocol bananas` tells what waits, `meshwork dead --protocol bananas` shows dead letters"
        }
        E::NotDeadLettered { .. } => "`meshwork dead --protocol bananas` shows the dead letters",
        E::NoSchedule { .. } => "`meshwork schedule list --protocol bananas` lists the schedules",
        E::ScheduleExists { .. } => {
            "`--replace` replaces it, `meshwork schedule list --protocol bananas` shows it"
        }
        _ => return error.into(),
    };
    CommandError::from(error).with_hint(hint)
}

/// Options of the keys and the format.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Side {
    /// First part of every key of Bananas
    #[arg(
        long,
        value_name = "NAME",
        default_value = "bananas",
        env = "BANANAS_PREFIX"
    )]
    prefix: Namespace,
    /// Client of Bananas whose records and lists are imitated: go, go-routed, typescript or python. go enqueues jobs of
    /// the route `default` on lists without a route, go-routed on lists of the route, the others enqueue all jobs on
    /// lists without a route
    #[arg(long = "client-variant", value_name = "NAME", default_value = "go")]
    pub(crate) peer: ClientVariant,
}

impl Side {
    /// Connects a client.
    pub(crate) async fn client(&self, context: &App) -> Result<Client, CommandError> {
        let keys = || Keys::new(self.prefix.clone());
        let connect = async |target: &Target| Bananas::connect(target, keys()).await;
        let broker = context.connected(connect).await?;
        Ok(Client::new(broker).with_variant(self.peer))
    }

    /// Returns a client that shares the connection of a Meshwork client.
    pub(crate) fn beside(&self, ours: &OurClient) -> Client {
        beside(ours, self.prefix.clone()).with_variant(self.peer)
    }
}

/// Returns a client for this prefix of Bananas, which shares the connection of a Meshwork client.
pub(crate) fn beside(ours: &OurClient, prefix: Namespace) -> Client {
    let conn = ours.broker().conn().clone();
    Client::new(Bananas::new(conn, Keys::new(prefix)))
}

/// End of a job, as JSON.
#[derive(Debug, Serialize)]
struct Ended<'a> {
    id: &'a str,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    completed_at: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
}

/// Prints the end of a job: its result on stdout, its error on stderr.
fn print(id: &str, outcome: &Outcome, context: &mut App) -> Result<Exit, CommandError> {
    let status = if outcome.succeeded {
        "completed"
    } else {
        "failed"
    };
    if context.out.is_json() {
        // The record can only contain valid JSON.
        let result = outcome.result.clone();
        context.out.json(&Ended {
            id,
            status,
            result: result.and_then(|text| RawValue::from_string(text).ok()),
            error: outcome.error.as_deref(),
            completed_at: &outcome.completed_at,
            duration_ms: outcome.duration_ms,
        })?;
    } else if let Some(result) = &outcome.result {
        context.out.line(result)?;
    }
    if outcome.succeeded {
        return Ok(Exit::DONE);
    }
    let error = outcome.error.as_deref().unwrap_or("no reason given");
    note(format_args!("job {id} failed: {error}"));
    Ok(Exit::FAILED)
}
