//! `meshwork job retry`.

use meshwork::Retried;
use meshwork_model::job::Job;
use meshwork_model::state::Status;

use crate::app::App;
use crate::bulk::{Chosen, Source, Verb};
use crate::change::Change;
use crate::error::CommandError;
use crate::exit::Exit;

/// Run ended jobs again, failed or done
///
/// With --all or filter options, retries failed and cancelled jobs only; for finished ones add --state finished.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Retry {
    #[command(flatten)]
    pub(super) chosen: Chosen,
}

impl Retry {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let failed: fn(&Job) -> bool = |job| job.status() == Some(Status::Error);
        let ended: fn(&Job) -> bool = |job| job.status().is_some_and(Status::is_final);
        let verb = Verb {
            source: Source::Jobs,
            verb: "retry",
            done: "queued",
            fits: if self.chosen.select.has_status() {
                ended
            } else {
                failed
            },
        };
        let retry = self.chosen.run(context, verb, async |client, job| {
            Ok(match client.broker().retry(job).await? {
                Retried::Queued => Change::Done("queued"),
                Retried::Unfinished => Change::Refused(
                    "unfinished",
                    "has not ended: wait for it, or cancel it first",
                ),
                Retried::OfFlow => Change::Refused(
                    "of a flow",
                    "belongs to a flow: `meshwork flow retry FLOW --from JOB` runs it again",
                ),
                Retried::Missing => {
                    Change::Refused("missing", "does not name its queue: enqueue the job again")
                }
            })
        });
        Box::pin(retry).await
    }
}
