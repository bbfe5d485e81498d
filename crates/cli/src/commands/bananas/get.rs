//! `meshwork bananas get`.

use meshwork_model::name::JobId;
use serde_json::value::RawValue;

use super::{Side, of_bananas};
use crate::app::App;
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;

/// Print a job's record as it is stored
#[derive(Debug, clap::Args)]
pub(crate) struct Get {
    #[command(flatten)]
    side: Side,
    /// The job's id
    #[arg(value_parser = parsers::job_id)]
    id: JobId,
}

impl Get {
    pub(super) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let client = self.side.client(context).await?;
        let record = client.get(&self.id).await.map_err(of_bananas)?;
        // Unchanged text, to preserve large numbers; it was parsed as JSON before.
        match RawValue::from_string(record.text().to_owned()) {
            Ok(record) if context.out.is_json() => context.out.json(&record)?,
            _ => context.out.line(record.text())?,
        }
        Ok(Exit::DONE)
    }
}
