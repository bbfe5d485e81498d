//! Reasons for the state of a job as JSON.

use std::borrow::Cow;

use meshwork_model::job::Job;
use meshwork_model::state::{State, Status};
use serde::{Deserialize, Serialize};

use super::{state_of, status_of};
use crate::WaitReason;

/// Reasons for the state of a job as JSON.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WhyView<'a> {
    /// Id of the job.
    pub id: Cow<'a, str>,
    /// Status of the record: `dispatched`, `waiting_for_prerequisites`, `started`, `finished` or `error`. A status of another client is given as it is.
    pub status: Cow<'a, str>,
    /// State: `queued`, `delayed`, `waiting`, `running`, `cancelling`, `finished`, `failed` or `cancelled`; for another status, the status.
    pub state: Cow<'a, str>,
    /// Reasons for people, at least one. Secrets of the environment are masked.
    pub reasons: Vec<String>,
    /// Reasons of a wait for programs; none for a job that runs or has ended.
    pub waits: Cow<'a, [WaitReason]>,
}

impl<'a> WhyView<'a> {
    /// Describes the reasons of a job. `queue_name` returns the printed name of a queue.
    pub fn new(
        job: &'a Job,
        state: Option<State>,
        waits: &'a [WaitReason],
        queue_name: impl Fn(&str) -> String,
    ) -> Self {
        Self {
            id: Cow::from(&job.id),
            status: status_of(job).into(),
            state: state_of(job, state).into(),
            reasons: reasons(job, waits, queue_name),
            waits: Cow::from(waits),
        }
    }

    /// Gives the cause for which a flow skipped the job, if it did ([`Client::why_skipped`](crate::Client::why_skipped)).
    #[must_use]
    pub fn skipped(mut self, cause: Option<String>) -> Self {
        if let Some(cause) = cause {
            self.reasons = vec![format!("it was skipped: {cause}")];
        }
        self
    }
}

fn reasons(job: &Job, waits: &[WaitReason], queue_name: impl Fn(&str) -> String) -> Vec<String> {
    let masked = |text: &str| job.env_vars.secrets().mask(text).into_owned();
    match job.status() {
        Some(Status::Finished) => return vec!["it ended without an error".to_owned()],
        Some(Status::Error) => return vec![masked(job.error.as_deref().unwrap_or_default())],
        Some(Status::Started) if waits.is_empty() => {
            let worker = job.worker.as_deref().unwrap_or("a worker");
            return vec![format!("{worker} runs it")];
        }
        _ => {}
    }
    if waits.is_empty() {
        return vec!["a worker takes it now".to_owned()];
    }
    let text = |reason: &WaitReason| reason.text(&queue_name);
    waits.iter().map(text).collect()
}
