//! Jobs as JSON.

use std::borrow::Cow;
use std::collections::BTreeMap;

use meshwork_model::job::{FailedAttempt, Job};
use meshwork_model::route::Priority;
use meshwork_model::state::{State, Status};
use meshwork_model::time;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::sandbox::RunUsageView;
use super::value_of;

/// Job as JSON. Secrets of its environment are masked, except in the result.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobView<'a> {
    /// Id of the job.
    pub id: Cow<'a, str>,
    /// Status of the record: `dispatched`, `waiting_for_prerequisites`, `started`, `finished` or `error`. A status of another client is given as it is.
    pub status: Cow<'a, str>,
    /// State: `queued`, `delayed`, `waiting` (for other jobs), `running`, `cancelling`, `finished`, `failed` or `cancelled`; for a status of another client, that status.
    pub state: Cow<'a, str>,
    /// Result: the value if it is JSON, else a text. Null while there is none.
    #[cfg_attr(feature = "schema", schemars(with = "serde_json::Value"))]
    pub output: Option<Box<RawValue>>,
    /// Reason of the failure. Secrets of the environment are masked.
    pub error: Option<Cow<'a, str>>,
    /// Position of the error in the script.
    pub traceback: Option<Cow<'a, str>>,
    /// Last part of the last run's stdout.
    pub stdout: String,
    /// Last part of the last run's stderr.
    pub stderr: String,
    /// The last 10 attempts that failed or were lost, the oldest first.
    pub failed_attempts: Vec<FailedAttemptView<'a>>,
    /// Environment of the script, with masked secrets.
    pub env: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
    /// Sandbox that the job asks for.
    pub requested_sandbox: Option<Cow<'a, str>>,
    /// Sandbox and resources of the last run that started processes.
    pub usage: Option<RunUsageView>,
    /// Trace of the job (W3C trace context).
    pub traceparent: Option<String>,
    /// Routing and history.
    #[serde(flatten)]
    pub about: JobAbout<'a>,
}

/// Attempt of a job that failed or was lost.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "FailedAttempt")
)]
pub struct FailedAttemptView<'a> {
    /// Its number, from 1. A lost attempt does not count: the next one has the same number.
    pub number: Option<u32>,
    /// Start (RFC 3339).
    pub started_at: Option<String>,
    /// End (RFC 3339).
    pub ended_at: String,
    /// Worker that ran it.
    pub worker: Cow<'a, str>,
    /// `failed`, `cancelled`, or `lost` if the worker went away.
    pub outcome: Cow<'static, str>,
    /// First 500 bytes of the error. Secrets of the environment are masked.
    pub error: Cow<'a, str>,
}

impl<'a> FailedAttemptView<'a> {
    /// Returns the failed attempts of a job.
    #[must_use]
    pub fn all(job: &'a Job) -> Vec<Self> {
        let secrets = job.env_vars.secrets();
        let view = |it: &'a FailedAttempt| Self {
            number: it.number,
            started_at: it.started_ms.map(time::iso),
            ended_at: time::iso(it.ended_ms),
            worker: Cow::from(&it.worker),
            outcome: it.outcome.as_str().into(),
            error: secrets.mask(&it.error),
        };
        job.failed_attempts.iter().map(view).collect()
    }
}

/// Job in a list.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobSummary<'a> {
    /// Id of the job.
    pub id: Cow<'a, str>,
    /// Status of the record: `dispatched`, `waiting_for_prerequisites`, `started`, `finished` or `error`. A status of another client is given as it is.
    pub status: Cow<'a, str>,
    /// State: `queued`, `delayed`, `waiting` (for other jobs), `running`, `cancelling`, `finished`, `failed` or `cancelled`; for a status of another client, that status.
    pub state: Cow<'a, str>,
    /// Time of the next run of a delayed job, or of one that waits for a retry (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_run_at: Option<String>,
    /// Reason of the failure. Secrets of the environment are masked.
    pub error: Option<Cow<'a, str>>,
    /// Routing and history.
    #[serde(flatten)]
    pub about: JobAbout<'a>,
}

