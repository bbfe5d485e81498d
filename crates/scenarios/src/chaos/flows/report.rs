//! The report of a play, as text and as JSON.

use std::fmt;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::chaos::findings;
use crate::chaos::hostile::Engine;

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
    /// Store of the flows.
    pub engine: Engine,
    /// Number of different flows.
    pub dags: usize,
    /// Killed workers, submitters and servers.
    pub kills: [u32; 3],
    /// Flows in the store: a killed submitter may leave a copy.
    pub flows: usize,
    /// Of these those that ended with an error.
    pub failed: usize,
    /// Jobs of all flows, with the items of `foreach`.
    pub jobs: usize,
    /// Jobs that have started.
    pub started: usize,
    /// Starts of all jobs.
    pub starts: usize,
    /// Flows that have not ended.
    pub open: Vec<String>,
    /// Differences between ends or results and those in memory.
    pub wrong: Vec<String>,
    /// Jobs that started before their needs had ended, or should not have started.
    pub early: Vec<String>,
    /// Duration in seconds.
    pub seconds: u64,
    /// Folder of the logs, if something does not hold.
    pub files: Option<PathBuf>,
}

impl EngineReport {
    pub(super) fn new(engine: Engine, dags: usize, kills: [u32; 3]) -> Self {
        Self {
            engine,
            dags,
            kills,
            flows: 0,
            failed: 0,
            jobs: 0,
            started: 0,
            starts: 0,
            open: Vec::new(),
            wrong: Vec::new(),
            early: Vec::new(),
            seconds: 0,
            files: None,
        }
    }

    fn findings(&self) -> [(&'static str, &[String]); 3] {
        [
            ("open", &self.open),
            ("wrong", &self.wrong),
            ("early", &self.early),
        ]
    }

    /// Returns true if everything is as promised.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.flows >= self.dags && self.findings().iter().all(|(_, lines)| lines.is_empty())
    }

    fn json(&self) -> Value {
        let [workers, submitters, servers] = self.kills;
        let mut value = json!({
            "engine": self.engine.name(),
            "dags": self.dags,
            "killed": {"workers": workers, "submitters": submitters, "servers": servers},
            "flows": self.flows,
            "failed": self.failed,
            "jobs": self.jobs,
            "started": self.started,
            "starts": self.starts,
            "seconds": self.seconds,
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
        json!({"scenario": "flows", "seed": self.seed, "engines": engines, "holds": holds})
            .to_string()
    }
}

impl fmt::Display for EngineReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            dags,
            kills: [workers, submitters, servers],
            flows,
            failed,
            jobs,
            started,
            starts,
            seconds,
            ..
        } = self;
        let name = self.engine.name();
        write!(
            f,
            "flows on {name}: {dags} DAGs, {flows} flows ({failed} failed) of {jobs} jobs in {seconds} s; "
        )?;
        write!(
            f,
            "killed {workers} workers, {submitters} submitters, {servers} servers; {starts} starts of {started} jobs"
        )?;
        for (name, lines) in self.findings() {
            write!(f, "; {name} {}", lines.len())?;
        }
        findings::write(f, &self.findings())?;
        if let Some(files) = &self.files {
            write!(f, "\n  files: {}", files.display())?;
        }
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, engine) in self.engines.iter().enumerate() {
            if number > 0 {
                writeln!(f)?;
            }
            write!(f, "{engine}")?;
        }
        Ok(())
    }
}
