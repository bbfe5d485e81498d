//! Which jobs are meant, where many are.

use meshwork::model::keys::hero::Hero;
use meshwork::model::name::{Group, ScriptType};
use meshwork::model::state::Status;
use meshwork::{Client, JobFilter};

use crate::error::CommandError;
use crate::value::{self, Moment};

/// Options that choose.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Which")]
pub(super) struct Select {
    /// Only those of this type
    #[arg(long = "type", value_name = "TYPE")]
    script_type: Option<ScriptType>,
    /// Only those that were sent to this group
    #[arg(long)]
    group: Option<Group>,
    /// Only those of this queue, as `queue list` shows it; that of a priority is another one
    #[arg(long)]
    queue: Option<String>,
    /// Only those of this status: dispatched, waiting_for_prerequisites or started
    #[arg(long)]
    status: Option<Status>,
    /// Only those of this key
    #[arg(long)]
    key: Option<String>,
    /// Only those created before: an age (90s, 15m, 2h, 7d) or a time in UTC
    #[arg(long, value_name = "WHEN", value_parser = value::moment, allow_hyphen_values = true)]
    older_than: Option<Moment>,
}

/// The names of all its options, for rules about them.
pub(super) const OPTIONS: [&str; 6] = [
    "script_type",
    "group",
    "queue",
    "status",
    "key",
    "older_than",
];

impl Select {
    /// As the library knows it, but for the time.
    pub(super) fn filter(&self, keys: &Hero) -> Result<JobFilter, CommandError> {
        let queue = self.queue.as_deref();
        let queue = queue.map(|text| keys.parse_work_queue(text)).transpose()?;
        Ok(JobFilter {
            script_type: self.script_type.clone(),
            group: self.group.clone(),
            queue,
            status: self.status,
            key: self.key.clone(),
            until_ms: None,
        })
    }

    /// With a bound in time, by the server's clock: what comes from now on was never meant.
    pub(super) async fn bounded(
        &self,
        filter: JobFilter,
        client: &Client,
    ) -> Result<JobFilter, CommandError> {
        let now = client.broker().now().await?;
        let until = self.older_than.map_or(now + 1, |moment| moment.ms(now));
        Ok(JobFilter {
            until_ms: Some(until),
            ..filter
        })
    }
}
