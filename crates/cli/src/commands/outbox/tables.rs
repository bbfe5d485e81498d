//! `meshwork outbox migrate` and `meshwork outbox schema`.

use super::database::{OutboxArgs, with_pool};
use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::note;

/// Create the tables of an outbox that do not exist
#[derive(Debug, clap::Args)]
pub(crate) struct Migrate {
    #[command(flatten)]
    outbox: OutboxArgs,
}

/// Print the SQL that `migrate` runs, for migrations of your own; needs no server
///
/// It is that of PostgreSQL, unless the database that is named is a file of SQLite.
#[derive(Debug, clap::Args)]
pub(crate) struct Schema {
    #[command(flatten)]
    outbox: OutboxArgs,
}

impl Migrate {
    pub(super) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let (outbox, pool) = self.outbox.open(context).await?;
        with_pool!(&pool, |pool| outbox.migrate(pool).await)?;
        note("the tables of the outbox exist");
        Ok(Exit::DONE)
    }
}

impl Schema {
    pub(super) fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let sql = self.outbox.schema_sql()?;
        for line in sql.lines() {
            context.out.line(line)?;
        }
        Ok(Exit::DONE)
    }
}
