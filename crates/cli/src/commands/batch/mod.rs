//! `meshwork batch`.

mod add;
mod cancel;
mod create;
mod list;
mod seal;
mod status;

pub(super) use add::written;

use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;

/// Jobs that are counted together, with callbacks that run when all have ended
#[derive(Debug, clap::Subcommand)]
pub(crate) enum BatchCommand {
    Create(create::Create),
    Add(Box<add::Add>),
    Seal(seal::Seal),
    Status(status::StatusOf),
    List(list::List),
    Cancel(cancel::Cancel),
}

impl BatchCommand {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        match self {
            Self::Create(create) => create.run(context).await,
            Self::Add(add) => add.run(context).await,
            Self::Seal(seal) => seal.run(context).await,
            Self::Status(status) => Box::pin(status.run(context)).await,
            Self::List(list) => list.run(context).await,
            Self::Cancel(cancel) => cancel.run(context).await,
        }
    }
}
