//! The job of a schedule as JSON.

use std::borrow::Cow;
use std::collections::BTreeMap;

use meshwork_broker::Scheduled;
use meshwork_model::job::{NewJob, Tag, Unique, Until};
use serde::{Deserialize, Serialize};

use super::ScheduleView;

/// Schedule as JSON, with its job.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "ScheduleWithJob")
)]
pub struct ScheduleJobView<'a> {
    /// The schedule.
    #[serde(flatten)]
    pub schedule: ScheduleView,
    /// Its job; null if the schedule cannot be read.
    pub job: Option<ScheduledJobView<'a>>,
}

impl<'a> From<&'a Scheduled> for ScheduleJobView<'a> {
    fn from(there: &'a Scheduled) -> Self {
        let job = there.schedule.as_ref().ok();
        Self {
            schedule: ScheduleView::from(there),
            job: job.map(|schedule| ScheduledJobView::from(schedule.template())),
        }
    }
}

/// Job of a schedule as JSON. Secrets of its environment are masked.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "ScheduledJob")
)]
pub struct ScheduledJobView<'a> {
    /// Group of workers.
    pub group: Option<Cow<'a, str>>,
    /// One worker of the group.
    pub instance: Option<Cow<'a, str>>,
    /// `high`, `normal` or `low`.
    pub priority: Cow<'a, str>,
    /// Text of the script.
    pub script: Cow<'a, str>,
    /// Size of its input, in bytes.
    pub input_bytes: Option<usize>,
    /// Id of the caller.
    pub caller: Cow<'a, str>,
    /// Id of the caller's context, as the caller gave it.
    pub caller_context: Cow<'a, str>,
    /// Longest time of one run, in seconds.
    pub timeout: u64,
    /// Time within which a worker has to begin the job, in milliseconds.
    pub start_timeout_ms: Option<u64>,
    /// Number of retries.
    pub retries: u32,
    /// False if the job runs alone on its worker.
    pub concurrent: bool,
    /// Concurrency key.
    pub key: Option<Cow<'a, str>>,
    /// Labels.
    pub tags: Vec<Cow<'a, str>>,
    /// Unique name.
    pub unique: Option<UniqueView<'a>>,
    /// Environment of the script, with masked secrets.
    pub env: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
    /// Log file on the worker's host.
    pub log_path: Option<Cow<'a, str>>,
}

/// Unique name of jobs as JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "UniqueName")
)]
pub struct UniqueView<'a> {
    /// The name.
    pub name: Cow<'a, str>,
    /// `done`, `started`, or a time as `600000 ms`.
    pub until: String,
    /// Rule for a job whose name is in use: `keep`, `refuse` or `replace`.
    pub on_duplicate: Cow<'a, str>,
}

impl<'a> From<&'a Unique> for UniqueView<'a> {
    fn from(unique: &'a Unique) -> Self {
        Self {
            name: Cow::from(&unique.name),
            until: match unique.until {
                Until::Done => "done".to_owned(),
                Until::Started => "started".to_owned(),
                Until::For(ms) => format!("{ms} ms"),
            },
            on_duplicate: unique.policy.as_str().into(),
        }
    }
}

impl<'a> From<&'a NewJob> for ScheduledJobView<'a> {
    fn from(job: &'a NewJob) -> Self {
        let env = job.env_vars.shown();
        let name = |name: &'a str| Cow::from(name);
        Self {
            group: job.route.group.as_ref().map(|it| name(it.as_ref())),
            instance: job.route.instance.as_ref().map(|it| name(it.as_ref())),
            priority: job.route.priority.as_str().into(),
            script: Cow::from(&job.script),
            input_bytes: job.input.as_ref().map(Vec::len),
            caller: Cow::from(&job.caller_id),
            caller_context: Cow::from(&job.context_id),
            timeout: job.timeout,
            start_timeout_ms: job.start_timeout_ms,
            retries: job.retries,
            concurrent: job.concurrent,
            key: job.key.as_deref().map(name),
            tags: job.tags.iter().map(Tag::as_str).map(name).collect(),
            unique: job.unique.as_ref().map(UniqueView::from),
            env: env
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            log_path: job.log_path.as_deref().map(name),
        }
    }
}
