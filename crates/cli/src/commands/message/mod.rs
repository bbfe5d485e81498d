//! `meshwork message`.

mod look;
mod read;
mod send;
mod wait;

use meshwork::Target;
use meshwork::context::{Coordinator, Node};
use meshwork::model::keys::context::{InvalidKey, MessageKey};

use crate::context::Context;
use crate::error::CommandError;
use crate::exit::Exit;

/// Send messages to contexts, and read those that have come
///
/// A message asks another context for jobs, or says something to its people. `meshwork supervisor` delivers messages; without
/// a server, the command that sends or waits does it.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum MessageCommand {
    Send(Box<send::Send>),
    List(look::List),
    Read(read::Read),
    Wait(wait::Wait),
}

impl MessageCommand {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, CommandError> {
        match self {
            Self::Send(send) => Box::pin(send.run(context)).await,
            Self::List(list) => list.run(context).await,
            Self::Read(read) => Box::pin(read.run(context)).await,
            Self::Wait(wait) => Box::pin(wait.run(context)).await,
        }
    }
}

/// Reads `12:101` or `message:12:101`.
fn message_key(text: &str) -> Result<MessageKey, InvalidKey> {
    MessageKey::of_numbers(text.strip_prefix("message:").unwrap_or(text))
}

/// A coordinator, where no supervisor can be there: the data is in a directory, which needs no server.
async fn without_supervisor(
    context: &Context,
    node: &Node,
) -> Result<Option<Coordinator>, CommandError> {
    match context.place.target()? {
        Target::Directory(_) => Ok(Some(Coordinator::new(node).await?)),
        _ => Ok(None),
    }
}
