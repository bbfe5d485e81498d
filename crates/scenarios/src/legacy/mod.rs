//! Migration from an old system: old workers and old clients with exactly the commands of Hero, and Meshwork, on one
//! server while a type migrates. Old processes are killed at the worst points: a worker after BLPOP, a client after
//! HSET. A file outside of Redis records each start of a job. In the end no job is lost or stuck. Only jobs that a
//! killed worker had already run have run twice.

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

/// Name of foreign workers that each take from one canonical list.
const TARGET: &str = "target";

/// The type that migrates: the `meshwork` command has a runtime for it that can write a file.
const TYPE: &str = "python";

/// Size and choices of a play.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The `meshwork` command.
    pub meshwork: PathBuf,
    /// The test kit's `legacy` command.
    pub legacy: PathBuf,
    /// Number of jobs.
    pub jobs: u64,
    /// Probability that an old process is killed at a job, from 0 to 1.
    pub deadly: f64,
    /// Seed of all choices. The timing differs from run to run.
    pub seed: u64,
}

/// Pattern of the old lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OldList {
    /// One list for each type.
    Suffix,
    /// One list for each actor, named like a job.
    Actor,
    /// One list for each worker, which each job names; records have no type.
    Work,
}

impl OldList {
    /// All patterns.
    pub const ALL: [Self; 3] = [Self::Suffix, Self::Actor, Self::Work];

    /// Returns the name of the pattern.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Suffix => "suffix",
            Self::Actor => "actor",
            Self::Work => "work",
        }
    }

    /// Returns the pattern with this name.
    ///
    /// # Errors
    /// No pattern has this name; the error lists the names.
    pub fn from_name(name: &str) -> Result<Self, String> {
        let known = Self::ALL.map(Self::name).join(", ");
        let found = Self::ALL.into_iter().find(|list| list.name() == name);
        found.ok_or_else(|| format!("one of {known}"))
    }

    /// Returns the list of an old worker, and of the clients that know this worker.
    fn key(self, worker_id: &str) -> String {
        match self {
            Self::Suffix => "hero:job:actor_queue:python".to_owned(),
            Self::Actor => format!("hero:job:{worker_id}"),
            Self::Work => format!("hero:work_queue:{worker_id}"),
        }
    }

    /// Returns the type in the records of old clients.
    fn script_type(self) -> Option<String> {
        (self != Self::Work).then(|| "Python".to_owned())
    }
}

/// Error that ends a play before its report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LegacyError {
    /// Files or processes failed.
    #[error("{what}: {source}")]
    Io {
        /// Attempted operation.
        what: String,
        /// Cause.
        source: io::Error,
    },
    /// A file of the records, or a signal, failed.
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
    /// This machine lacks a program.
    #[error("there is no {0}: see `cargo xtask test`")]
    Missing(&'static str),
    /// A process ended that was not killed.
    #[error("an old process ended by itself: {0}")]
    Ended(String),
    /// A step of the migration had an unexpected result.
    #[error("`meshwork migrate {command}` ended with {code:?}; it said:\n{said}")]
    Step {
        /// The command.
        command: String,
        /// Its exit code.
        code: Option<i32>,
        /// Its output.
        said: String,
    },
}

impl LegacyError {
    fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}
