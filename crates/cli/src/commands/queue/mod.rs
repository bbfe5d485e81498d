//! `meshwork queue`.

mod list;

use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;

/// Look at queues
#[derive(Debug, clap::Subcommand)]
pub(crate) enum QueueCommand {
    List(list::List),
}

impl QueueCommand {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, Error> {
        match self {
            Self::List(list) => list.run(context).await,
        }
    }
}
