//! Jobs of one state that match filters, and the walk over them: in steps, from the lists of the store.

use std::collections::BTreeSet;

use meshwork::{JobFilter, JobState};
use meshwork_model::job::FailureGroup;
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::state::State;
use meshwork_model::time;
use serde_json::json;

use super::caller::Caller;
use super::reads;
use super::views::{JobPage, JobRow, queue_name};
use crate::api::{ApiError, READ_JOBS};

/// States with their names, and the times that order their lists.
pub(super) const STATES: [(&str, &str, &str); 5] = [
    ("queued", "Queued", ""),
    ("running", "Running", "Lease ends"),
    ("delayed", "Delayed", "Due"),
    ("ended", "Ended", "Ended"),
    ("dead", "Dead letters", "Died"),
];

/// Filters with their labels.
pub(super) const FILTERS: [(&str, &str); 10] = [
    ("type", "Type"),
    ("group", "Group"),
    ("tag", "Tag"),
    ("key", "Key"),
    ("batch", "Batch"),
    ("since", "Created since"),
    ("until", "Created before"),
    ("reason", "Reason"),
    ("error", "Error has"),
    ("fingerprint", "Failures like"),
];

/// Jobs of one state that match filters.
#[derive(Debug, Clone)]
pub(super) struct Selection {
    pub(super) state: &'static str,
    pub(super) queue: Option<String>,
    filters: Vec<(&'static str, String)>,
}

impl Selection {
    /// Reads the selection of an address; without a state, that of the page.
    pub(super) fn of(caller: &Caller, state: &str) -> Result<Self, ApiError> {
        let given = caller.query("state").unwrap_or(state);
        let known = STATES.iter().find(|(state, ..)| *state == given);
        let Some((state, ..)) = known else {
            let names = STATES.map(|(state, ..)| state).join(", ");
            let message = format!("state: {given:?} is none of {names}");
            return Err(ApiError::invalid(message));
        };
        let filters = FILTERS.iter();
        let filters = filters.filter_map(|(name, _)| Some((*name, caller.query(name)?.to_owned())));
        let filters: Vec<_> = filters.collect();
        for (name, text) in &filters {
            if matches!(*name, "since" | "until") && time_of(text).is_none() {
                let message =
                    format!("{name}: {text:?} is no time: write 2026-01-31T12:00, in UTC");
                return Err(ApiError::invalid(message));
            }
        }
        Ok(Self {
            state,
            queue: caller.query("queue").map(str::to_owned),
            filters,
        })
    }

    /// All jobs of a state.
    pub(super) fn of_state(state: &'static str) -> Self {
        Self {
            state,
            queue: None,
            filters: Vec::new(),
        }
    }

    /// The dead letters of a group.
    pub(super) fn of_group(fingerprint: &str) -> Self {
        Self {
            filters: vec![("fingerprint", fingerprint.to_owned())],
            ..Self::of_state("dead")
        }
    }

    /// Parameters of an address with this selection.
    pub(super) fn params(&self) -> Vec<(&str, &str)> {
        let queue = self.queue.as_deref().map(|queue| ("queue", queue));
        let filters = self
            .filters
            .iter()
            .map(|(name, text)| (*name, text.as_str()));
        [("state", self.state)]
            .into_iter()
            .chain(queue)
            .chain(filters)
            .collect()
    }

    pub(super) fn has_filters(&self) -> bool {
        !self.filters.is_empty()
    }

    /// Label of the state, and time that orders its list.
    pub(super) fn labels(&self) -> (&'static str, &'static str) {
        let known = STATES.iter().find(|(state, ..)| *state == self.state);
        known.map_or(("", ""), |(_, name, order)| (name, order))
    }

    /// Name of the selection, to be typed before its jobs are deleted: of its queue, or else of its state.
    pub(super) fn name(&self, caller: &Caller) -> String {
        let queue = self.queue.as_deref();
        queue
            .map_or(self.state, |queue| queue_name(caller, queue))
            .to_owned()
    }

    pub(super) fn is_match(&self, job: &JobRow) -> bool {
        self.filters
            .iter()
            .all(|(name, text)| is_match(job, name, text))
    }

    /// Methods that change jobs of this state, with the labels of their buttons.
    pub(super) fn changes(&self, is_in_context: bool) -> &'static [(&'static str, &'static str)] {
        match (self.state, is_in_context) {
            ("queued", _) => &[("job.cancel", "Cancel"), ("job.delete", "Delete")],
            ("running", _) => &[("job.cancel", "Cancel")],
            ("delayed", _) => &[
                ("job.run_now", "Run"),
                ("job.cancel", "Cancel"),
                ("job.delete", "Delete"),
            ],
            ("dead", false) => &[("dead.retry", "Retry"), ("dead.delete", "Delete")],
            _ => &[("job.retry", "Retry"), ("job.delete", "Delete")],
        }
    }
}

