//! Dashboard of all queues: rates and averages between two samples of the metrics. [`draw`] makes the table, [`screen`]
//! writes to the terminal.

mod draw;
mod screen;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use meshwork_broker::{QueueStats, Stats};
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::time;
use serde::Serialize;
use serde_json::Value;

pub(crate) use screen::Screen;

/// Number of samples in a trend.
const TREND: usize = 20;

/// The last two samples, and the trends of earlier ones.
#[derive(Debug)]
pub(crate) struct Board {
    keys: JobKeys,
    before: Option<Stats>,
    now: Stats,
    /// By queue: jobs that ended per second, the latest last.
    trends: HashMap<String, VecDeque<f64>>,
    /// Reason for which the last sample failed.
    missed: Option<String>,
}

/// Totals of all queues, and their rows.
#[derive(Debug, Serialize)]
pub(crate) struct Whole<'a> {
    at: String,
    /// Seconds between the two samples; none after the first.
    seconds: Option<f64>,
    running: u64,
    delayed: u64,
    overdue_seconds: Option<f64>,
    dead: u64,
    ended: u64,
    #[serde(flatten)]
    crew: Crew,
    partial: bool,
    queues: Vec<Line<'a>>,
}

/// Totals of the live workers.
#[derive(Debug, Clone, Copy, Default, Serialize)]
struct Crew {
    workers: usize,
    slots: u64,
    slots_busy: u64,
}

/// Row of one queue.
#[derive(Debug, Serialize)]
struct Line<'a> {
    queue: &'a str,
    waiting: u64,
    set_aside: u64,
    oldest_seconds: Option<f64>,
    last_claim_seconds: Option<f64>,
    listeners: u64,
    created: u64,
    started: u64,
    finished: u64,
    failed: u64,
    retried: u64,
    dead: u64,
    lost: u64,
    cancelled: u64,
    created_per_second: Option<f64>,
    finished_per_second: Option<f64>,
    failed_per_second: Option<f64>,
    /// Mean time of the runs that ended between the samples; of all runs if none has.
    mean_run_seconds: Option<f64>,
    errors: &'a BTreeMap<String, u64>,
}

impl Board {
    pub(crate) fn new(keys: JobKeys) -> Self {
        Self {
            keys,
            before: None,
            now: Stats::default(),
            trends: HashMap::new(),
            missed: None,
        }
    }

    /// Adds a sample.
    pub(crate) fn take(&mut self, stats: Stats) {
        self.missed = None;
        if self.now.now_ms > 0 {
            self.before = Some(std::mem::take(&mut self.now));
        }
        self.now = stats;
        if self.before.is_none() {
            return;
        }
        let ends = |line: &Line<'_>| {
            let [finished, failed] = [line.finished_per_second, line.failed_per_second];
            (
                line.queue.to_owned(),
                finished.unwrap_or(0.0) + failed.unwrap_or(0.0),
            )
        };
        let ends: Vec<_> = self.lines().iter().map(ends).collect();
        let mut trends = std::mem::take(&mut self.trends);
        // Trends of deleted queues are removed.
        trends.retain(|queue, _| ends.iter().any(|(known, _)| known == queue));
        for (queue, rate) in ends {
            let trend = trends.entry(queue).or_default();
            trend.push_back(rate);
            while trend.len() > TREND {
                trend.pop_front();
            }
        }
        self.trends = trends;
    }

    /// Records that a sample failed.
    pub(crate) fn miss(&mut self, why: &str) {
        self.missed = Some(why.to_owned());
    }

    /// Seconds between the two samples, by the server's clock.
    fn seconds(&self) -> Option<f64> {
        let ms = self.now.now_ms.checked_sub(self.before.as_ref()?.now_ms)?;
        (ms > 0).then_some(ms as f64 / 1000.0)
    }

    /// Returns the rows of all queues. Of queues that were never used, those of a priority are left out, and the queue of
    /// the group `default`, whose workers listen to the queue of their type too.
    fn lines(&self) -> Vec<Line<'_>> {
        let before = self.before.iter().flat_map(|stats| &stats.queues);
        let before: HashMap<_, _> = before.map(|stats| (stats.queue.as_str(), stats)).collect();
        let used = |stats: &&QueueStats| {
            let beside = stats.queue.contains(":prio:") || stats.queue.ends_with(":group:default");
            stats.is_used() || !beside
        };
        let queues = self.now.queues.iter().filter(used);
        queues
            .map(|stats| self.line(stats, before.get(stats.queue.as_str()).copied()))
            .collect()
    }

    fn line<'a>(&self, stats: &'a QueueStats, before: Option<&QueueStats>) -> Line<'a> {
        let nothing = QueueStats::default();
        // A new queue starts at zero.
        let before = before.unwrap_or(&nothing);
        let seconds = self.seconds();
        let rate = |of: fn(&QueueStats) -> u64| {
            let change = of(stats).saturating_sub(of(before));
            seconds.map(|seconds| change as f64 / seconds)
        };
        Line {
            queue: &stats.queue,
            waiting: stats.waiting,
            set_aside: stats.set_aside,
            oldest_seconds: stats.oldest_ms.map(in_seconds),
            last_claim_seconds: stats
                .claimed_at
                .map(|at| in_seconds(self.now.now_ms.saturating_sub(at))),
            listeners: stats.listeners,
            created: stats.created,
            started: stats.started,
            finished: stats.finished,
            failed: stats.failed,
            retried: stats.retried,
            dead: stats.dead,
            lost: stats.lost,
            cancelled: stats.cancelled(),
            created_per_second: rate(|stats| stats.created),
            finished_per_second: rate(|stats| stats.finished),
            failed_per_second: rate(|stats| stats.failed),
            mean_run_seconds: mean(stats, before).or_else(|| mean(stats, &nothing)),
            errors: &stats.errors,
        }
    }

    /// Counts the workers. A worker of several types counts once.
    fn crew(&self) -> Crew {
        let said = self.now.workers.iter();
        let said = said.filter_map(|(_, said)| serde_json::from_str::<Value>(said).ok());
        let mut seen = HashSet::new();
        let mut crew = Crew::default();
        for worker in said {
            if seen.insert(worker["incarnation"].to_string()) {
                crew.workers += 1;
                crew.slots += worker["slots"].as_u64().unwrap_or(0);
                crew.slots_busy += worker["in_flight"].as_u64().unwrap_or(0);
            }
        }
        crew
    }

    /// Returns the dashboard as JSON.
    pub(crate) fn json(&self) -> Whole<'_> {
        Whole {
            at: time::iso(self.now.now_ms),
            seconds: self.seconds(),
            running: self.now.running,
            delayed: self.now.delayed,
            overdue_seconds: self.now.overdue_ms.map(in_seconds),
            dead: self.now.dead,
            ended: self.now.ended,
            crew: self.crew(),
            partial: self.now.partial,
            queues: self.lines(),
        }
    }
}

fn in_seconds(ms: u64) -> f64 {
    ms as f64 / 1000.0
}

/// Mean time of the runs that ended since `before`.
fn mean(stats: &QueueStats, before: &QueueStats) -> Option<f64> {
    let runs = stats.ended_runs().saturating_sub(before.ended_runs());
    let ms = stats.run_ms.saturating_sub(before.run_ms);
    (runs > 0).then(|| in_seconds(ms) / runs as f64)
}
