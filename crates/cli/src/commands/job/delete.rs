//! `meshwork job delete`.

use meshwork::model::name::JobId;
use meshwork::{Deleted, Error as MeshworkError};

use crate::change::{Change, change};
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::value;

/// Forget jobs that do not run, with their results; one that waits will not run
#[derive(Debug, clap::Args)]
pub(crate) struct Delete {
    /// The jobs' ids
    #[arg(required = true, value_name = "ID", value_parser = value::job_id)]
    ids: Vec<JobId>,
}

impl Delete {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, CommandError> {
        change(context, &self.ids, async |client, id| {
            match client.delete(id).await? {
                Deleted::Deleted => Ok(Change::Done("deleted")),
                Deleted::Running => Ok(Change::Refused("running", "runs: stop it first")),
                Deleted::Missing => Err(MeshworkError::NoJob { id: id.clone() }),
            }
        })
        .await
    }
}
