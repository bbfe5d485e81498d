//! `meshwork dead delete`.

use meshwork::Deleted;

use crate::app::App;
use crate::bulk::{Chosen, Source, Verb};
use crate::change::Change;
use crate::error::CommandError;
use crate::exit::Exit;

/// Delete dead letters, with all stored data of the jobs
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Delete {
    #[command(flatten)]
    pub(super) chosen: Chosen,
}

impl Delete {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let verb = Verb {
            source: Source::DeadLetters,
            verb: "delete",
            done: "deleted",
            fits: |_| true,
        };
        let delete = self.chosen.run(context, verb, async |client, job| {
            Ok(match client.delete_dead_letter(job).await? {
                Deleted::Deleted | Deleted::Missing => Change::Done("deleted"),
                Deleted::OfFlow => Change::Refused(
                    "of a flow",
                    "belongs to a flow: `meshwork flow delete` deletes it with the flow",
                ),
                Deleted::Running => Change::Refused(
                    "running",
                    "is no dead letter any more: it was queued again, and runs",
                ),
            })
        });
        Box::pin(delete).await
    }
}
