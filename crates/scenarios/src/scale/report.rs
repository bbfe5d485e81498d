//! Figures as text and as JSON.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde_json::json;

use super::ground::Sample;
use super::{Call, Plan, Report, median};

/// Greatest cost of a call while many jobs wait, as a multiple of its cost while few do.
const MOST: f64 = 1.3;
/// Longest time for which a call may block the server with a walk through a list.
const LONGEST: Duration = Duration::from_millis(100);

/// Cost of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cost {
    /// Median duration.
    pub took: Duration,
    /// Commands that the server runs for most of the calls. For a list, without those for each job.
    pub commands: BTreeMap<String, u64>,
}

/// A call while few jobs wait, and while many do.
#[derive(Debug, Clone)]
pub struct Pair {
    /// The call.
    pub call: Call,
    /// Cost while few jobs wait.
    pub few: Cost,
    /// Cost while many jobs wait.
    pub many: Cost,
}

/// A call that walks through a long list.
#[derive(Debug, Clone)]
pub struct Walk {
    /// Description of the walk.
    pub what: &'static str,
    /// Number of ids in the list.
    pub length: usize,
    /// Median duration.
    pub took: Duration,
    /// Longest duration.
    pub longest: Duration,
}

pub(super) fn cost(samples: Vec<Sample>) -> Cost {
    let mut shapes: BTreeMap<BTreeMap<String, u64>, usize> = BTreeMap::new();
    let mut times = Vec::with_capacity(samples.len());
    for sample in samples {
        // Pages differ in the number of their jobs.
        let jobs = sample.jobs.max(1);
        times.push(sample.took / u32::try_from(jobs).unwrap_or(u32::MAX));
        let mut commands = sample.commands;
        if sample.jobs != 1 {
            commands.retain(|name, _| name == "scan");
        }
        *shapes.entry(commands).or_default() += 1;
    }
    let most = shapes.into_iter().max_by_key(|(_, times)| *times);
    Cost {
        took: median(times),
        commands: most.map(|(commands, _)| commands).unwrap_or_default(),
    }
}

impl Pair {
    /// Returns the cost while many jobs wait, as a multiple of the cost while few do.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.many.took.as_secs_f64() / self.few.took.as_secs_f64().max(1e-9)
    }

    /// Returns true if the call runs the same commands in both databases.
    #[must_use]
    pub fn same_commands(&self) -> bool {
        let few = |name: &String| self.few.commands.get(name).copied().unwrap_or_default();
        let mut many = self.many.commands.iter();
        many.all(|(name, count)| *count <= few(name))
    }
}

impl Report {
    /// Returns true if all promises hold.
    #[must_use]
    pub fn holds(&self) -> bool {
        let cheap = |pair: &Pair| pair.ratio() <= MOST && pair.same_commands();
        self.pairs.iter().all(cheap) && self.walks.iter().all(|walk| walk.took <= LONGEST)
    }

    /// Returns a line of JSON for each figure.
    #[must_use]
    pub fn json(&self, plan: &Plan) -> String {
        let mut lines = String::new();
        for pair in &self.pairs {
            let of = |cost: &Cost, waiting: usize| {
                json!({"waiting": waiting, "median_us": micros(cost.took),
                       "commands": cost.commands.values().sum::<u64>()})
            };
            let line = json!({"call": pair.call.name(), "few": of(&pair.few, plan.few),
                              "many": of(&pair.many, plan.many), "ratio": pair.ratio()});
            lines.push_str(&format!("{line}\n"));
        }
        for walk in &self.walks {
            let line = json!({"walk": walk.what, "length": walk.length,
                              "median_us": micros(walk.took), "max_us": micros(walk.longest)});
            lines.push_str(&format!("{line}\n"));
        }
        lines
    }
}

fn micros(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e7).round() / 10.0
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| call | few, µs | many, µs | ratio | commands |")?;
        writeln!(f, "|---|---|---|---|---|")?;
        for pair in &self.pairs {
            let sum = |cost: &Cost| cost.commands.values().sum::<u64>();
            let (few, many) = (micros(pair.few.took), micros(pair.many.took));
            let (few_run, many_run) = (sum(&pair.few), sum(&pair.many));
            let (name, ratio) = (pair.call.name(), pair.ratio());
            writeln!(
                f,
                "| {name} | {few:.1} | {many:.1} | {ratio:.2} | {few_run}, {many_run} |"
            )?;
        }
        writeln!(f, "\n| walk | ids in the list | median, µs | longest, µs |")?;
        writeln!(f, "|---|---|---|---|")?;
        for walk in &self.walks {
            let (median, longest) = (micros(walk.took), micros(walk.longest));
            writeln!(
                f,
                "| {} | {} | {median:.1} | {longest:.1} |",
                walk.what, walk.length
            )?;
        }
        Ok(())
    }
}
