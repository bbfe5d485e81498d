//! `meshwork job stop`.

use meshwork::model::name::JobId;
use meshwork::{Cancelled, Error as MeshworkError};

use super::change::{Change, change};
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::value;

/// Stop jobs that wait or run; they end in error
///
/// A job that runs is cut off when its worker renews its lease the next time.
#[derive(Debug, clap::Args)]
pub(crate) struct Stop {
    /// The jobs' ids
    #[arg(required = true, value_name = "ID", value_parser = value::job_id)]
    ids: Vec<JobId>,
}

impl Stop {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, Error> {
        change(context, &self.ids, async |client, id| {
            match client.stop(id).await? {
                Cancelled::Cancelled => Ok(Change::Done("stopped")),
                Cancelled::Stopping => Ok(Change::Done("stopping")),
                Cancelled::Ended => Ok(Change::Done("ended")),
                Cancelled::Missing => Err(MeshworkError::NoJob { id: id.clone() }),
            }
        })
        .await
    }
}
