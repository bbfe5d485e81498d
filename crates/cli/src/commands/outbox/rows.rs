//! `meshwork outbox retry` and `meshwork outbox delete`.

use super::database::{OutboxArgs, with_pool};
use crate::app::App;
use crate::confirm::confirm;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::note;
use meshwork_model::number::counted;

/// Let relays move refused rows again
///
/// A row may say that an earlier attempt may have enqueued its job. Look for the effect of the job first: after a retry
/// it may happen again.
#[derive(Debug, clap::Args)]
pub(crate) struct Retry {
    #[command(flatten)]
    outbox: OutboxArgs,
    /// Ids of the rows
    #[arg(value_name = "ID", required_unless_present = "all")]
    ids: Vec<String>,
    /// Retry all refused rows
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    /// Do not ask for a confirmation of --all
    #[arg(long)]
    yes: bool,
}

/// Delete rows; their jobs are not enqueued
#[derive(Debug, clap::Args)]
pub(crate) struct Delete {
    #[command(flatten)]
    outbox: OutboxArgs,
    /// Ids of the rows
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
}

impl Retry {
    pub(super) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let (outbox, pool) = self.outbox.open(context).await?;
        if self.all {
            confirm("retry of all refused rows", self.yes)?;
        }
        let ids = (!self.all).then_some(self.ids.as_slice());
        let retried = with_pool!(&pool, |pool| outbox.retry(pool, ids).await)?;
        Ok(changed("retried", retried, ids))
    }
}

impl Delete {
    pub(super) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let (outbox, pool) = self.outbox.open(context).await?;
        let deleted = with_pool!(&pool, |pool| outbox.delete(pool, &self.ids).await)?;
        Ok(changed("deleted", deleted, Some(&self.ids)))
    }
}

/// Prints the number of changed rows. Fails if some of the ids had none.
fn changed(done: &str, rows: u64, ids: Option<&[String]>) -> Exit {
    note(format_args!("{} {done}", counted(rows, "row")));
    let missing = ids.map_or(0, |ids| (ids.len() as u64).saturating_sub(rows));
    if missing == 0 {
        return Exit::DONE;
    }
    note(format_args!("{missing} of the ids have no such row"));
    Exit::NO_JOB
}
