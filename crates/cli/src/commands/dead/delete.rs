//! `meshwork dead delete`.

use meshwork::Deleted;

use super::bulk::Bulk;
use crate::change::Change;
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::Exit;

/// Forget dead letters, with all that is kept of the jobs
#[derive(Debug, clap::Args)]
pub(crate) struct Delete {
    #[command(flatten)]
    which: Bulk,
}

impl Delete {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, CommandError> {
        let delete = async |client: &meshwork::Client, letter: &meshwork::DeadLetter| {
            Ok(match client.delete_dead(letter).await? {
                Deleted::Deleted | Deleted::Missing => Change::Done("deleted"),
                Deleted::Running => Change::Refused(
                    "running",
                    "is no dead letter any more: it was queued again, and runs",
                ),
            })
        };
        self.which.run(context, "delete", delete).await
    }
}
