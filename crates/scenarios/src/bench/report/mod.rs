//! Figures as text and as JSON.

mod peers;

use std::fmt;

use serde_json::{Value, json};

use super::figure::{Counts, Figure, Shape};
use super::ground::Engine;
use super::meter::Cost;
use super::peers::PeerRuns;
use super::{Plan, Sample};
pub use peers::Against;

/// All runs of a figure on one engine.
pub(super) struct Runs {
    figure: Figure,
    pub(super) engine: Engine,
    counts: Counts,
    pub(super) ours: Vec<Sample>,
    /// Runs of the same figure without the additional feature.
    pub(super) plain: Vec<Sample>,
    floors: Vec<(Shape, Vec<Sample>)>,
    /// Other job queues.
    pub(super) peers: Vec<PeerRuns>,
}

/// One figure.
#[derive(Debug, Clone)]
pub struct Line {
    /// Name of the figure.
    pub name: String,
    /// Engine of the measurement.
    pub engine: Engine,
    /// Median of all runs.
    pub value: f64,
    /// Unit: `jobs/s`, `calls/s`, `us` or `bytes/job`.
    pub unit: &'static str,
    /// Number of jobs in one run.
    pub jobs: usize,
    /// Value of each run.
    pub runs: Vec<f64>,
    /// Figures of the floor, the best shape first.
    pub floors: Vec<Beside>,
    /// Figures of other job queues.
    pub peers: Vec<Against>,
    /// Ratio to the plain figure in the same run, for jobs with an additional feature.
    pub to_plain: Option<f64>,
    /// Ratio to the figure on redis-server, in the same run.
    pub to_redis: Option<f64>,
    /// Cost of one job in the median run.
    pub cost: Cost,
    /// Highest load average of the machine over the minute before each run.
    pub load: f64,
}

/// A figure of the floor.
#[derive(Debug, Clone)]
pub struct Beside {
    /// Shape of the work.
    pub shape: Shape,
    /// Median of all runs.
    pub value: f64,
    /// Ratio of Meshwork's figure to this one: the median of the ratios of runs that belong together.
    pub ratio: f64,
    /// Cost of one job.
    pub cost: Cost,
}

impl Runs {
    pub(super) fn new(figure: Figure, engine: Engine, plan: &Plan) -> Self {
        let compared = figure.has_peers() && engine == Engine::Redis;
        let peers = plan.peers.iter().filter(|_| compared);
        Self {
            figure,
            engine,
            counts: plan.counts,
            ours: Vec::new(),
            plain: Vec::new(),
            floors: Vec::new(),
            peers: peers
                .map(|peer| PeerRuns::new(peer, figure, &plan.counts))
                .collect(),
        }
    }

    pub(super) fn add_floor(&mut self, shape: Shape, sample: Sample) {
        match self.floors.iter_mut().find(|(other, _)| *other == shape) {
            Some((_, samples)) => samples.push(sample),
            None => self.floors.push((shape, vec![sample])),
        }
    }

    fn line(&self, at: usize, name: String, unit: &'static str, redis: Option<&Self>) -> Line {
        let runs = values(&self.ours, at);
        let mut floors: Vec<_> = self
            .floors
            .iter()
            .map(|(shape, samples)| {
                let values = values(samples, at);
                Beside {
                    shape: *shape,
                    value: median(&values),
                    ratio: ratio(&runs, &values),
                    cost: middle(samples, at),
                }
            })
            .collect();
        floors.sort_by(|a, b| match self.figure.is_cost() {
            true => a.value.total_cmp(&b.value),
            false => b.value.total_cmp(&a.value),
        });
        let best = floors.first().map(|best| best.shape);
        let best = self.floors.iter().find(|(shape, _)| Some(*shape) == best);
        let best = best.map(|(_, samples)| values(samples, at));
        let against = |peer| Against::new(peer, at, &runs, best.as_deref());
        let peers = self.peers.iter().map(against).collect();
        Line {
            name,
            engine: self.engine,
            value: median(&runs),
            unit,
            jobs: self.figure.jobs(&self.counts),
            floors,
            peers,
            to_plain: (!self.plain.is_empty()).then(|| ratio(&runs, &values(&self.plain, at))),
            to_redis: redis.map(|redis| ratio(&runs, &values(&redis.ours, at))),
            cost: middle(&self.ours, at),
            load: self
                .ours
                .iter()
                .map(|sample| sample.load)
                .fold(0.0, f64::max),
            runs,
        }
    }
}

/// Returns the lines of one figure.
pub(super) fn lines(all: &[Runs]) -> Vec<Line> {
    let redis = all.iter().find(|runs| runs.engine == Engine::Redis);
    let mut lines = Vec::new();
    for runs in all {
        let (names, unit) = runs.figure.yields();
        let redis = redis.filter(|_| runs.engine != Engine::Redis);
        for (at, name) in names.into_iter().enumerate() {
            lines.push(runs.line(at, name, unit, redis));
        }
    }
    lines
}

fn values(samples: &[Sample], at: usize) -> Vec<f64> {
    let value = |sample: &Sample| sample.values.get(at).copied().unwrap_or(0.0);
    samples.iter().map(value).collect()
}

pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

