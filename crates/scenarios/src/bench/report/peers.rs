//! Figures of other job queues.

use std::fmt;

use serde_json::{Value, json};

use super::super::meter::Cost;
use super::super::peers::{PeerRuns, PeerSample};
use super::{Columns, bounds, median, ratio, rounded};

/// A figure of another job queue.
#[derive(Debug, Clone)]
pub struct Against {
    /// Name of the job queue.
    pub name: &'static str,
    /// False if it has a server of its own, which is not Redis.
    pub on_redis: bool,
    /// Version of its library, unless all runs failed.
    pub version: Option<String>,
    /// Median of the runs that succeeded; `None` if all failed, or the job queue lacks the figure.
    pub value: Option<f64>,
    /// Ratio of Meshwork's figure to this one: the median of the ratios of runs that belong together.
    pub ratio: Option<f64>,
    /// Ratio of this figure to the best one of the floor, in the same way.
    pub to_floor: Option<f64>,
    /// Number of jobs in one run.
    pub jobs: usize,
    /// Value of each run that succeeded.
    pub runs: Vec<f64>,
    /// Cost of one job in the median run.
    pub cost: Cost,
    /// Reason of each run that failed.
    pub failures: Vec<String>,
}

impl Against {
    /// Returns one figure of a job queue, beside the runs of Meshwork and of the floor's best shape.
    pub(super) fn new(all: &PeerRuns, at: usize, ours: &[f64], floor: Option<&[f64]>) -> Self {
        let value_of = |sample: &PeerSample| sample.values.get(at).copied().flatten();
        let of_run = |run: usize| all.samples.get(run)?.as_ref().ok().and_then(value_of);
        let pairs = |others: &[f64]| -> (Vec<f64>, Vec<f64>) {
            let others = others.iter().copied().enumerate();
            others
                .filter_map(|(run, other)| Some((other, of_run(run)?)))
                .unzip()
        };
        let (beside, runs) = pairs(ours);
        let value = (!runs.is_empty()).then(|| median(&runs));
        let to_floor = floor.filter(|_| value.is_some()).map(|floor| {
            let (floor, runs) = pairs(floor);
            ratio(&runs, &floor)
        });
        let samples = all.samples.iter().flatten();
        let middle = samples.clone().find(|sample| value_of(sample) == value);
        let failures = all
            .samples
            .iter()
            .filter_map(|sample| sample.as_ref().err());
        Self {
            name: all.name,
            on_redis: all.on_redis,
            version: samples.clone().next().map(|sample| sample.version.clone()),
            value,
            ratio: value.map(|_| ratio(&beside, &runs)),
            to_floor,
            jobs: all.jobs,
            cost: middle.map(|sample| sample.cost.clone()).unwrap_or_default(),
            runs,
            failures: failures.cloned().collect(),
        }
    }

    /// Returns the name with the version.
    #[must_use]
    pub fn title(&self) -> String {
        match &self.version {
            Some(version) => format!("{} {version}", self.name),
            None => self.name.to_owned(),
        }
    }

    fn engine(&self) -> &'static str {
        if self.on_redis { "redis" } else { "own" }
    }

    pub(super) fn json(&self) -> Value {
        let bound = bounds(&self.runs);
        json!({
            "name": self.name,
            "engine": self.engine(),
            "version": self.version,
            "value": self.value.map(rounded),
            "jobs": self.jobs,
            "runs": self.runs.len(),
            "min": bound.map(|(min, _)| rounded(min)),
            "max": bound.map(|(_, max)| rounded(max)),
            "ratio": self.ratio.map(rounded),
            "to_floor": self.to_floor.map(rounded),
            "cost": self.cost.json(),
            "failures": self.failures,
        })
    }

    /// Writes the row below the one of Meshwork.
    pub(super) fn write(&self, unit: &'static str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = format!("  {}", self.title());
        if self.version.is_none() {
            let why = self.failures.first().map_or("-", String::as_str);
            return write!(f, "{name:<24} not measured: {why}");
        }
        let columns = Columns {
            name: &name,
            engine: self.engine(),
            value: self.value,
            unit,
            bounds: bounds(&self.runs),
            ratio: self.ratio,
            to_plain: None,
            to_redis: None,
            cost: &self.cost,
        };
        write!(f, "{columns}")?;
        match &self.failures[..] {
            [] => Ok(()),
            [why, ..] => write!(f, " {} runs failed: {why}", self.failures.len()),
        }
    }
}
