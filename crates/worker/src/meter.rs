//! Counters of a worker: latency and duration of jobs, last contact with the server, errors of the connection. Counting
//! is cheap and never waits for I/O; `metrics` exports the values.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use meshwork_model::keys::hero::QueueParts;
use meshwork_model::outcome::{FailureKind, Report};
use meshwork_model::sandbox::Usage;
use prometheus_client::metrics::histogram::Histogram;
use tokio::time::Instant;

/// Upper bounds of the latency histogram, in seconds: an idle worker starts a job within 2 ms; beyond an hour,
/// differences do not matter.
const LATENCY: [f64; 15] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 3600.0,
];
/// Upper bounds of the duration histogram, in seconds: from an empty handler to a whole night.
const RUN: [f64; 15] = [
    0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 1800.0, 7200.0, 28800.0,
];
/// Upper bounds of the memory histogram, in bytes: from a small program to a whole host.
const MEMORY: [f64; 12] = [
    4_194_304.0,
    16_777_216.0,
    33_554_432.0,
    67_108_864.0,
    134_217_728.0,
    268_435_456.0,
    536_870_912.0,
    1_073_741_824.0,
    2_147_483_648.0,
    4_294_967_296.0,
    17_179_869_184.0,
    68_719_476_736.0,
];
/// Greatest number of queues and types with counters of their own. A worker has far fewer, but a foreign record can
/// name any type.
const MOST_PLACES: usize = 1000;

/// Outcome label of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// It finished.
    Finished,
    /// It failed.
    Failed,
    /// Its time was over.
    Timeout,
    /// It reached a limit of its sandbox.
    Limit,
    /// It failed for good: no retry follows.
    Permanent,
    /// It was cancelled.
    Stopped,
    /// It runs again later, as its handler decided.
    Snoozed,
    /// It could not start.
    NotStarted,
    /// Its lease was lost.
    Lost,
}

impl Outcome {
    /// Returns the outcome of a run. A run without a report was lost.
    fn of(report: Option<&Report>) -> Self {
        match report.map(|report| &report.result) {
            None => Self::Lost,
            Some(Ok(_)) => Self::Finished,
            Some(Err(failure)) => failure.kind.into(),
        }
    }

    /// Returns the value of the label `outcome`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Timeout => "timeout",
            Self::Limit => "limit",
            Self::Permanent => "permanent",
            Self::Stopped => "cancelled",
            Self::Snoozed => "snoozed",
            Self::NotStarted => "not_started",
            Self::Lost => "lost",
        }
    }
}

impl From<FailureKind> for Outcome {
    fn from(kind: FailureKind) -> Self {
        match kind {
            FailureKind::Script => Self::Failed,
            FailureKind::Timeout => Self::Timeout,
            FailureKind::Limit => Self::Limit,
            FailureKind::Permanent => Self::Permanent,
            FailureKind::Stopped | FailureKind::Discarded => Self::Stopped,
            FailureKind::Snoozed => Self::Snoozed,
            FailureKind::NotStarted => Self::NotStarted,
        }
    }
}

/// Parts of a queue's name, for labels.
pub(crate) type PlaceKey = Arc<QueueParts>;
/// A job type and the outcome of a run.
pub(crate) type RunKey = (String, Outcome);

/// Resources of all runs of one job type.
#[derive(Debug, Clone)]
pub struct Used {
    /// Processor time in user mode, in milliseconds.
    pub user_ms: u64,
    /// Processor time in the kernel, in milliseconds.
    pub system_ms: u64,
    /// Bytes written.
    pub written: u64,
    /// Greatest memory of each run, in bytes.
    pub peak_memory: Histogram,
}

/// Counters of one worker.
#[derive(Debug)]
pub struct Meter {
    slots: usize,
    began: Instant,
    /// Latencies, by the queue's name as the protocol gives it.
    waited: RwLock<BTreeMap<String, (PlaceKey, Histogram)>>,
    ran: RwLock<BTreeMap<RunKey, Histogram>>,
    used: Mutex<BTreeMap<String, Used>>,
    said: Mutex<Said>,
}

/// Values that change rarely.
#[derive(Debug, Clone, Default)]
struct Said {
    contact: Option<Instant>,
    claim: Option<Instant>,
    errors: BTreeMap<&'static str, u64>,
    lost: u64,
}

impl Meter {
    pub(crate) fn new(slots: usize) -> Self {
        Self {
            slots,
            began: Instant::now(),
            waited: RwLock::default(),
            ran: RwLock::default(),
            used: Mutex::default(),
            said: Mutex::default(),
        }
    }

    fn said(&self) -> MutexGuard<'_, Said> {
        // No code that can panic runs under the lock.
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records an answer of the server.
    pub(crate) fn heard(&self) {
        self.said().contact = Some(Instant::now());
    }