/// Returns the median of the ratios of runs that belong together.
fn ratio(ours: &[f64], theirs: &[f64]) -> f64 {
    let ratios: Vec<_> = ours.iter().zip(theirs).map(|(a, b)| a / b).collect();
    median(&ratios)
}

/// Returns the cost of the median run.
fn middle(samples: &[Sample], at: usize) -> Cost {
    let value = median(&values(samples, at));
    let same = |sample: &&Sample| sample.values.get(at) == Some(&value);
    let found = samples.iter().find(same);
    found.map(|sample| sample.cost.clone()).unwrap_or_default()
}

pub(super) fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

impl Shape {
    /// Returns the shape as text.
    fn said(self) -> String {
        format!("{} x {}", self.callers, self.batch)
    }
}

impl Cost {
    fn json(&self) -> Value {
        let some = |value: Option<f64>| value.map(rounded);
        let commands = self.by_command.iter().map(|(name, (calls, micros))| {
            let both = json!({"calls": rounded(*calls), "us": rounded(*micros)});
            (name.clone(), both)
        });
        json!({
            "commands": some(self.commands),
            "server_us": some(self.server_us),
            "client_us": rounded(self.client_us),
            "bytes_in": some(self.bytes_in),
            "bytes_out": some(self.bytes_out),
            "aof_bytes": rounded(self.aof_bytes),
            "by_command": commands.collect::<serde_json::Map<_, _>>(),
        })
    }
}

impl Line {
    /// Returns the line as a JSON object.
    #[must_use]
    pub fn json(&self) -> Value {
        let floors = self.floors.iter().map(|floor| {
            json!({"shape": floor.shape.said(), "value": rounded(floor.value),
                   "ratio": rounded(floor.ratio), "cost": floor.cost.json()})
        });
        let bound = bounds(&self.runs);
        json!({
            "name": self.name,
            "engine": self.engine.name(),
            "value": rounded(self.value),
            "unit": self.unit,
            "jobs": self.jobs,
            "runs": self.runs.len(),
            "min": bound.map(|(min, _)| rounded(min)),
            "max": bound.map(|(_, max)| rounded(max)),
            "ratio": self.floors.first().map(|floor| rounded(floor.ratio)),
            "to_plain": self.to_plain.map(rounded),
            "to_redis": self.to_redis.map(rounded),
            "cost": self.cost.json(),
            "floors": floors.collect::<Vec<_>>(),
            "peers": self.peers.iter().map(Against::json).collect::<Vec<_>>(),
            "load": self.load,
        })
    }

    /// Returns the head of the table of [`Line`]s.
    #[must_use]
    pub fn head() -> String {
        format!(
            "{:<24} {:<8} {:>10} {:<9} {:>21} {:>6} {:>6} {:>7} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6}  floor",
            "figure",
            "engine",
            "median",
            "unit",
            "min..max",
            "ratio",
            "/plain",
            "/redis",
            "cmds",
            "srv us",
            "cli us",
            "B in",
            "B out",
            "B aof"
        )
    }
}

/// One row of the table.
struct Columns<'a> {
    name: &'a str,
    engine: &'a str,
    value: Option<f64>,
    unit: &'static str,
    bounds: Option<(f64, f64)>,
    ratio: Option<f64>,
    to_plain: Option<f64>,
    to_redis: Option<f64>,
    cost: &'a Cost,
}

impl fmt::Display for Columns<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bounds = self.bounds.map(|(min, max)| format!("{min:.0}..{max:.0}"));
        let bounds = bounds.unwrap_or_else(|| "-".to_owned());
        let (name, engine, cost) = (self.name, self.engine, self.cost);
        write!(
            f,
            "{name:<24} {engine:<8} {:>10} {:<9} {bounds:>21} {:>6} {:>6} {:>7} {:>6} {:>6} {:>6.1} {:>6} {:>6} {:>6.0} ",
            some(self.value, 0),
            self.unit,
            some(self.ratio, 2),
            some(self.to_plain, 2),
            some(self.to_redis, 2),
            some(cost.commands, 1),
            some(cost.server_us, 1),
            cost.client_us,
            some(cost.bytes_in, 0),
            some(cost.bytes_out, 0),
            cost.aof_bytes,
        )
    }
}

/// Returns a number as text, and a dash for none.
fn some(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}

/// Returns the least and the greatest value.
fn bounds(runs: &[f64]) -> Option<(f64, f64)> {
    let bound = |pick: fn(f64, f64) -> f64| runs.iter().copied().reduce(pick);
    bound(f64::min).zip(bound(f64::max))
}

/// Writes a row, and one for each other job queue below.
impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = Columns {
            name: &self.name,
            engine: self.engine.name(),
            value: Some(self.value),
            unit: self.unit,
            bounds: bounds(&self.runs),
            ratio: self.floors.first().map(|floor| floor.ratio),
            to_plain: self.to_plain,
            to_redis: self.to_redis,
            cost: &self.cost,
        };
        write!(f, "{columns}")?;
        for floor in &self.floors {
            let (shape, server) = (floor.shape.said(), some(floor.cost.server_us, 1));
            write!(f, " {shape}: {:.0} ({server} us)", floor.value)?;
        }
        for peer in &self.peers {
            writeln!(f)?;
            peer.write(self.unit, f)?;
        }
        Ok(())
    }
}
