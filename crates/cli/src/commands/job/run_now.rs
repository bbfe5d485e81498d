//! `meshwork job run-now`.

use meshwork::RunNow as Became;
use meshwork_model::name::JobId;

use crate::app::App;
use crate::args::parsers;
use crate::change::{Change, change};
use crate::error::CommandError;
use crate::exit::Exit;

/// Run jobs at once that are delayed, or wait for a retry
#[derive(Debug, clap::Args)]
pub(crate) struct RunNow {
    /// Ids of the jobs
    #[arg(required = true, value_name = "ID", value_parser = parsers::job_id)]
    pub(super) ids: Vec<JobId>,
}

impl RunNow {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        change(context, &self.ids, async |client, id| {
            Ok(match client.run_now(id).await? {
                Became::Queued => Change::Done("queued"),
                Became::Waiting => Change::Done("waiting"),
                Became::Ready => Change::Refused(
                    "ready",
                    "does not wait for a time: `job show` shows its prerequisites and its queue",
                ),
                Became::Running => Change::Refused("running", "runs already"),
                Became::Ended => {
                    Change::Refused("ended", "has ended: `job retry` runs it once more")
                }
                Became::Missing => Change::Refused("missing", "is gone: enqueue it again"),
            })
        })
        .await
    }
}
