//! Chaos: the real command, killed at random moments, and then a count of what came out.
//!
//! A script appends a line to a file and returns a result. However often what runs it is killed,
//! each input has its one result in the end, none is lost, and no script has run more often than
//! the jobs in flight at the kills allow. What is killed, and where the data is, are the
//! [`Scenario`]s.

mod cast;
mod count;
pub mod fleet;
mod ground;
pub mod hostile;
pub mod limits;
mod moments;
mod program;
pub mod schedules;

use std::fmt;
use std::io;
use std::path::PathBuf;

use rand::SeedableRng;
use rand::rngs::StdRng;

use cast::Cast;
use count::Count;
use ground::Ground;
use moments::Moments;

/// Inputs of one batch.
pub const INPUTS: usize = 1000;

/// The names of the input files, which are also their contents.
fn inputs() -> impl Iterator<Item = String> {
    (0..INPUTS).map(|number| format!("input-{number:04}"))
}

/// What is killed, and where the data is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// `run` alone, which owns the embedded engine.
    Alone,
    /// A `worker` on a redis-server, to which `run` submits.
    Server,
    /// The embedded engine's owner or one that is attached: two workers and `run`.
    Attached,
}

impl Scenario {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Alone, Self::Server, Self::Attached];

    /// The word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::Server => "server",
            Self::Attached => "attached",
        }
    }

    /// The scenario of that name.
    ///
    /// # Errors
    /// When there is none; says which there are.
    pub fn from_name(name: &str) -> Result<Self, String> {
        let known = Self::ALL.map(Self::name).join(", ");
        let found = Self::ALL
            .into_iter()
            .find(|scenario| scenario.name() == name);
        found.ok_or_else(|| format!("one of {known}"))
    }
}

/// What to do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The `meshwork` binary.
    pub binary: PathBuf,
    /// How often to kill, over all batches of the scenario.
    pub kills: u32,
    /// Which moments and victims are chosen; what goes on in them is the machine's affair.
    pub seed: u64,
}

/// How a scenario went.
#[derive(Clone, Debug)]
pub struct Report {
    /// What was killed.
    pub scenario: Scenario,
    /// How often.
    pub kills: u32,
    /// How many inputs there were, over all batches.
    pub inputs: usize,
    /// Inputs without their one right result.
    pub lost: Vec<String>,
    /// How often a script ran without need.
    pub extra_runs: u64,
    /// How often it may have: the jobs in flight at the kills.
    pub bound: u64,
    /// The most often that one script ran.
    pub most_runs: u64,
}

impl Report {
    /// Whether everything is as promised.
    #[must_use]
    pub fn holds(&self) -> bool {
        let most = u64::from(self.kills) + 1;
        self.lost.is_empty() && self.extra_runs <= self.bound && self.most_runs <= most
    }

    /// One object of JSON, on one line.
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

/// Why a scenario came to no count.
#[derive(Debug, thiserror::Error)]
pub enum ChaosError {
    /// The scenario's files or processes.
    #[error("{what}: {source}")]
    Io {
        /// What was to be done.
        what: String,
        /// Why it was not.
        source: io::Error,
    },
    /// This machine lacks a program.
    #[error("there is no {0}: see `cargo xtask test`")]
    Missing(&'static str),
    /// A program that nobody killed.
    #[error("`meshwork {program}` ended by itself ({status}); it said:\n{said}")]
    Ended {
        /// Its arguments.
        program: String,
        /// How it ended.
        status: String,
        /// The end of its stderr.
        said: String,
    },
    /// A program that should have got further.
    #[error("`meshwork {program}` has not {what} within {seconds} s; it said:\n{said}")]
    Stuck {
        /// Its arguments.
        program: String,
        /// What is missing.
        what: &'static str,
        /// For how long it was waited.
        seconds: u64,
        /// The end of its stderr.
        said: String,
    },
    /// A line that is not what the command promises to print.
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
/// When there is no python3 or, for [`Scenario::Server`], no redis-server; when a program ends by
/// itself or gets stuck; when files cannot be written.
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
