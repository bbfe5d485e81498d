//! `meshwork dead`.

mod delete;
mod groups;
mod list;
mod retry;
mod show;

use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;

/// Look at dead letters, the jobs that failed for good; retry or delete them
#[derive(Debug, clap::Subcommand)]
pub(crate) enum DeadCommand {
    List(list::List),
    Show(show::Show),
    #[command(visible_alias = "replay")]
    Retry(retry::Retry),
    Delete(delete::Delete),
}

impl DeadCommand {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        match self {
            Self::List(list) => list.run(context).await,
            Self::Show(show) => show.run(context).await,
            Self::Retry(retry) => Box::pin(retry.run(context)).await,
            Self::Delete(delete) => Box::pin(delete.run(context)).await,
        }
    }
}
