//! `meshwork queue`.

mod limit;
mod list;

use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;

/// Look at queues and bound them
#[derive(Debug, clap::Subcommand)]
pub(crate) enum QueueCommand {
    List(list::List),
    #[command(subcommand)]
    Limit(limit::LimitCommand),
}

impl QueueCommand {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, Error> {
        match self {
            Self::List(list) => list.run(context).await,
            Self::Limit(limit) => limit.run(context).await,
        }
    }
}
