//! `meshwork job approve`.

use crate::app::App;
use crate::change::{Change, tell};
use crate::error::CommandError;
use crate::exit::Exit;

/// Open a gate of a context permanently: jobs that wait for the gate may run
///
/// A gate is a word in `prerequisites` of a job that is not a key. Requires --context.
#[derive(Debug, clap::Args)]
pub(crate) struct Approve {
    /// Name of the gate
    #[arg(value_name = "GATE")]
    gate: String,
}

impl Approve {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        if context.entered_client().is_none() {
            return Err(CommandError::usage(
                "gates exist in contexts only: name one with --context",
            ));
        }
        context.record_in_audit("open gate", &self.gate).await?;
        let opened = context.client().await?.open_gate(&self.gate).await;
        let opened = opened.map(|opened| Change::Done(if opened { "opened" } else { "open" }));
        tell(&mut context.out, &self.gate, opened)
    }
}
