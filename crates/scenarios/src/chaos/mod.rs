//! Chaos: the real command, killed at random moments, and then a check of the results.
//!
//! A script appends a line to a file and returns a result. After all kills each input has exactly one result. No
//! script has run more often than the number of jobs in flight at the kills allows. The [`Scenario`]s differ in the
//! killed processes and in the store.

mod callers;
mod cast;
mod count;
mod findings;
pub mod fleet;
pub mod flows;
mod ground;
pub mod hostile;
pub mod limits;
pub mod mesh;
pub mod messages;
mod moments;
pub mod outbox;
mod process;
mod program;
pub mod schedules;
pub mod spread;

use std::fmt;
use std::io;
use std::path::PathBuf;

use rand::SeedableRng;
use rand::rngs::StdRng;

use cast::Cast;
use count::Count;
use ground::Ground;
use moments::Moments;

/// Number of inputs of one batch.
pub const INPUTS: usize = 1000;

/// Returns the names of the input files, which are also their contents.
fn inputs() -> impl Iterator<Item = String> {
    (0..INPUTS).map(|number| format!("input-{number:04}"))
}

/// Killed processes and store of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// `run` alone, which owns the embedded engine.
    Alone,
    /// A `worker` on a redis-server, to which `run` submits.
    Server,
    /// The embedded engine's owner, or a process attached to it: two workers and `run`.
    Attached,
}

impl Scenario {
    /// All scenarios.
    pub const ALL: [Self; 3] = [Self::Alone, Self::Server, Self::Attached];

    /// Returns the name of the scenario.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::Server => "server",
            Self::Attached => "attached",
        }
    }

    /// Returns the scenario with this name.
    ///
    /// # Errors
    /// No scenario has this name; the error lists the names.
    pub fn from_name(name: &str) -> Result<Self, String> {
        let known = Self::ALL.map(Self::name).join(", ");
        let found = Self::ALL
            .into_iter()
            .find(|scenario| scenario.name() == name);
        found.ok_or_else(|| format!("one of {known}"))
    }
}

/// Size and choices of a play.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The `meshwork` binary.
    pub binary: PathBuf,
    /// Number of kills, over all batches of the scenario.
    pub kills: u32,
    /// Seed for the choice of moments and victims. The timing differs from run to run.
    pub seed: u64,
}

/// Result of a scenario.
#[derive(Clone, Debug)]
pub struct Report {
    /// Killed processes and store.
    pub scenario: Scenario,
    /// Number of kills.
    pub kills: u32,
    /// Number of inputs, over all batches.
    pub inputs: usize,
    /// Inputs without exactly one correct result.
    pub lost: Vec<String>,
    /// Number of runs beyond the first of each input.
    pub extra_runs: u64,
    /// Greatest allowed number of these: the jobs in flight at the kills.
    pub bound: u64,
    /// Greatest number of runs of one input.
    pub most_runs: u64,
}

impl Report {
    /// Returns true if no result was lost and no script ran too often.
    #[must_use]
    pub fn holds(&self) -> bool {
        let most = u64::from(self.kills) + 1;
        self.lost.is_empty() && self.extra_runs <= self.bound && self.most_runs <= most
    }

    /// Returns the report as a JSON object on one line.
    #[must_use]
    pub fn json(&self) -> String {
        serde_json::json!({
            "scenario": self.scenario.name(),
            "kills": self.kills,
            "inputs": self.inputs,
            "lost": self.lost,
            "extra_runs": self.extra_runs,
            "bound": self.bound,
            "most_runs": self.most_runs,
            "holds": self.holds(),
        })
        .to_string()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kills,
            inputs,
            extra_runs,
            bound,
            most_runs,
            ..
        } = self;
        let (name, lost) = (self.scenario.name(), self.lost.len());
        write!(f, "{name}: kills {kills}, inputs {inputs}, lost {lost}, ")?;
        write!(
            f,
            "extra runs {extra_runs} (bound {bound}), most runs of one {most_runs}"
        )?;
        for input in self.lost.iter().take(10) {
            write!(f, "\n  {input}")?;
        }
        Ok(())
    }
}

/// Error that ends a scenario before its report.
#[derive(Debug, thiserror::Error)]
pub enum ChaosError {
    /// The scenario's files or processes failed.
    #[error("{what}: {source}")]
    Io {
        /// Attempted operation.
        what: String,
        /// Cause.
        source: io::Error,
    },
    /// This machine lacks a program.
    #[error("there is no {0}: see `cargo xtask test`")]
    Missing(&'static str),
    /// A program ended that was not killed.
    #[error("`meshwork {program}` ended by itself ({status}); it said:\n{said}")]
    Ended {
        /// Arguments of the program.
        program: String,
        /// Exit status of the program.
        status: String,
        /// End of its stderr.
        said: String,
    },
    /// A program did not make progress in time.
    #[error("`meshwork {program}` has not {what} within {seconds} s; it said:\n{said}")]
    Stuck {
        /// Arguments of the program.
        program: String,
        /// Missing progress.
        what: &'static str,
        /// Timeout in seconds.
        seconds: u64,
        /// End of its stderr.
        said: String,
    },
    /// A line differs from the output that the command promises.
    #[error("not a line of a result: {0}")]
    Line(String),
}

impl ChaosError {
    fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}

/// Plays a scenario in batches, until there have been enough kills.
///
/// # Errors
/// There is no python3 or, for [`Scenario::Server`], no redis-server; a program ends by itself or gets stuck; or
/// files cannot be written.
pub async fn play(plan: &Plan, scenario: Scenario) -> Result<Report, ChaosError> {
    let mut moments = Moments::new(StdRng::seed_from_u64(plan.seed), plan.kills);
    let ground = Ground::new(plan, scenario)?;
    let (mut total, mut batches, mut bound) = (Count::default(), 0, 0);
    while batches == 0 || moments.left() > 0 {
        batches += 1;
        let mut cast = Cast::start(&ground, batches).await?;
        let output = cast.play(&mut moments).await?;
        total.add(ground.count(&output, batches)?);
        bound += cast.in_flight;
    }
    Ok(Report {
        scenario,
        kills: plan.kills,
        inputs: INPUTS * batches,
        lost: total.lost,
        extra_runs: total.extra_runs,
        bound,
        most_runs: total.most_runs,
    })
}
