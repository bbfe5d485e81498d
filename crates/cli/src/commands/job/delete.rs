//! `meshwork job delete`.

use meshwork::{Deleted, Error as MeshworkError};
use meshwork_model::state::Status;

use crate::app::App;
use crate::bulk::{Chosen, Source, Verb};
use crate::change::Change;
use crate::error::CommandError;
use crate::exit::Exit;

/// Delete jobs that do not run, with their results; waiting jobs will not run
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Delete {
    #[command(flatten)]
    pub(super) chosen: Chosen,
}

impl Delete {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let verb = Verb {
            source: Source::Jobs,
            verb: "delete",
            done: "deleted",
            fits: |job| job.status() != Some(Status::Started),
        };
        let delete = self.chosen.run(context, verb, async |client, job| {
            match client.broker().delete(job).await? {
                Deleted::Deleted => Ok(Change::Done("deleted")),
                Deleted::Running => Ok(Change::Refused("running", "runs: cancel it first")),
                Deleted::OfFlow => Ok(Change::Refused(
                    "of a flow",
                    "belongs to a flow: `meshwork flow delete` deletes it with the flow",
                )),
                Deleted::Missing => Err(MeshworkError::JobNotFound { id: job.job_id() }),
            }
        });
        Box::pin(delete).await
    }
}
