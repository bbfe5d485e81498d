//! `meshwork bananas wait`.

use std::time::Duration;

use meshwork_model::name::JobId;

use super::{Side, of_bananas, print};
use crate::app::App;
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;

/// Wait until a job has ended, and print its result; a failure that will be retried is no end
#[derive(Debug, clap::Args)]
pub(crate) struct Wait {
    #[command(flatten)]
    side: Side,
    /// The job's id
    #[arg(value_parser = parsers::job_id)]
    id: JobId,
    /// Longest wait, in seconds; the job continues after that
    #[arg(long, value_name = "DURATION", value_parser = parsers::wait, default_value = "300")]
    timeout: Duration,
}

impl Wait {
    pub(super) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let client = self.side.client(context).await?;
        let outcome = client.wait(&self.id, self.timeout).await;
        let outcome = outcome.map_err(of_bananas)?;
        print(self.id.as_str(), &outcome, context)
    }
}
