//! Clients, workers and schedulers of Bananas and of Meshwork on one server, each as a process. Those of Bananas are
//! fakes that send exactly the commands of the real ones, which need Go and Node. A file outside of Redis records
//! each start of a job. In the end no job is lost, and no list has entries that it should not. Each job has run as
//! often as it should, and in the order of its list. In other scenarios the Meshwork worker is killed, stopped, or
//! runs jobs beyond their timeout. One scenario measures the latency of an idle Meshwork worker.

mod client;
mod idle;
mod judge;
mod kills;
mod orders;
mod ours;
mod over;
mod record;
mod scheduler;
mod worker;
mod world;

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

pub use client::submit as submit_as_theirs;
pub use idle::{Idle, Pickup};
pub use judge::Report;
pub use orders::{Batch, Orders, Shift};
pub use ours::{submit as submit_as_ours, work as work_as_ours, work_over};
pub use scheduler::schedule;
pub use worker::work as work_as_theirs;

use serde_json::Value;

/// Size of a play.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Path of the `meshwork` command.
    pub meshwork: PathBuf,
    /// Path of the test kit's `bananas` command: all processes of Bananas, and Meshwork's client and worker.
    pub bananas: PathBuf,
    /// Number of jobs in scenarios without kills.
    pub jobs: u64,
    /// Number of kills or stops of the Meshwork worker, or of jobs that exceed their timeout.
    pub kills: u64,
    /// Time for which the calls of an idle worker are counted.
    pub watch: Duration,
}

/// Participants and events of a play.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// Clients of all variants of Bananas, a scheduler of Bananas and one of Meshwork; a Meshwork worker with one
    /// slot.
    OurWorker,
    /// Client and scheduler of Meshwork; a worker of Bananas with routes and one goroutine.
    TheirWorker,
    /// Clients and workers of both systems, and a Meshwork scheduler.
    Both,
    /// Clients of Bananas and workers of both systems, while a command imports and exports jobs. The command is
    /// killed half-way again and again.
    Over,
    /// The Meshwork worker is killed again and again.
    Kill,
    /// The Meshwork worker is stopped by SIGTERM, without a grace period.
    Stop,
    /// The first run of each job exceeds its timeout.
    Timeout,
    /// The Meshwork worker is idle at all its lists, and a job comes now and then.
    Idle,
}

impl Scenario {
    /// All scenarios.
    pub const ALL: [Self; 8] = [
        Self::OurWorker,
        Self::TheirWorker,
        Self::Both,
        Self::Over,
        Self::Kill,
        Self::Stop,
        Self::Timeout,
        Self::Idle,
    ];

    /// Returns the name of the scenario.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OurWorker => "our-worker",
            Self::TheirWorker => "their-worker",
            Self::Both => "both",
            Self::Over => "over",
            Self::Kill => "kill",
            Self::Stop => "stop",
            Self::Timeout => "timeout",
            Self::Idle => "idle",
        }
    }

    /// Returns the scenario with this name.
    ///
    /// # Errors
    /// No scenario has this name; the error lists the names.
    pub fn from_name(name: &str) -> Result<Self, String> {
        let known = Self::ALL.map(Self::name).join(", ");
        let found = Self::ALL.into_iter().find(|it| it.name() == name);
        found.ok_or_else(|| format!("one of {known}"))
    }
}

/// Result of a scenario.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Jobs were counted.
    Counted(Report),
    /// Latencies were measured.
    Measured(Idle),
}

impl Outcome {
    /// Returns true if all promises hold.
    #[must_use]
    pub fn holds(&self) -> bool {
        match self {
            Self::Counted(report) => report.holds(),
            Self::Measured(idle) => idle.holds(),
        }
    }

    /// Returns the result as a JSON object.
    #[must_use]
    pub fn json(&self) -> Value {
        match self {
            Self::Counted(report) => report.json(),
            Self::Measured(idle) => idle.json(),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Counted(report) => report.fmt(f),
            Self::Measured(idle) => idle.fmt(f),
        }
    }
}

/// Plays one scenario on a server of its own.
///
/// # Errors
/// A program is missing or does something that it never should. Lost jobs are no error: the report lists them.
pub async fn play(plan: &Plan, scenario: Scenario) -> Result<Outcome, BananasError> {
    let report = match scenario {
        Scenario::OurWorker | Scenario::TheirWorker | Scenario::Both => {
            world::play(plan, scenario).await?
        }
        Scenario::Over => over::play(plan).await?,
        Scenario::Kill | Scenario::Stop | Scenario::Timeout => kills::play(plan, scenario).await?,
        Scenario::Idle => return Ok(Outcome::Measured(idle::play(plan).await?)),
    };
    Ok(Outcome::Counted(report))
}

/// Error that ends a scenario before its result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BananasError {
    /// Files or processes failed.
    #[error("{what}: {source}")]
    Io {
        /// Attempted operation.
        what: String,
        /// Cause.
        source: io::Error,
    },
    /// A file of the records could not be read or written.
    #[error("the account: {0}")]
    Account(#[from] io::Error),
    /// The server failed.
    #[error("the server: {0}")]
    Redis(#[from] redis::RedisError),
    /// Meshwork's client or worker failed.
    #[error(transparent)]
    Meshwork(#[from] meshwork::Error),
    /// A name is invalid.
    #[error(transparent)]
    Name(#[from] meshwork_model::name::NameError),
    /// The routes are invalid.
    #[error(transparent)]
    Routes(#[from] meshwork_model::route::routes::InvalidRoutes),
    /// This machine lacks a program.
    #[error("there is no {0}: see `cargo xtask test`")]
    Missing(&'static str),
    /// A process did something that it never should.
    #[error("{0}")]
    Odd(String),
}

impl BananasError {
    fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}
