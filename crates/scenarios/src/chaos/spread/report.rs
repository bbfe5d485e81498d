//! The check of the order of runs, and the report as text and as JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::{KEYS, Plan};
use crate::chaos::findings;

/// Greatest difference of a part from the average, in percent, for jobs without a key.
const UNEVEN: usize = 10;

/// The report of a play.
#[derive(Clone, Debug)]
pub struct Report {
    /// Name of the scenario.
    pub scenario: &'static str,
    /// Seed of the choices.
    pub seed: u64,
    /// Jobs with a key.
    pub jobs: usize,
    /// Killed workers and servers.
    pub kills: [u32; 2],
    /// Runs of all jobs, also of those that were killed.
    pub runs: usize,
    /// Jobs that have not run.
    pub lost: Vec<String>,
    /// Runs that came after a later job of their key.
    pub disordered: Vec<String>,
    /// Jobs without a key in each part.
    pub counts: Vec<usize>,
    /// Keys that have not moved in the end.
    pub moving: usize,
    /// Duration in seconds.
    pub seconds: u64,
}

/// Returns the number of different jobs.
pub(super) fn distinct(runs: &[usize]) -> usize {
    runs.iter().collect::<BTreeSet<_>>().len()
}

impl Report {
    pub(super) fn new(plan: &Plan, kills: [u32; 2]) -> Self {
        Self {
            scenario: plan.servers.name(),
            seed: plan.seed,
            jobs: plan.jobs,
            kills,
            runs: 0,
            lost: Vec::new(),
            disordered: Vec::new(),
            counts: Vec::new(),
            moving: 0,
            seconds: 0,
        }
    }

    /// Compares the runs with the jobs.
    pub(super) fn judge(&mut self, runs: &BTreeMap<usize, Vec<usize>>) {
        for (key, runs) in runs {
            self.runs += runs.len();
            let wanted = (self.jobs + KEYS - 1 - key) / KEYS;
            let ran: BTreeSet<_> = runs.iter().copied().collect();
            let missing = (0..wanted).filter(|number| !ran.contains(number));
            self.lost
                .extend(missing.map(|number| format!("{key}-{number}")));
            if !runs.is_sorted() {
                self.disordered.push(format!("key {key}: {runs:?}"));
            }
        }
    }

    fn findings(&self) -> [(&'static str, &[String]); 2] {
        [("lost", &self.lost), ("disordered", &self.disordered)]
    }

    /// Returns true if no part has many more jobs without a key than another.
    fn is_even(&self) -> bool {
        let total: usize = self.counts.iter().sum();
        let parts = self.counts.len().max(1);
        let far = |count: &usize| (count * parts).abs_diff(total) * 100 > total * UNEVEN;
        !self.counts.iter().any(far)
    }

    /// Returns true if everything is as promised.
    #[must_use]
    pub fn holds(&self) -> bool {
        let none = self.findings().iter().all(|(_, lines)| lines.is_empty());
        none && self.is_even() && self.moving == 0
    }

    /// Returns the report as a JSON object on one line.
    #[must_use]
    pub fn json(&self) -> String {
        let [workers, servers] = self.kills;
        serde_json::json!({
            "scenario": self.scenario,
            "seed": self.seed,
            "jobs": self.jobs,
            "killed": { "workers": workers, "servers": servers },
            "runs": self.runs,
            "lost": self.lost,
            "disordered": self.disordered,
            "counts": self.counts,
            "moving": self.moving,
            "seconds": self.seconds,
            "holds": self.holds(),
        })
        .to_string()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            scenario,
            jobs,
            kills: [workers, servers],
            runs,
            counts,
            moving,
            seconds,
            ..
        } = self;
        write!(
            f,
            "{scenario}: {jobs} jobs of {KEYS} keys, {runs} runs in {seconds} s; killed {workers} workers, {servers} servers; \
             {moving} keys move; without a key by part: {counts:?}"
        )?;
        for (name, lines) in self.findings() {
            write!(f, "; {name} {}", lines.len())?;
        }
        findings::write(f, &self.findings())
    }
}
