//! `meshwork batch cancel`.

use meshwork::view::BatchView;
use meshwork_model::name::BatchId;
use serde::Serialize;
use serde_json::json;

use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;

/// Cancel a batch: its jobs are cancelled, and its callbacks never run
///
/// Waiting jobs end in error; running ones are cancelled by their workers. A script that was queued before, as the one
/// on the first failure, still runs. If this command is interrupted, workers complete the cancellation.
#[derive(Debug, clap::Args)]
pub(crate) struct Cancel {
    /// The batch's id
    #[arg(value_name = "BATCH")]
    batch: BatchId,
    /// `error` of the cancelled jobs
    #[arg(long, value_name = "TEXT", default_value = "stopped")]
    reason: String,
}

#[derive(Debug, Serialize)]
struct Cancelled<'a> {
    id: &'a str,
    result: &'a str,
}

impl Cancel {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let id = self.batch.as_str();
        let cancelled = match context.near().await? {
            Some(client) => {
                let batch = client.batch_of(self.batch.clone());
                batch.cancel(&self.reason).await?
            }
            None => {
                let params = json!({"id": id, "reason": self.reason});
                let batch: BatchView = context.call("batch.cancel", &params).await?;
                batch.cancelled.is_some()
            }
        };
        let result = if cancelled { "cancelled" } else { "ended" };
        if context.out.is_json() {
            context.out.json(&Cancelled { id, result })?;
        } else {
            context.out.line(format_args!("{id}: {result}"))?;
        }
        Ok(if cancelled { Exit::DONE } else { Exit::FAILED })
    }
}
