//! `meshwork job retry`.

use meshwork::Retried;
use meshwork::model::name::JobId;

use crate::change::{Change, change};
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::value;

/// Run jobs again that have ended, well or not
#[derive(Debug, clap::Args)]
pub(crate) struct Retry {
    /// The jobs' ids
    #[arg(required = true, value_name = "ID", value_parser = value::job_id)]
    ids: Vec<JobId>,
}

impl Retry {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, CommandError> {
        change(context, &self.ids, async |client, id| {
            Ok(match client.retry(id).await? {
                Retried::Queued => Change::Done("queued"),
                Retried::Unfinished => {
                    Change::Refused("unfinished", "has not ended: wait for it, or stop it first")
                }
                Retried::Missing => Change::Refused(
                    "missing",
                    "does not say which queue it belongs to: submit it anew",
                ),
            })
        })
        .await
    }
}
