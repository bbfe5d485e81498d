//! Filter options for jobs and dead letters, the same for all bulk commands.

use meshwork::{JobFilter, JobState};
use meshwork_model::job::Tag;
use meshwork_model::name::{BatchId, Group, RoutingKey, ScriptType};
use meshwork_model::outcome::DEAD_REASONS;
use meshwork_model::schedule::wall_time::Direction;
use meshwork_model::state::State;
use meshwork_model::time;
use meshwork_ops::Store;
use serde_json::{Map, Value, json};

use crate::args::moment::{self, Moment, MomentError, ZoneArg};
use crate::error::CommandError;

/// Filter options.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Filter")]
pub(crate) struct Select {
    /// Only jobs of this type
    #[arg(long = "type", value_name = "TYPE")]
    script_type: Option<ScriptType>,
    /// Only jobs of this group
    #[arg(long)]
    group: Option<Group>,
    /// Only jobs of this route; `default`: jobs without a group
    #[arg(long, value_name = "KEY")]
    route: Option<RoutingKey>,
    /// Only jobs of this queue, as `queue list` shows it; the list of a priority is a separate queue
    #[arg(long)]
    queue: Option<String>,
    /// Only jobs in this state: queued, delayed, waiting (for other jobs), running, cancelling, finished, failed or cancelled;
    /// stale: open jobs that no queue lists, or started without a lease longer ago than their timeout
    #[arg(long = "state", visible_alias = "status")]
    status: Option<JobState>,
    /// Only failed jobs: --state failed
    #[arg(long, conflicts_with = "status")]
    failed: bool,
    /// Only jobs of this concurrency key
    #[arg(long)]
    key: Option<String>,
    /// Only jobs with this tag; may be given several times: jobs with all of them
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<Tag>,
    /// Only members of this batch
    #[arg(long, value_name = "BATCH")]
    batch: Option<BatchId>,
    /// Only dead letters of this reason: no retry was left (failed, timeout), no retry could help (permanent), the job
    /// killed its workers (poison), its queue is not a list (queue), or its record cannot be read (unreadable)
    #[arg(long, value_name = "WORD", value_parser = DEAD_REASONS)]
    reason: Option<String>,
    /// Only jobs whose error contains this text
    #[arg(long, value_name = "TEXT", value_parser = text)]
    error: Option<String>,
    /// Only jobs that contain this text in their id, script, input, result or error; reads up to 100,000 whole records
    #[arg(long, value_name = "TEXT", value_parser = text)]
    text: Option<String>,
    /// Only jobs created, or dead letters that died, after this: an age (90s, 15m, 2h, 7d) or a time (yesterday, 'monday
    /// 9:00', 2026-01-31, 2026-01-31T12:00:00Z)
    #[arg(long, visible_alias = "newer-than", value_name = "WHEN", value_parser = moment::past, allow_hyphen_values = true)]
    since: Option<Moment>,
    /// Only jobs created, or dead letters that died, before this: an age or a time
    #[arg(long, visible_alias = "older-than", value_name = "WHEN", value_parser = moment::past, allow_hyphen_values = true)]
    until: Option<Moment>,
    #[command(flatten)]
    zone: ZoneArg,
}

/// Names of all filter options, for clap's rules about them.
pub(crate) const OPTIONS: [&str; 14] = [
    "script_type",
    "group",
    "route",
    "queue",
    "status",
    "failed",
    "key",
    "tags",
    "batch",
    "reason",
    "error",
    "text",
    "since",
    "until",
];

/// Parses a search text.
fn text(text: &str) -> Result<String, String> {
    match text {
        "" => Err("it is empty: give a text to look for".to_owned()),
        _ => Ok(text.to_owned()),
    }
}

impl Select {
    /// Returns the name of the queue.
    pub(crate) fn queue(&self) -> Option<&str> {
        self.queue.as_deref()
    }

    /// Returns true if a state is chosen.
    pub(crate) fn has_status(&self) -> bool {
        self.status().is_some()
    }

    fn status(&self) -> Option<JobState> {
        self.status
            .or_else(|| self.failed.then_some(JobState::Is(State::Failed)))
    }

    /// Returns the filter as parameters of the API, with its times by the clock of this host. Of several tags it has the first
    /// one; [`Self::has_tags`] is for all of them.
    pub(crate) fn params(&self) -> Result<Map<String, Value>, CommandError> {
        let (now, zone) = (
            meshwork::host_ms(),
            self.zone.zone(&[self.since, self.until])?,
        );
        let at = |what: &str, moment: Option<Moment>| {
            let read = moment.map(|moment| moment.meant(what, now, &zone, Direction::Last));
            Ok::<_, MomentError>(read.transpose()?.map(time::iso))
        };
        let state = self.status().map(|state| match state {
            JobState::Is(state) => state.as_str(),
            JobState::Recorded(status) => status.as_str(),
            JobState::Stale => "stale",
        });
        let fields = json!({
            "type": self.script_type.as_ref().map(ScriptType::as_str),
            "group": self.group.as_ref().map(ToString::to_string),
            "route": self.route.as_ref().map(ToString::to_string),
            "queue": self.queue,
            "status": state,
            "key": self.key,
            "tag": self.tags.first().map(Tag::as_str),
            "batch": self.batch.as_ref().map(ToString::to_string),
            "reason": self.reason,
            "error": self.error,
            "text": self.text,
            "since": at("since", self.since)?,
            "until": at("until", self.until)?,
        });
        let Value::Object(fields) = fields else {
            return Ok(Map::new());
        };
        // Dead letters have no state.
        let given = fields.into_iter().filter(|(_, value)| !value.is_null());
        Ok(given.collect())
    }

    /// Returns true if these are all tags that are chosen.
    pub(crate) fn has_tags(&self, tags: &[String]) -> bool {
        let mut chosen = self.tags.iter();
        chosen.all(|tag| tags.iter().any(|it| it == tag.as_str()))
    }

    /// Returns the filter in a store, with its times by the server's clock. With `bounded`, jobs created from now on are
    /// excluded.
    pub(crate) async fn filter(
        &self,
        store: &Store,
        bounded: bool,
    ) -> Result<JobFilter, CommandError> {
        let queue = self.queue.as_deref().map(|name| store.queue(name));
        let queue = queue.transpose()?;
        let filter = JobFilter {
            script_type: self.script_type.clone(),
            group: self.group.clone(),
            route: self.route.clone(),
            queue,
            status: self.status(),
            key: self.key.clone(),
            tags: self.tags.clone(),
            batch: self.batch.clone(),
            parent: None,
            reason: self.reason.clone(),
            error_contains: self.error.clone(),
            text: self.text.clone(),
            since_ms: None,
            until_ms: None,
        };
        let now = match (bounded, self.since, self.until) {
            (false, None, None) => return Ok(filter),
            _ => store.client.broker().now().await?,
        };
        let zone = self.zone.zone(&[self.since, self.until])?;
        let ms = |what: &str, moment: Option<Moment>| {
            let read = moment.map(|moment| moment.meant(what, now, &zone, Direction::Last));
            read.transpose()
        };
        let (since, until) = (ms("since", self.since)?, ms("until", self.until)?);
        Ok(JobFilter {
            since_ms: since,
            until_ms: until.or(bounded.then_some(now + 1)),
            ..filter
        })
    }
}
