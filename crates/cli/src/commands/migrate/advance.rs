//! `meshwork migrate canonical-first`, `finish` and `abort`.

use meshwork_broker::Ended;

use super::{Which, tell};
use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;

/// Let Meshwork's workers claim from the old lists too, after the canonical queues
#[derive(Debug, clap::Args)]
pub(crate) struct CanonicalFirst {
    #[command(flatten)]
    which: Which,
}

/// End the migration if nothing remains on the old lists; else print the remains
///
/// Checks every old list, every open job, and the clients that wait on lists. If only copies of jobs remain that
/// canonical queues list too, nothing more is pushed to the old lists from then on; run the command again after workers
/// have taken these jobs. Exits with 1 until the migration has ended.
#[derive(Debug, clap::Args)]
pub(crate) struct Finish {
    #[command(flatten)]
    which: Which,
    /// End it despite clients that wait on unknown lists
    #[arg(long)]
    ignore_listeners: bool,
}

/// Abort the migration: return to the state before it
///
/// Old workers and clients continue as before. Jobs that only a canonical queue lists still need Meshwork's workers.
#[derive(Debug, clap::Args)]
pub(crate) struct Abort {
    #[command(flatten)]
    which: Which,
}

impl CanonicalFirst {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let script_type = self.which.script_type;
        let client = context.client().await?;
        let set = client.broker().canonical_first(&script_type).await?;
        let words = format!(
            "Meshwork's workers of `{script_type}` claim from canonical queues first, then old lists; when old workers \
             and clients are gone: `meshwork migrate finish --type {script_type}`"
        );
        tell(context, &script_type, Some(&set), &[], &words)?;
        Ok(Exit::DONE)
    }
}

impl Finish {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let script_type = self.which.script_type;
        let client = context.client().await?;
        let broker = client.broker();
        let ended = broker.finish_migration(&script_type, self.ignore_listeners);
        match ended.await? {
            Ended::Done => {
                let words = format!("the migration of `{script_type}` is through");
                tell(context, &script_type, None, &[], &words)?;
                Ok(Exit::DONE)
            }
            Ended::Closing(left) => {
                let set = broker.migrations().await?.remove(script_type.as_str());
                let words = format!(
                    "the migration of `{script_type}` has not ended yet, but nothing more is pushed to its \
                     old lists; repeat the command when workers have run the rest:"
                );
                tell(context, &script_type, set.as_ref(), &left, &words)?;
                Ok(Exit::FAILED)
            }
        }
    }
}

impl Abort {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let script_type = self.which.script_type;
        let client = context.client().await?;
        client.broker().abort_migration(&script_type).await?;
        let words = format!(
            "`{script_type}` is no longer in a migration; jobs on its canonical queues alone still need \
             Meshwork's workers"
        );
        tell(context, &script_type, None, &[], &words)?;
        Ok(Exit::DONE)
    }
}
