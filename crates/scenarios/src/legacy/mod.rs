//! The legacy world: old workers and old clients as processes of their own, written to the letter of Hero,
//! beside ours, on one server, while a type migrates. Old processes are killed where it hurts: a worker
//! after BLPOP, a client after HSET. Each start of a job is written down outside of Redis; in the end no job
//! is lost or stuck, and none has run twice but where a killed worker had run it already.

mod client;
mod judge;
mod keeper;
mod orders;
mod ours;
mod unmarked;
mod worker;
mod world;

use std::io;
use std::path::PathBuf;

pub use client::{Batch, submit};
pub use judge::Report;
pub use orders::Orders;
pub use ours::work as work_as_ours;
pub use unmarked::{Unmarked, push_both};
pub use worker::work as work_as_old;
pub use world::play;

/// The name of workers of another make that take from one canonical list each.
const TARGET: &str = "target";

/// The type that migrates: the `meshwork` command has a runtime for it that can write a file.
const TYPE: &str = "python";

/// What to play.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The `meshwork` command.
    pub meshwork: PathBuf,
    /// The test kit's `legacy` command.
    pub legacy: PathBuf,
    /// How many jobs.
    pub jobs: u64,
    /// How likely an old process is killed at a job, from 0 to 1.
    pub deadly: f64,
    /// For all choices; what goes on in between is the machine's affair.
    pub seed: u64,
}

/// Which of the three old patterns the world uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OldList {
    /// One list per type.
    Suffix,
    /// One list per actor, named like a job.
    Actor,
    /// One list per worker, which each job names; records say no type.
    Work,
}

impl OldList {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Suffix, Self::Actor, Self::Work];

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Suffix => "suffix",
            Self::Actor => "actor",
            Self::Work => "work",
        }
    }

    /// The pattern of that name.
    ///
    /// # Errors
    /// When there is none; says which there are.
    pub fn from_name(name: &str) -> Result<Self, String> {
        let known = Self::ALL.map(Self::name).join(", ");
        let found = Self::ALL.into_iter().find(|list| list.name() == name);
        found.ok_or_else(|| format!("one of {known}"))
    }

    /// The list of an old worker, and of the clients that know this one.
    fn key(self, worker_id: &str) -> String {
        match self {
            Self::Suffix => "hero:job:actor_queue:python".to_owned(),
            Self::Actor => format!("hero:job:{worker_id}"),
            Self::Work => format!("hero:work_queue:{worker_id}"),
        }
    }

    /// The type in the records of old clients.
    fn script_type(self) -> Option<String> {
        (self != Self::Work).then(|| "Python".to_owned())
    }
}

/// Why the world came to no end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LegacyError {
    /// Files or processes.
    #[error("{what}: {source}")]
    Io {
        /// What was to be done.
        what: String,
        /// Why it was not.
        source: io::Error,
    },
    /// A file of the account, or a signal.
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
    /// This machine lacks a program.
    #[error("there is no {0}: see `cargo xtask test`")]
    Missing(&'static str),
    /// A process that nobody killed.
    #[error("an old process ended by itself: {0}")]
    Ended(String),
    /// A step of the migration that went otherwise than it should.
    #[error("`meshwork migrate {command}` ended with {code:?}; it said:\n{said}")]
    Step {
        /// What was said.
        command: String,
        /// Its exit code.
        code: Option<i32>,
        /// Its answer.
        said: String,
    },
}

impl LegacyError {
    fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}
