//! Bananas' client, worker and scheduler as processes of their own, written to the letter of what the real ones send,
//! side by side with ours on one server, in both directions. They are fakes: the real ones need Go and Node. Each start
//! of a job is written down outside of Redis; in the end no job is lost, none stands where it should not, each ran as
//! often as it should, and in the order of its list. In other worlds ours is killed, stopped, or runs jobs over
//! their time. And one measures how soon ours begins a job while it has nothing to do.

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

/// What to play.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The `meshwork` command.
    pub meshwork: PathBuf,
    /// The test kit's `bananas` command, which is all of theirs, and our client and worker.
    pub bananas: PathBuf,
    /// How many jobs, where nobody is killed.
    pub jobs: u64,
    /// How often ours is killed or stopped; and so many jobs run over their time.
    pub kills: u64,
    /// For how long the calls of a worker that waits are counted.
    pub watch: Duration,
}

/// Who is there, and what happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// All makes of their clients, their scheduler and ours; our worker, with one slot.
    OurWorker,
    /// Our client and scheduler; their worker with routes, with one goroutine.
    TheirWorker,
    /// Clients and workers of both, and our scheduler.
    Both,
    /// Clients of theirs and workers of both, while jobs are taken over and given back by a command that is killed
    /// half way, again and again.
    Over,
    /// Our worker is killed, again and again.
    Kill,
    /// Our worker is stopped by SIGTERM, and waits for nothing.
    Stop,
    /// The first run of each job goes over its time.
    Timeout,
    /// Our worker waits at all its lists, and a job comes now and then.
    Idle,
}

impl Scenario {
    /// All of them.
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

    /// The word for it.
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

    /// The scenario of that name.
    ///
    /// # Errors
    /// When there is none; says which there are.
    pub fn from_name(name: &str) -> Result<Self, String> {
        let known = Self::ALL.map(Self::name).join(", ");
        let found = Self::ALL.into_iter().find(|it| it.name() == name);
        found.ok_or_else(|| format!("one of {known}"))
    }
}

/// What came out of a scenario.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Jobs were counted.
    Counted(Report),
    /// Time was taken.
    Measured(Idle),
}

impl Outcome {
    /// Whether everything is as promised.
    #[must_use]
    pub fn holds(&self) -> bool {
        match self {
            Self::Counted(report) => report.holds(),
            Self::Measured(idle) => idle.holds(),
        }
    }

    /// One object of JSON.
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
/// When a program is missing or does what it never should. That jobs were lost is no error but a report.
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

/// Why a scenario came to no end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BananasError {
    /// Files or processes.
    #[error("{what}: {source}")]
    Io {
        /// What was to be done.
        what: String,
        /// Why it was not.
        source: io::Error,
    },
    /// A file of the account.
    #[error("the account: {0}")]
    Account(#[from] io::Error),
    /// The server.
    #[error("the server: {0}")]
    Redis(#[from] redis::RedisError),
    /// Our client or worker.
    #[error(transparent)]
    Meshwork(#[from] meshwork::Error),
    /// A name that is none.
    #[error(transparent)]
    Name(#[from] meshwork_model::name::NameError),
    /// Routes are none.
    #[error(transparent)]
    Routes(#[from] meshwork_model::route::routes::InvalidRoutes),
    /// This machine lacks a program.
    #[error("there is no {0}: see `cargo xtask test`")]
    Missing(&'static str),
    /// What must not be.
    #[error("{0}")]
    Odd(String),
}

impl BananasError {
    fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}
