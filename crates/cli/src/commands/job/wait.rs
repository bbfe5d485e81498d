//! `meshwork job wait`.

use std::time::Duration;

use meshwork_model::job::limits::MAX_TIMEOUT;
use meshwork_model::name::JobId;

use crate::app::App;
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::interrupt::wait_for_job;
use crate::single;
use crate::whole_id::whole_id;

/// Wait until a job has ended, and print its result
#[derive(Debug, clap::Args)]
pub(crate) struct Wait {
    /// The job's id, or its beginning, of at least 4 characters
    #[arg(value_parser = parsers::job_id)]
    pub(super) id: JobId,
    /// Longest wait, in seconds; the job continues after that [default: 7 days]
    #[arg(long, value_name = "DURATION", value_parser = parsers::wait, allow_hyphen_values = true)]
    pub(super) timeout: Option<Duration>,
}

impl Wait {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let patience = self.timeout.unwrap_or(Duration::from_secs(MAX_TIMEOUT));
        let client = context.client().await?;
        let id = whole_id(&client, &self.id).await?;
        let job = wait_for_job(&client, &id, patience).await?;
        single::print_end(&job, &mut context.out)
    }
}
