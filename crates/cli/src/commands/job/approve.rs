//! `meshwork job approve`.

use serde::Deserialize;
use serde_json::json;

use crate::app::App;
use crate::change::{Change, tell};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::scope::Params;

/// Open a gate of a context permanently: jobs that wait for the gate may run
///
/// A gate is a word in `prerequisites` of a job that is not a key. Requires --context.
#[derive(Debug, clap::Args)]
pub(crate) struct Approve {
    /// Name of the gate
    #[arg(value_name = "GATE")]
    gate: String,
}

/// Answer to an opened gate.
#[derive(Deserialize)]
struct Opened {
    result: String,
}

impl Approve {
    pub(super) async fn by_api(self, app: &mut App, params: Params) -> Result<Exit, CommandError> {
        if !params.is_placed() {
            return Err(no_context());
        }
        let params = params.with(json!({"gate": self.gate}));
        let Opened { result } = app.call("job.approve", &params).await?;
        tell_outcome(app, &self.gate, result == "opened")
    }

    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        if context.entered_client().is_none() {
            return Err(no_context());
        }
        context.record_in_audit("open gate", &self.gate).await?;
        let opened = context.client().await?.open_gate(&self.gate).await?;
        tell_outcome(context, &self.gate, opened)
    }
}

fn no_context() -> CommandError {
    CommandError::usage("gates exist in contexts only: name one with --context")
}

fn tell_outcome(context: &mut App, gate: &str, opened: bool) -> Result<Exit, CommandError> {
    let change = Change::Done(if opened { "opened" } else { "open" });
    tell(&mut context.out, gate, Ok(change))
}