/// Progress of a job.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "Progress")
)]
pub struct ProgressView<'a> {
    /// The part that is done, from 0 to 1, in steps of 0.01.
    pub fraction: f64,
    /// Text that the job added.
    pub message: Option<Cow<'a, str>>,
}

impl<'a> ProgressView<'a> {
    /// Reads the progress of a record, as `45% half way`; none of another form, as other programs may write it.
    fn read(text: &'a str) -> Option<Self> {
        let (percent, message) = match text.split_once(' ') {
            Some((percent, message)) => (percent, Some(message)),
            None => (text, None),
        };
        let percent: u8 = percent.strip_suffix('%')?.parse().ok()?;
        let fraction = f64::from(percent) / 100.0;
        (percent <= 100).then_some(Self {
            fraction,
            message: message.map(Cow::from),
        })
    }
}

/// Routing and history of a job.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobAbout<'a> {
    /// Type of the script; null where only the queue names it.
    #[serde(rename = "type")]
    pub script_type: Option<Cow<'a, str>>,
    /// Group of workers that the job asks for.
    pub group: Option<Cow<'a, str>>,
    /// Worker that the job asks for.
    pub instance: Option<Cow<'a, str>>,
    /// Id of the caller.
    pub caller: Cow<'a, str>,
    /// Id of the caller's context, as the caller gave it.
    pub caller_context: Cow<'a, str>,
    /// Number of the context that the job is in; null outside contexts.
    pub context: Option<u32>,
    /// Longest time of one run, in seconds.
    pub timeout: u64,
    /// Number of retries: N allow N + 1 runs.
    pub retries: u32,
    /// Number of runs.
    pub attempts: u32,
    /// Number of runs whose worker died.
    pub lost: u32,
    /// Number of times that the job put itself off.
    pub snoozes: u32,
    /// `high`, `normal` or `low`.
    pub priority: Cow<'a, str>,
    /// False if the job runs alone on its worker.
    pub concurrent: bool,
    /// Time before which the job does not run (RFC 3339).
    pub run_at: Option<String>,
    /// Time by which a worker has to begin the job (RFC 3339).
    pub start_by: Option<String>,
    /// Concurrency key.
    pub key: Option<Cow<'a, str>>,
    /// Labels.
    pub tags: Cow<'a, [String]>,
    /// Unique name, with the time or the event until which it holds.
    pub unique: Option<Cow<'a, str>>,
    /// Last progress that the job reported, as a percentage and a text.
    pub progress: Option<Cow<'a, str>>,
    /// The same as a number and a text.
    pub progress_value: Option<ProgressView<'a>>,
    /// Kind of the failure, of a dead letter.
    pub dead: Option<Cow<'a, str>>,
    /// Batch of the job.
    pub batch: Option<Cow<'a, str>>,
    /// Job that enqueued this one.
    pub parent: Option<Cow<'a, str>>,
    /// Number of jobs that this one enqueued.
    pub children: u32,
    /// Worker of the last claim.
    pub worker: Option<Cow<'a, str>>,
    /// Queue of the last claim.
    pub queue: Option<Cow<'a, str>>,
    /// Time of the creation, as in the record.
    pub created_at: Cow<'a, str>,
    /// Start of the last run (RFC 3339).
    pub started_at: Option<String>,
    /// Time of the end.
    pub ended_at: Option<Cow<'a, str>>,
    /// Time of the last change.
    pub updated_at: Cow<'a, str>,
}

impl<'a> JobAbout<'a> {
    /// Returns the routing and history of a job in a context, or outside.
    #[must_use]
    pub fn new(job: &'a Job, context: Option<u32>) -> Self {
        Self {
            script_type: some(&job.script_type),
            group: some(&job.group),
            instance: some(&job.instance),
            caller: Cow::from(&job.caller_id),
            caller_context: Cow::from(&job.context_id),
            context,
            timeout: job.timeout,
            retries: job.retries,
            attempts: job.attempt,
            lost: job.lost,
            snoozes: job.snoozes,
            priority: some(&job.priority).unwrap_or(Priority::Normal.as_str().into()),
            concurrent: job.concurrent,
            run_at: job.run_at_ms.map(time::iso),
            start_by: start_by(job),
            key: some(&job.key),
            tags: Cow::from(&job.tags),
            unique: some(&job.unique),
            progress: some(&job.progress),
            progress_value: job.progress.as_deref().and_then(ProgressView::read),
            dead: some(&job.dead),
            batch: some(&job.batch),
            parent: some(&job.parent),
            children: job.children,
            worker: some(&job.worker),
            queue: some(&job.queue),
            created_at: Cow::from(&job.created_at),
            started_at: job.started_ms.map(time::iso),
            ended_at: ended_at(job).map(Cow::from),
            updated_at: Cow::from(&job.updated_at),
        }
    }
}

