//! `meshwork queue`.

mod alert;
mod limit;
mod line;
mod list;
mod pause;
mod purge;
mod stats;
mod weight;

use meshwork::Client;
use meshwork_model::keys::hero::{JobKeys, NoWorkQueue};

use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;

/// Look at queues, pause, drain, purge and limit them
#[derive(Debug, clap::Subcommand)]
pub(crate) enum QueueCommand {
    List(list::List),
    #[command(visible_alias = "count")]
    Stats(stats::Stats),
    Pause(pause::Pause),
    Resume(pause::Resume),
    Drain(pause::Drain),
    Purge(purge::Purge),
    #[command(subcommand)]
    Limit(limit::LimitCommand),
    /// Set limits of a queue, same as `queue limit set`
    Set(Box<limit::Set>),
    Weight(weight::Weight),
    #[command(subcommand)]
    Alert(alert::AlertCommand),
}

/// Queue argument.
#[derive(Debug, clap::Args)]
pub(crate) struct Queue {
    /// Name of the queue, as `queue list` shows it, or its key
    #[arg(value_name = "QUEUE")]
    name: String,
}

impl Queue {
    /// Returns the key of the list.
    fn list(&self, keys: &JobKeys) -> Result<String, NoWorkQueue> {
        keys.parse_work_queue(&self.name)
    }
}

/// Refuses to change a queue that does not exist yet, unless it is to be created: its name may be wrong.
async fn refuse_unknown(
    context: &App,
    client: &Client,
    list: &str,
    create: bool,
) -> Result<(), CommandError> {
    if create || client.is_used(list).await? {
        return Ok(());
    }
    let name = context.queue_name(list);
    let error = UsageError::Unknown(name);
    Err(CommandError::from(error).with_hint("`meshwork queue list` shows the queues"))
}

/// Invalid requests; nothing was changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UsageError {
    #[error(
        "nothing to set: give the greatest number of waiting jobs, or an option as --concurrency 5 or --rate 100/min"
    )]
    Nothing,
    #[error(
        "the queue {0} does not exist yet; nothing was changed: correct its name, or give --create"
    )]
    Unknown(String),
    #[error("`default` has only a limit of waiting jobs; name a queue for the other limits")]
    Default,
}

impl From<UsageError> for CommandError {
    fn from(error: UsageError) -> Self {
        Self::usage(error)
    }
}

impl QueueCommand {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        match self {
            Self::List(list) => list.run(context).await,
            Self::Stats(stats) => Box::pin(stats.run(context)).await,
            Self::Pause(pause) => pause.run(context).await,
            Self::Resume(resume) => resume.run(context).await,
            Self::Drain(drain) => Box::pin(drain.run(context)).await,
            Self::Purge(purge) => Box::pin(purge.run(context)).await,
            Self::Limit(limit) => Box::pin(limit.run(context)).await,
            Self::Set(set) => set.run(context).await,
            Self::Weight(weight) => weight.run(context).await,
            Self::Alert(alert) => Box::pin(alert.run(context)).await,
        }
    }
}