    /// Records a claim that returned this many jobs.
    pub(crate) fn took(&self, jobs: usize) {
        let now = Instant::now();
        let mut said = self.said();
        said.contact = Some(now);
        if jobs > 0 {
            said.claim = Some(now);
        }
    }

    /// Records the latency of a claimed job. `place` returns the labels of its queue.
    pub(crate) fn waited(&self, queue: &str, seconds: f64, place: impl FnOnce(&str) -> QueueParts) {
        let places = self.waited.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, histogram)) = places.get(queue) {
            histogram.observe(seconds);
            return;
        }
        drop(places);
        let mut places = self.waited.write().unwrap_or_else(PoisonError::into_inner);
        if places.len() < MOST_PLACES {
            let place = place(queue);
            // `:prio:1` and no suffix are two lists with the same labels.
            let same = places.values().find(|(known, _)| **known == place);
            let new = || (Arc::new(place.clone()), Histogram::new(LATENCY));
            let entry = same.cloned().unwrap_or_else(new);
            entry.1.observe(seconds);
            places.insert(queue.to_owned(), entry);
        }
    }

    /// Records a run of this job type. A run without a report was lost.
    pub(crate) fn ran(&self, kind: &str, took: Duration, report: Option<&Report>) {
        self.ended(kind, took, Outcome::of(report));
    }

    /// Records a run of this job type with its outcome.
    pub(crate) fn ended(&self, kind: &str, took: Duration, outcome: Outcome) {
        let key = (kind.to_owned(), outcome);
        let seconds = took.as_secs_f64();
        let runs = self.ran.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(histogram) = runs.get(&key) {
            histogram.observe(seconds);
            return;
        }
        drop(runs);
        let mut runs = self.ran.write().unwrap_or_else(PoisonError::into_inner);
        if runs.len() < MOST_PLACES {
            let histogram = runs.entry(key).or_insert_with(|| Histogram::new(RUN));
            histogram.observe(seconds);
        }
    }

    /// Records the resources of a run of this job type.
    pub(crate) fn used(&self, kind: &str, usage: &Usage) {
        let mut all = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST_PLACES && !all.contains_key(kind) {
            return;
        }
        let used = all.entry(kind.to_owned()).or_insert_with(|| Used {
            user_ms: 0,
            system_ms: 0,
            written: 0,
            peak_memory: Histogram::new(MEMORY),
        });
        used.user_ms = used.user_ms.saturating_add(usage.user_ms);
        used.system_ms = used.system_ms.saturating_add(usage.system_ms);
        used.written = used.written.saturating_add(usage.written);
        used.peak_memory.observe(usage.peak_memory as f64);
    }

    /// Returns the resources of all runs, by job type.
    pub fn usage(&self) -> BTreeMap<String, Used> {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.clone()
    }

    /// Records a failed call. A permanent refusal is no connection error.
    pub(crate) fn failed(&self, operation: &'static str, error: &meshwork_broker::Error) {
        if error.is_temporary() {
            *self.said().errors.entry(operation).or_default() += 1;
        }
    }

    /// Records jobs that were lost while they ran.
    pub(crate) fn lost(&self, jobs: usize) {
        self.said().lost += jobs as u64;
    }

    /// Returns the concurrency.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Returns the number of lost jobs.
    pub fn lost_jobs(&self) -> u64 {
        self.said().lost
    }

    /// Returns the time since the last answer of the server, or since the start.
    pub fn since_contact(&self) -> Duration {
        self.said().contact.unwrap_or(self.began).elapsed()
    }

    /// Returns the time since a claim last returned a job; `None` before.
    pub fn since_claim(&self) -> Option<Duration> {
        self.said().claim.map(|at| at.elapsed())
    }

    /// Returns the errors of the connection, by operation.
    pub fn errors(&self) -> BTreeMap<&'static str, u64> {
        self.said().errors.clone()
    }

    /// Calls `each` with the latency histogram of each queue.
    pub fn each_wait(
        &self,
        mut each: impl FnMut(&QueueParts, &Histogram) -> std::fmt::Result,
    ) -> std::fmt::Result {
        let places = self.waited.read().unwrap_or_else(PoisonError::into_inner);
        let mut seen = std::collections::BTreeSet::new();
        for (place, histogram) in places.values() {
            if seen.insert(Arc::clone(place)) {
                each(place, histogram)?;
            }
        }
        Ok(())
    }

    /// Calls `each` with the duration histogram of each type and outcome.
    pub fn each_run(
        &self,
        mut each: impl FnMut(&str, Outcome, &Histogram) -> std::fmt::Result,
    ) -> std::fmt::Result {
        let runs = self.ran.read().unwrap_or_else(PoisonError::into_inner);
        for ((script_type, outcome), histogram) in runs.iter() {
            each(script_type, *outcome, histogram)?;
        }
        Ok(())
    }
}
