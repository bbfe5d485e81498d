//! Calls of actions while the workers of the services are killed: one client with two hundred calls in flight, and
//! two services of two worker processes each. `kill -9` hits workers that run actions. This program records each call
//! and its answer, a file records each start of a handler, and `MONITOR` records the answers that the server stores.
//! No record comes from the state in Redis. In the end each call has exactly one answer, no action has run twice
//! without a kill, and no key is left.

mod asks;
mod call;
mod judge;
mod troop;
mod wire;
mod work;
mod world;

use std::io;
use std::path::PathBuf;

use meshwork_model::keys::nooble::Dialect;

pub use judge::Report;
pub use work::{Orders, work};
pub use world::play;

/// Size and choices of a play.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Path of the test kit's `actions` command, of which each worker is a process.
    pub actions: PathBuf,
    /// Dialect of the wire format.
    pub dialect: Dialect,
    /// Number of calls.
    pub calls: usize,
    /// Number of kills; less than the number of calls.
    pub kills: usize,
    /// Seed for the choice of services to hit. The timing differs from run to run.
    pub seed: u64,
}

/// Error that ends a play before its report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ActionsError {
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
    /// Meshwork's client or service failed.
    #[error(transparent)]
    Actions(#[from] meshwork::protocol::nooble::Error),
    /// This machine lacks a program.
    #[error("there is no {0}: see `cargo xtask test`")]
    Missing(&'static str),
    /// A process did something that it never should.
    #[error("{0}")]
    Odd(String),
}

impl ActionsError {
    fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}
