//! `meshwork dead replay`.

use meshwork::Retried;

use super::bulk::Bulk;
use crate::change::Change;
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::Exit;

/// Queue dead letters again, as if they had never run: all their attempts are before them
#[derive(Debug, clap::Args)]
pub(crate) struct Replay {
    #[command(flatten)]
    which: Bulk,
}

impl Replay {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, CommandError> {
        let replay = async |client: &meshwork::Client, letter: &meshwork::DeadLetter| {
            Ok(match client.replay(letter).await? {
                Retried::Queued => Change::Done("queued"),
                Retried::Unfinished => Change::Refused(
                    "unfinished",
                    "is no dead letter any more: it was queued again",
                ),
                Retried::Missing => Change::Refused(
                    "missing",
                    "has no record any more that says which queue it belongs to: submit it anew",
                ),
            })
        };
        self.which.run(context, "replay", replay).await
    }
}