fn is_match(job: &JobRow, name: &str, text: &str) -> bool {
    let is = |given: &Option<String>| given.as_deref() == Some(text);
    match name {
        "type" => is(&job.script_type),
        "group" => is(&job.group),
        "key" => is(&job.key),
        "batch" => is(&job.batch),
        "since" => time_of(&job.created_at) >= time_of(text),
        "until" => time_of(&job.created_at).is_some_and(|at| Some(at) < time_of(text)),
        "reason" => is(&job.dead),
        "tag" => job.tags.iter().any(|tag| tag == text),
        "fingerprint" => {
            let (dead, error) = (job.dead.as_deref(), job.error.as_deref());
            FailureGroup::new(job.script_type.as_deref(), dead, error).fingerprint() == text
        }
        _ => job.error.as_ref().is_some_and(|error| error.contains(text)),
    }
}

/// Reads a time, also one as the field of a form writes it: to the minute, in UTC.
fn time_of(text: &str) -> Option<u64> {
    time::parse_iso(text)
        .or_else(|| time::parse_iso(&format!("{text}:00Z")))
        .or_else(|| time::parse_iso(&format!("{text}Z")))
}

/// State of the jobs that wait for other jobs. They are in no list: a walk over them reads all records.
pub(super) const WAITING: &str = "waiting";

/// Records that a page of all jobs reads, about.
const SCANNED: usize = 500;

/// Jobs of a step of a walk.
pub(super) struct Step {
    pub(super) jobs: Vec<JobRow>,
    /// Number of records that were read for them.
    pub(super) read: usize,
}

/// A walk over the jobs of a state.
#[derive(Debug)]
pub(super) struct Walk {
    state: &'static str,
    /// Queues whose lists follow; `None` for the list of all queues.
    queues: Vec<Option<String>>,
    cursor: Option<String>,
}

impl Walk {
    /// Begins. Jobs of all queues are those of the queues that the last scan found.
    pub(super) async fn begin(caller: &Caller, of: &Selection) -> Result<Self, ApiError> {
        let queues = match (of.state, &of.queue) {
            ("queued", None) => {
                let list = caller.queues().await?;
                let names = list
                    .queues
                    .iter()
                    .map(|it| JobKeys::without_priority(&it.queue));
                let names: BTreeSet<_> = names.collect();
                names
                    .into_iter()
                    .rev()
                    .map(|name| Some(name.to_owned()))
                    .collect()
            }
            (_, queue) => vec![queue.clone()],
        };
        Ok(Self {
            state: of.state,
            queues,
            cursor: None,
        })
    }

    /// Returns the next jobs, at most `limit` where a list has them; `None` after the last ones.
    pub(super) async fn next(
        &mut self,
        caller: &Caller,
        limit: usize,
    ) -> Result<Option<Step>, ApiError> {
        let Some(queue) = self.queues.last() else {
            return Ok(None);
        };
        if self.state == WAITING {
            return self.next_waiting(caller).await.map(Some);
        }
        let mut params = json!({"state": self.state, "limit": limit});
        for (name, text) in [("queue", queue), ("cursor", &self.cursor)] {
            if let Some(text) = text {
                params[name] = text.as_str().into();
            }
        }
        if let Some(context) = caller.context {
            params["context"] = context.into();
        }
        let page: JobPage = reads::fresh(caller.call(), "job.list", params).await?;
        self.cursor = page.next;
        if self.cursor.is_none() {
            self.queues.pop();
        }
        let read = page.jobs.len();
        Ok(Some(Step {
            jobs: page.jobs,
            read,
        }))
    }

    /// Reads one page of all records.
    async fn next_waiting(&mut self, caller: &Caller) -> Result<Step, ApiError> {
        let call = caller.call().enter(caller.context, READ_JOBS).await?;
        let filter = JobFilter {
            status: Some(JobState::Is(State::Waiting)),
            ..JobFilter::default()
        };
        let from = self.cursor.as_deref().and_then(|it| it.parse().ok());
        let page = call.client.find(&filter, from.unwrap_or(0)).await?;
        self.cursor = (page.next != 0).then(|| page.next.to_string());
        if self.cursor.is_none() {
            self.queues.pop();
        }
        let rows = page.jobs.iter().map(JobRow::of);
        Ok(Step {
            jobs: rows.collect::<Result<_, _>>()?,
            read: SCANNED,
        })
    }
}
