//! `meshwork job set`.

use std::time::Duration;

use meshwork::{JobChange, SetJob};
use meshwork_model::name::JobId;
use meshwork_model::route::Priority;

use crate::app::App;
use crate::args::parsers;
use crate::change::{Change, change};
use crate::error::CommandError;
use crate::exit::Exit;

/// Change the priority, the delay or the timeout of jobs that wait
///
/// A job whose priority or delay changes goes to the end of its queue. A job that runs keeps its values.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("values").required(true).multiple(true)
    .args(["priority", "delay", "timeout"]))]
pub(crate) struct Set {
    /// Ids of the jobs
    #[arg(required = true, value_name = "ID", value_parser = parsers::job_id)]
    pub(super) ids: Vec<JobId>,
    /// Priority: high, normal or low, or 0, 1 or 2
    #[arg(long, value_name = "LEVEL")]
    priority: Option<Priority>,
    /// Run after this time from now, also in place of a retry's time; 0: at once
    #[arg(long, value_name = "DURATION", value_parser = parsers::delay, allow_hyphen_values = true)]
    delay: Option<Duration>,
    /// Longest time of one attempt, in whole seconds, up to 7 days
    #[arg(long, value_name = "DURATION", value_parser = parsers::job_timeout, allow_hyphen_values = true)]
    timeout: Option<Duration>,
}

impl Set {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let values = JobChange {
            priority: self.priority,
            delay: self.delay,
            timeout: self.timeout,
        };
        change(context, &self.ids, async |client, id| {
            Ok(match client.set_job(id, &values).await? {
                SetJob::Set => Change::Done("set"),
                SetJob::Taken => Change::Refused("taken", "is about to run: a worker has taken it"),
                SetJob::Long => Change::Refused(
                    "long",
                    "is in a queue of more than 10,000 jobs, which is not searched: cancel it, and enqueue another one",
                ),
                SetJob::Running => Change::Refused("running", "runs already"),
                SetJob::Ended => {
                    Change::Refused("ended", "has ended: `job retry` runs it once more")
                }
                SetJob::Missing => Change::Refused("missing", "is gone: enqueue it again"),
            })
        })
        .await
    }
}
