//! Queues as JSON.

use std::borrow::Cow;
use std::collections::BTreeMap;

use meshwork_broker::{QueueAlert, QueueInfo};
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::queue::QueueSettings;
use meshwork_model::sandbox::Limit;
use serde::{Deserialize, Serialize};

use super::sandbox::by_name;

/// Queue as JSON: its list, and what applies to it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueueView {
    /// List of the queue.
    pub queue: String,
    /// Number of jobs that wait in it.
    pub waiting: usize,
    /// Number of running jobs from it.
    pub running: usize,
    /// Number of workers that wait on it.
    pub listeners: usize,
    /// Number of its jobs that wait for a slot of their concurrency key.
    pub set_aside: usize,
    /// Greatest number of jobs that may wait in it; null for no limit.
    pub limit: Option<u64>,
    /// True for an old list, which clients of earlier systems use.
    pub legacy: bool,
    /// Settings.
    #[serde(flatten)]
    pub settings: QueueSettingsView,
}

/// Alert of a queue as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueueAlertView {
    /// List of the queue.
    pub queue: String,
    /// Failures in a row after which an alert job is enqueued.
    pub after: u32,
    /// Type of the alert job.
    #[serde(rename = "type")]
    pub script_type: String,
    /// List of the alert job's queue.
    pub target: String,
    /// Failures in a row so far.
    pub failures: u64,
    /// True if the alert job for these failures was enqueued.
    pub alerted: bool,
    /// The job that failed last; null if there is none.
    pub failed_job: Option<String>,
    /// The error of that job.
    pub error: Option<String>,
}

impl From<QueueAlert> for QueueAlertView {
    fn from(alert: QueueAlert) -> Self {
        Self {
            queue: alert.queue,
            after: alert.after,
            script_type: alert.script_type,
            target: alert.target,
            failures: alert.failures,
            alerted: alert.alerted,
            failed_job: alert.failed_job,
            error: alert.error,
        }
    }
}

/// Settings of a queue as JSON. They apply to all priorities together, and are given at the list of normal priority only.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueueSettingsView {
    /// True if no job may be claimed. Running jobs continue.
    pub paused: bool,
    /// True if new jobs are refused.
    pub draining: bool,
    /// Greatest number of jobs that run at once; null for no limit.
    pub concurrency: Option<u64>,
    /// Rate at which jobs start, such as `10/1m`; null for no limit.
    pub rate: Option<String>,
    /// Greatest number of jobs of one key that run at once; null for no limit.
    pub key_concurrency: Option<u64>,
    /// Rate at which jobs of one key start; null for no limit.
    pub key_rate: Option<String>,
    /// Greatest size of a job in bytes; null for no limit.
    pub payload: Option<u64>,
    /// Failures in a row after which an alert job is enqueued; null for no alert.
    #[serde(default)]
    pub alert_after: Option<u64>,
    /// Profile of the sandbox; null for that of the worker.
    pub sandbox: Option<Cow<'static, str>>,
    /// Limits of runs, by resource: sizes in bytes, `cpu` in milliseconds.
    pub run_limits: BTreeMap<Cow<'static, str>, u64>,
    /// True if keys take turns.
    pub fair: bool,
    /// Weights of keys in a fair queue.
    pub weights: BTreeMap<String, u64>,
}

impl QueueSettingsView {
    /// Returns the settings of `list`; none are given at a list of another priority than normal.
    #[must_use]
    pub fn new(list: &str, set: Option<&QueueSettings>) -> Self {
        let Some(set) = set.filter(|_| JobKeys::without_priority(list) == list) else {
            return Self::default();
        };
        Self {
            paused: set.paused,
            draining: set.draining,
            concurrency: set.concurrency,
            rate: set.rate.map(|rate| rate.to_string()),
            key_concurrency: set.key_concurrency,
            key_rate: set.key_rate.map(|rate| rate.to_string()),
            payload: set.payload,
            alert_after: set.alert_after,
            sandbox: set.sandbox.profile.map(|it| it.as_str().into()),
            run_limits: by_name(&set.sandbox.limits),
            fair: set.fair,
            weights: set.weights.clone(),
        }
    }
}

impl From<&QueueSettingsView> for QueueSettings {
    /// Returns the settings of a view; without values that cannot be read, as those of a later release.
    fn from(view: &QueueSettingsView) -> Self {
        let rate = |text: &Option<String>| text.as_deref().and_then(|it| it.parse().ok());
        let mut set = Self::default();
        (set.paused, set.draining, set.fair) = (view.paused, view.draining, view.fair);
        set.concurrency = view.concurrency;
        set.key_concurrency = view.key_concurrency;
        (set.rate, set.key_rate) = (rate(&view.rate), rate(&view.key_rate));
        (set.payload, set.alert_after) = (view.payload, view.alert_after);
        set.sandbox.profile = view.sandbox.as_deref().and_then(|it| it.parse().ok());
        for limit in Limit::ALL {
            let value = view.run_limits.get(limit.as_str()).copied();
            set.sandbox.limits.set(limit, value);
        }
        set.weights.clone_from(&view.weights);
        set
    }
}

impl From<&QueueInfo> for QueueView {
    fn from(info: &QueueInfo) -> Self {
        Self {
            queue: info.queue.clone(),
            waiting: info.waiting,
            running: info.running,
            listeners: info.listeners,
            set_aside: info.set_aside,
            limit: info.limit,
            legacy: info.legacy,
            settings: QueueSettingsView::new(&info.queue, info.settings.as_ref()),
        }
    }
}
