//! `meshwork outbox`.

mod check;
pub(crate) mod database;
pub(crate) mod findings;
mod list;
mod relay;
mod rows;
mod tables;

use meshwork_outbox::Error as OutboxError;

use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;

/// Enqueue jobs with transactions of PostgreSQL or SQLite: move the rows of an outbox to the store
///
/// A program writes jobs into the outbox, in its own transactions. `relay` enqueues those that are committed. See
/// docs/outbox.md.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum OutboxCommand {
    Relay(relay::RelayCommand),
    List(list::List),
    Retry(rows::Retry),
    Delete(rows::Delete),
    Migrate(tables::Migrate),
    Schema(tables::Schema),
    Check(check::Check),
}

impl OutboxCommand {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        match self {
            Self::Relay(relay) => Box::pin(relay.run(context)).await,
            Self::List(list) => list.run(context).await,
            Self::Retry(retry) => retry.run(context).await,
            Self::Delete(delete) => delete.run(context).await,
            Self::Migrate(migrate) => migrate.run(context).await,
            Self::Schema(schema) => schema.run(context),
            Self::Check(check) => check.run(context),
        }
    }
}

impl From<OutboxError> for CommandError {
    fn from(error: OutboxError) -> Self {
        let temporary = error.is_temporary();
        match error {
            OutboxError::Meshwork(error) => error.into(),
            OutboxError::InContext | OutboxError::Row(_) => Self::usage(error),
            _ => Self::new(Exit::SERVER, error).temporary(temporary),
        }
    }
}
