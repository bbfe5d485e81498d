//! The report of a play, as text and as JSON.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::Engine;
use crate::chaos::findings;

/// The report of all engines.
#[derive(Clone, Debug)]
pub struct Report {
    /// Seed of the choices.
    pub seed: u64,
    /// The report of each engine.
    pub engines: Vec<EngineReport>,
}

/// The report of one engine.
#[derive(Clone, Debug)]
pub struct EngineReport {
    /// Store of the jobs.
    pub engine: Engine,
    /// Jobs that were requested.
    pub jobs: usize,
    /// Number of faults of each kind.
    pub faults: BTreeMap<String, u32>,
    /// Faults that may have taken jobs from their workers, and their times.
    pub happened: Vec<String>,
    /// Jobs that were accepted.
    pub accepted: usize,
    /// Accepted jobs without exactly one correct end, with the reason.
    pub lost: Vec<String>,
    /// Jobs that were not accepted and that exist in part.
    pub half: Vec<String>,
    /// Starts of all jobs.
    pub starts: usize,
    /// Starts beyond the first of each job.
    pub again: u64,
    /// Repeated starts that a fault or a retry explains.
    pub permitted: u64,
    /// Repeated starts that only an expired lease explains: none, unless the machine is overloaded.
    pub expired: u64,
    /// Starts that nothing explains.
    pub unexplained: Vec<String>,
    /// Leases, slots, prefetched ids and other keys that should be gone.
    pub left: Vec<String>,
    /// Processes that outlived the worker of their run, or all of them.
    pub processes: Vec<String>,
    /// Temporary files of runs.
    pub folders: Vec<String>,
    /// True if there was a disk that could be full.
    pub disk: bool,
    /// Folder of the logs, if something does not hold.
    pub files: Option<PathBuf>,
}

impl EngineReport {
    fn findings(&self) -> [(&'static str, &[String]); 6] {
        [
            ("lost", &self.lost),
            ("half", &self.half),
            ("unexplained", &self.unexplained),
            ("left", &self.left),
            ("processes", &self.processes),
            ("folders", &self.folders),
        ]
    }

    /// Returns true if everything is as promised.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.accepted > 0 && self.findings().iter().all(|(_, lines)| lines.is_empty())
    }

    fn json(&self) -> Value {
        let mut value = json!({
            "engine": self.engine.name(),
            "jobs": self.jobs,
            "faults": self.faults,
            "happened": self.happened,
            "accepted": self.accepted,
            "starts": self.starts,
            "run_again": self.again,
            "permitted": self.permitted,
            "expired": self.expired,
            "disk": self.disk,
            "files": self.files,
            "holds": self.holds(),
        });
        for (name, lines) in self.findings() {
            value[name] = json!(lines);
        }
        value
    }
}

impl Report {
    /// Returns true if everything is as promised.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.engines.iter().all(EngineReport::holds)
    }

    /// Returns the report as a JSON object on one line.
    #[must_use]
    pub fn json(&self) -> String {
        let engines: Vec<_> = self.engines.iter().map(EngineReport::json).collect();
        let holds = self.holds();
        json!({"scenario": "hostile", "seed": self.seed, "engines": engines, "holds": holds})
            .to_string()
    }
}

impl fmt::Display for EngineReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let faults: u32 = self.faults.values().sum();
        write!(
            f,
            "hostile, {}: faults {faults}, jobs {}, accepted {}, starts {}, run again {}, of these permitted {}, by expired leases {}",
            self.engine.name(),
            self.jobs,
            self.accepted,
            self.starts,
            self.again,
            self.permitted,
            self.expired
        )?;
        for (name, lines) in self.findings() {
            write!(f, ", {name} {}", lines.len())?;
        }
        if !self.disk {
            write!(f, "\n  no disk was full: only root may mount a small one")?;
        }
        if let Some(files) = &self.files {
            write!(f, "\n  the logs are in {}", files.display())?;
        }
        findings::write(f, &self.findings())?;
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, engine) in self.engines.iter().enumerate() {
            write!(f, "{}{engine}", if at > 0 { "\n" } else { "" })?;
        }
        Ok(())
    }
}
