//! `meshwork job result`.

use std::time::Duration;

use meshwork::view::state_of;
use meshwork_model::name::JobId;
use meshwork_model::state::Status;

use crate::app::App;
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::interrupt::wait_for_job;
use crate::single;
use crate::whole_id::whole_id;

/// Print the result of an ended job; the exit code is its outcome
#[derive(Debug, clap::Args)]
pub(crate) struct ResultOf {
    /// The job's id, or its beginning, of at least 4 characters
    #[arg(value_parser = parsers::job_id)]
    pub(super) id: JobId,
    /// Wait until the job has ended, for at most this time [default: 7 days]
    #[arg(long, value_name = "DURATION", value_parser = parsers::wait, num_args = 0..=1, require_equals = true,
          default_missing_value = parsers::LONGEST_WAIT)]
    pub(super) wait: Option<Duration>,
}

impl ResultOf {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let client = context.client().await?;
        let id = whole_id(&client, &self.id).await?;
        let job = match self.wait {
            Some(patience) => wait_for_job(&client, &id, patience).await?,
            None => client.status(&id).await?,
        };
        if job.status().is_some_and(Status::is_final) {
            return single::print_end(&job, &mut context.out);
        }
        let state = client.states(std::slice::from_ref(&job)).await?;
        let state = state_of(&job, state.into_iter().next().flatten());
        Err(not_ended(&job.id, state))
    }
}

/// Returns the error of a job that has no result yet.
pub(super) fn not_ended(id: &str, state: &str) -> CommandError {
    let message = format!("job {id} has no result yet: it is {state}");
    let error = CommandError::new(Exit::NOT_ENDED, message);
    error.with_hint("--wait waits for its end; `meshwork job show` has the reason of its wait")
}
