//! `meshwork batch seal`.

use meshwork::view::BatchView;
use meshwork_model::name::BatchId;
use serde_json::json;

use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;

/// Seal a batch: no jobs can be added, and the batch ends with its last job
///
/// Running jobs of the batch may still add to it. Seal the batch of a dead client with this command.
#[derive(Debug, clap::Args)]
pub(crate) struct Seal {
    /// The batch's id
    #[arg(value_name = "BATCH")]
    batch: BatchId,
}

impl Seal {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let status = match context.near().await? {
            Some(client) => {
                let batch = client.batch_of(self.batch);
                batch.seal().await?;
                BatchView::from(&batch.status().await?)
            }
            None => {
                let params = json!({"id": self.batch.as_str()});
                context.call("batch.seal", &params).await?
            }
        };
        if context.out.is_json() {
            context.out.json(&status)?;
        } else {
            let (id, state) = (&status.id, &status.state);
            context.out.line(format_args!("{id}: {state}"))?;
        }
        Ok(Exit::DONE)
    }
}
