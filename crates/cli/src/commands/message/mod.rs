//! `meshwork message`.

mod cancel;
mod delete;
mod look;
mod read;
mod send;
mod wait;

use meshwork::Target;
use meshwork::context::{Coordinator, Node};
use meshwork_model::keys::context::{ContextId, InvalidKey, MessageKey};
use serde_json::{Value, json};

use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;

/// Send messages to contexts, and read received ones
///
/// A message contains jobs for another context, or text for its members. `meshwork supervisor` delivers messages; on a
/// data directory, the command that sends or waits delivers them.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum MessageCommand {
    Send(Box<send::Send>),
    List(look::List),
    Read(read::Read),
    Wait(wait::Wait),
    Cancel(cancel::Cancel),
    Delete(delete::Delete),
}

impl MessageCommand {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        match self {
            Self::Send(send) => Box::pin(send.run(context)).await,
            Self::List(list) => list.run(context).await,
            Self::Read(read) => Box::pin(read.run(context)).await,
            Self::Wait(wait) => Box::pin(wait.run(context)).await,
            Self::Cancel(cancel) => Box::pin(cancel.run(context)).await,
            Self::Delete(delete) => delete.run(context).await,
        }
    }
}

/// Parses `12:101` or `message:12:101`.
fn message_key(text: &str) -> Result<MessageKey, InvalidKey> {
    MessageKey::of_numbers(text.strip_prefix("message:").unwrap_or(text))
}

/// Returns a coordinator for a data directory, which has no supervisor.
async fn without_supervisor(context: &App) -> Result<Option<Coordinator>, CommandError> {
    if context.remote.is_some() || !matches!(context.place.target()?, Target::Directory(_)) {
        return Ok(None);
    }
    let client = context.client().await?;
    Ok(Some(Coordinator::new(&Node::of(client.broker())).await?))
}

/// Delivers messages on a data directory.
async fn settle(context: &App) -> Result<(), CommandError> {
    if let Some(coordinator) = without_supervisor(context).await? {
        coordinator.settle().await?;
    }
    Ok(())
}

/// Returns the parameters of a message.
fn params(context: ContextId, message: MessageKey) -> Value {
    json!({"context": context, "id": message.numbers()})
}
