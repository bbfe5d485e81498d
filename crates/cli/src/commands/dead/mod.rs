//! `meshwork dead`.

mod bulk;
mod delete;
mod filter;
mod list;
mod replay;
mod show;

use crate::context::Context;
use crate::error::CommandError;
use crate::exit::Exit;

/// Look at dead letters, the jobs that failed for good, run them again or forget them
#[derive(Debug, clap::Subcommand)]
pub(crate) enum DeadCommand {
    List(list::List),
    Show(show::Show),
    Replay(replay::Replay),
    Delete(delete::Delete),
}

impl DeadCommand {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, CommandError> {
        match self {
            Self::List(list) => list.run(context).await,
            Self::Show(show) => show.run(context).await,
            Self::Replay(replay) => Box::pin(replay.run(context)).await,
            Self::Delete(delete) => Box::pin(delete.run(context)).await,
        }
    }
}
