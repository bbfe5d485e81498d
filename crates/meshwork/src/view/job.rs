//! Jobs as JSON.

use std::borrow::Cow;
use std::collections::BTreeMap;

use meshwork_model::job::{FailedAttempt, Job};
use meshwork_model::route::Priority;
use meshwork_model::state::{State, Status};
use meshwork_model::time;
use serde::Serialize;
use serde_json::value::RawValue;

use super::sandbox::RunUsageView;
use super::value_of;

/// Job as JSON. Secrets of its environment are masked, except in the result.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobView<'a> {
    /// Id of the job.
    pub id: &'a str,
    /// Status of the record: `dispatched`, `waiting_for_prerequisites`, `started`, `finished` or `error`. A status of another client is given as it is.
    pub status: &'a str,
    /// State: `queued`, `delayed`, `waiting` (for other jobs), `running`, `cancelling`, `finished`, `failed` or `cancelled`; for a status of another client, that status.
    pub state: &'a str,
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
    pub env: BTreeMap<&'a str, &'a str>,
    /// Sandbox that the job asks for.
    pub requested_sandbox: Option<&'a str>,
    /// Sandbox and resources of the last run that started processes.
    pub usage: Option<RunUsageView>,
    /// Trace of the job (W3C trace context).
    pub traceparent: Option<String>,
    /// Routing and history.
    #[serde(flatten)]
    pub about: JobAbout<'a>,
}

/// Attempt of a job that failed or was lost.
#[derive(Debug, Serialize)]
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
    pub worker: &'a str,
    /// `failed`, `cancelled`, or `lost` if the worker went away.
    pub outcome: &'static str,
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
            worker: &it.worker,
            outcome: it.outcome.as_str(),
            error: secrets.mask(&it.error),
        };
        job.failed_attempts.iter().map(view).collect()
    }
}

/// Job in a list.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobSummary<'a> {
    /// Id of the job.
    pub id: &'a str,
    /// Status of the record: `dispatched`, `waiting_for_prerequisites`, `started`, `finished` or `error`. A status of another client is given as it is.
    pub status: &'a str,
    /// State: `queued`, `delayed`, `waiting` (for other jobs), `running`, `cancelling`, `finished`, `failed` or `cancelled`; for a status of another client, that status.
    pub state: &'a str,
    /// Reason of the failure. Secrets of the environment are masked.
    pub error: Option<Cow<'a, str>>,
    /// Routing and history.
    #[serde(flatten)]
    pub about: JobAbout<'a>,
}

/// Progress of a job.
#[derive(Debug, PartialEq, Serialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "Progress")
)]
pub struct ProgressView<'a> {
    /// The part that is done, from 0 to 1, in steps of 0.01.
    pub fraction: f64,
    /// Text that the job added.
    pub message: Option<&'a str>,
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
        (percent <= 100).then_some(Self { fraction, message })
    }
}

/// Routing and history of a job.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobAbout<'a> {
    /// Type of the script; null where only the queue names it.
    #[serde(rename = "type")]
    pub script_type: Option<&'a str>,
    /// Group of workers that the job asks for.
    pub group: Option<&'a str>,
    /// Worker that the job asks for.
    pub instance: Option<&'a str>,
    /// Id of the caller.
    pub caller: &'a str,
    /// Id of the caller's context, as the caller gave it.
    pub caller_context: &'a str,
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
    pub priority: &'a str,
    /// False if the job runs alone on its worker.
    pub concurrent: bool,
    /// Time before which the job does not run (RFC 3339).
    pub run_at: Option<String>,
    /// Time by which a worker has to begin the job (RFC 3339).
    pub start_by: Option<String>,
    /// Concurrency key.
    pub key: Option<&'a str>,
    /// Labels.
    pub tags: &'a [String],
    /// Unique name, with the time or the event until which it holds.
    pub unique: Option<&'a str>,
    /// Last progress that the job reported, as a percentage and a text.
    pub progress: Option<&'a str>,
    /// The same as a number and a text.
    pub progress_value: Option<ProgressView<'a>>,
    /// Kind of the failure, of a dead letter.
    pub dead: Option<&'a str>,
    /// Batch of the job.
    pub batch: Option<&'a str>,
    /// Job that enqueued this one.
    pub parent: Option<&'a str>,
    /// Number of jobs that this one enqueued.
    pub children: u32,
    /// Worker of the last claim.
    pub worker: Option<&'a str>,
    /// Queue of the last claim.
    pub queue: Option<&'a str>,
    /// Time of the creation, as in the record.
    pub created_at: &'a str,
    /// Start of the last run (RFC 3339).
    pub started_at: Option<String>,
    /// Time of the end.
    pub ended_at: Option<&'a str>,
    /// Time of the last change.
    pub updated_at: &'a str,
}

impl<'a> JobAbout<'a> {
    /// Returns the routing and history of a job in a context, or outside.
    #[must_use]
    pub fn new(job: &'a Job, context: Option<u32>) -> Self {
        Self {
            script_type: job.script_type.as_deref(),
            group: job.group.as_deref(),
            instance: job.instance.as_deref(),
            caller: &job.caller_id,
            caller_context: &job.context_id,
            context,
            timeout: job.timeout,
            retries: job.retries,
            attempts: job.attempt,
            lost: job.lost,
            snoozes: job.snoozes,
            priority: job.priority.as_deref().unwrap_or(Priority::Normal.as_str()),
            concurrent: job.concurrent,
            run_at: job.run_at_ms.map(time::iso),
            start_by: start_by(job),
            key: job.key.as_deref(),
            tags: &job.tags,
            unique: job.unique.as_deref(),
            progress: job.progress.as_deref(),
            progress_value: job.progress.as_deref().and_then(ProgressView::read),
            dead: job.dead.as_deref(),
            batch: job.batch.as_deref(),
            parent: job.parent.as_deref(),
            children: job.children,
            worker: job.worker.as_deref(),
            queue: job.queue.as_deref(),
            created_at: &job.created_at,
            started_at: job.started_ms.map(time::iso),
            ended_at: ended_at(job),
            updated_at: &job.updated_at,
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
            id: &job.id,
            status: status_of(job),
            state: state_of(job, state),
            output: job.output.as_deref().map(value_of),
            error: masked(&job.error),
            traceback: masked(&job.traceback),
            stdout: log(&job.stdout),
            stderr: log(&job.stderr),
            failed_attempts: FailedAttemptView::all(job),
            env: job.env_vars.shown().collect(),
            requested_sandbox: job.requested_sandbox.as_deref(),
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
            id: &job.id,
            status: status_of(job),
            state: state_of(job, state),
            error: job
                .error
                .as_deref()
                .map(|text| job.env_vars.secrets().mask(text)),
            about: JobAbout::new(job, context),
        }
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
        let read = |text| ProgressView::read(text).map(|it| (it.fraction, it.message));
        assert_eq!(read("45% half way"), Some((0.45, Some("half way"))));
        assert_eq!(read("0%"), Some((0.0, None)));
        assert_eq!(read("100% "), Some((1.0, Some(""))));
        for text in ["", "half", "101%", "-1%", "4.5%", "NaN%", "%", "45 %"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
