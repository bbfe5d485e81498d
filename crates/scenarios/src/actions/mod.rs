//! Calls of actions whose services are killed: one client with two hundred calls in flight, two services of two worker
//! processes each, and `kill -9` of workers that have actions in hand. What was asked and what came back is known to
//! this program, each start of a handler stands in a file, and what the server was told to answer is read off its
//! `MONITOR`: none of it is asked of Redis. In the end each call was answered once, nothing ran twice without a kill,
//! and nothing is left behind.

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

/// What to play.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The test kit's `actions` command, which is each worker.
    pub actions: PathBuf,
    /// Whose wire.
    pub dialect: Dialect,
    /// How many calls.
    pub calls: usize,
    /// How often a worker is killed; fewer than there are calls.
    pub kills: usize,
    /// Which services are hit; what goes on in them at that moment is the machine's affair.
    pub seed: u64,
}

/// Why it came to no count.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ActionsError {
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
    /// Our client or service.
    #[error(transparent)]
    Actions(#[from] meshwork::protocol::nooble::Error),
    /// This machine lacks a program.
    #[error("there is no {0}: see `cargo xtask test`")]
    Missing(&'static str),
    /// What must not be.
    #[error("{0}")]
    Odd(String),
}

impl ActionsError {
    fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}