impl<'a> JobView<'a> {
    /// Returns a job in a state, in a context or outside.
    #[must_use]
    pub fn new(job: &'a Job, state: Option<State>, context: Option<u32>) -> Self {
        let secrets = job.env_vars.secrets();
        let masked = |text: &'a Option<String>| text.as_deref().map(|text| secrets.mask(text));
        let log = |bytes| String::from_utf8_lossy(&secrets.mask_bytes(bytes)).into_owned();
        Self {
            id: Cow::from(&job.id),
            status: status_of(job).into(),
            state: state_of(job, state).into(),
            output: job.output.as_deref().map(value_of),
            error: masked(&job.error),
            traceback: masked(&job.traceback),
            stdout: log(&job.stdout),
            stderr: log(&job.stderr),
            failed_attempts: FailedAttemptView::all(job),
            env: job
                .env_vars
                .shown()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            requested_sandbox: some(&job.requested_sandbox),
            usage: job.usage.as_ref().map(RunUsageView::from),
            traceparent: job.trace().0.map(|trace| trace.parent()),
            about: JobAbout::new(job, context),
        }
    }
}

impl<'a> JobSummary<'a> {
    /// Returns a job in a state, in a context or outside.
    #[must_use]
    pub fn new(job: &'a Job, state: Option<State>, context: Option<u32>) -> Self {
        Self {
            id: Cow::from(&job.id),
            status: status_of(job).into(),
            state: state_of(job, state).into(),
            next_run_at: None,
            error: job
                .error
                .as_deref()
                .map(|text| job.env_vars.secrets().mask(text)),
            about: JobAbout::new(job, context),
        }
    }

    /// Adds the time of the next run, in milliseconds since 1970.
    #[must_use]
    pub fn with_next_run(mut self, at_ms: Option<u64>) -> Self {
        self.next_run_at = at_ms.map(time::iso);
        self
    }
}

/// Returns the status as a word. A status of another client is printed as it is.
#[must_use]
pub fn status_of(job: &Job) -> &str {
    match job.status() {
        Some(status) => status.as_str(),
        None => &job.status,
    }
}

/// Returns the state as a word; without one, the status of another client.
#[must_use]
pub fn state_of(job: &Job, state: Option<State>) -> &str {
    match state {
        Some(state) => state.as_str(),
        None => &job.status,
    }
}

/// Borrows a text that may be missing.
pub(super) fn some(text: &Option<String>) -> Option<Cow<'_, str>> {
    text.as_deref().map(Cow::from)
}

/// The time by which a worker has to begin a job that waits.
fn start_by(job: &Job) -> Option<String> {
    let open = job.status().is_some_and(|status| !status.is_final());
    job.start_by_ms.filter(|_| open).map(time::iso)
}

/// The time at which a job ended: nothing changes its record after that.
fn ended_at(job: &Job) -> Option<&str> {
    let ended = job.status().is_some_and(Status::is_final);
    Some(job.updated_at.as_str()).filter(|at| ended && !at.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_read_as_it_is_stored() {
        let read =
            |text: &'static str| ProgressView::read(text).map(|it| (it.fraction, it.message));
        assert_eq!(read("45% half way"), Some((0.45, Some("half way".into()))));
        assert_eq!(read("0%"), Some((0.0, None)));
        assert_eq!(read("100% "), Some((1.0, Some("".into()))));
        for text in ["", "half", "101%", "-1%", "4.5%", "NaN%", "%", "45 %"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
