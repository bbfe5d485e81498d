//! Counters of a worker: waits and runs of jobs, the server's last answer, errors of the connection. Counting is cheap
//! and never waits for I/O; `metrics` exposes the values.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use meshwork_model::keys::hero::QueueParts;
use meshwork_model::outcome::{FailureKind, Report};
use prometheus_client::metrics::histogram::Histogram;
use tokio::time::Instant;

/// The upper bounds of waiting times, in seconds: an idle worker starts a job within a millisecond or two, a
/// queue that is an hour behind is no less behind after a day.
const LATENCY: [f64; 15] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 3600.0,
];
/// The upper bounds of run times, in seconds, from a handler that does nothing to a whole night.
const RUN: [f64; 15] = [
    0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 1800.0, 7200.0, 28800.0,
];
/// The most queues and types that one worker tells apart: it takes from far fewer, but what a record says is
/// anybody's.
const MOST_PLACES: usize = 1000;

/// Outcome label of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    Finished,
    Failed,
    Timeout,
    Permanent,
    Stopped,
    Snoozed,
    Lost,
}

impl Outcome {
    /// None is a run whose report nobody wants any more.
    fn of(report: Option<&Report>) -> Self {
        match report.map(|report| &report.result) {
            None => Self::Lost,
            Some(Ok(_)) => Self::Finished,
            Some(Err(failure)) => failure.kind.into(),
        }
    }

    /// The word in the label `outcome`.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Timeout => "timeout",
            Self::Permanent => "permanent",
            Self::Stopped => "stopped",
            Self::Snoozed => "snoozed",
            Self::Lost => "lost",
        }
    }
}

impl From<FailureKind> for Outcome {
    fn from(kind: FailureKind) -> Self {
        match kind {
            FailureKind::Script => Self::Failed,
            FailureKind::Timeout => Self::Timeout,
            FailureKind::Permanent => Self::Permanent,
            FailureKind::Stopped | FailureKind::Discarded => Self::Stopped,
            FailureKind::Snoozed => Self::Snoozed,
        }
    }
}

/// Queue parts, for labels.
pub(crate) type PlaceKey = Arc<QueueParts>;
/// A type of jobs, and how a run ended.
pub(crate) type RunKey = (String, Outcome);

/// Counters of one worker.
#[derive(Debug)]
pub(crate) struct Meter {
    slots: usize,
    began: Instant,
    /// By the queue's name as it comes.
    waited: RwLock<BTreeMap<String, (PlaceKey, Histogram)>>,
    ran: RwLock<BTreeMap<RunKey, Histogram>>,
    said: Mutex<Said>,
}

/// Values that change seldom.
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
            said: Mutex::default(),
        }
    }

    fn said(&self) -> MutexGuard<'_, Said> {
        // No code that can panic runs under the lock.
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server has answered.
    pub(crate) fn heard(&self) {
        self.said().contact = Some(Instant::now());
    }

    /// A claim came back with so many jobs.
    pub(crate) fn took(&self, jobs: usize) {
        let now = Instant::now();
        let mut said = self.said();
        said.contact = Some(now);
        if jobs > 0 {
            said.claim = Some(now);
        }
    }

    /// A job was claimed from a queue, where it had waited. `place` gives the labels of a queue.
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
            // `:prio:1` and no suffix are two lists of one place.
            let same = places.values().find(|(known, _)| **known == place);
            let new = || (Arc::new(place.clone()), Histogram::new(LATENCY));
            let entry = same.cloned().unwrap_or_else(new);
            entry.1.observe(seconds);
            places.insert(queue.to_owned(), entry);
        }
    }

    /// A run of a job of this kind has ended. Without a report it was lost.
    pub(crate) fn ran(&self, kind: &str, took: Duration, report: Option<&Report>) {
        self.ended(kind, took, Outcome::of(report));
    }

    /// A run of a job of this kind has ended so.
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

    /// A call failed. What the server refuses for good is no error of the connection.
    pub(crate) fn failed(&self, operation: &'static str, error: &meshwork_broker::Error) {
        if error.is_temporary() {
            *self.said().errors.entry(operation).or_default() += 1;
        }
    }

    /// So many jobs were lost to others while they ran here.
    pub(crate) fn lost(&self, jobs: usize) {
        self.said().lost += jobs as u64;
    }

    /// Its concurrency.
    pub(crate) fn slots(&self) -> usize {
        self.slots
    }

    /// Number of jobs whose lease was lost.
    pub(crate) fn lost_jobs(&self) -> u64 {
        self.said().lost
    }

    /// Time since the server's last answer; since the start if there was none.
    pub(crate) fn since_contact(&self) -> Duration {
        self.said().contact.unwrap_or(self.began).elapsed()
    }

    /// Time since a claim last brought a job; none if none has.
    pub(crate) fn since_claim(&self) -> Option<Duration> {
        self.said().claim.map(|at| at.elapsed())
    }

    /// Errors of the connection, by operation.
    pub(crate) fn errors(&self) -> BTreeMap<&'static str, u64> {
        self.said().errors.clone()
    }

    /// Calls `each` with every place and how long jobs waited there, once per place.
    pub(crate) fn each_wait(
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

    /// Calls `each` with every type and outcome, and how long the runs took.
    pub(crate) fn each_run(
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
