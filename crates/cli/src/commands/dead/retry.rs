//! `meshwork dead retry`.

use meshwork::Retried;

use crate::app::App;
use crate::bulk::{Chosen, Source, Verb};
use crate::change::Change;
use crate::error::CommandError;
use crate::exit::Exit;

/// Queue dead letters again, with all their attempts
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Retry {
    #[command(flatten)]
    pub(super) chosen: Chosen,
}

impl Retry {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let verb = Verb {
            source: Source::DeadLetters,
            verb: "retry",
            done: "queued",
            fits: |_| true,
        };
        let retry = self.chosen.run(context, verb, async |client, job| {
            Ok(match client.retry_dead_letter(job).await? {
                Retried::Queued => Change::Done("queued"),
                Retried::Unfinished => Change::Refused(
                    "unfinished",
                    "is no dead letter any more: it was queued again",
                ),
                Retried::OfFlow => Change::Refused(
                    "of a flow",
                    "belongs to a flow: `meshwork flow retry FLOW --from JOB` runs it again",
                ),
                Retried::Missing => Change::Refused(
                    "missing",
                    "has no record any more, so its queue is unknown: enqueue the job again",
                ),
            })
        });
        Box::pin(retry).await
    }
}
