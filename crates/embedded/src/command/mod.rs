//! The commands that need only the data: a table, and one function each.

pub(crate) mod args;
mod ctx;
mod data;
mod glob;
mod hash;
mod key;
mod list;
mod memory;
mod number;
mod scan;
mod set;
mod spec;
mod stream;
mod string;
mod zset;

use bytes::Bytes;

use crate::Reply;
pub(crate) use glob::glob_match;
pub(crate) use spec::{Flags, Keys, Spec};

use ctx::{decimal, word};

/// State for a data command: the data, the selected database, the time, and the recorded writes.
///
/// `now_ms` is constant during one command, script or transaction. 0 means a replay of the log, in which nothing
/// expires: the log itself deletes expired keys.
pub(crate) struct Ctx<'a> {
    pub(crate) store: &'a mut crate::store::Store,
    pub(crate) db: usize,
    pub(crate) now_ms: u64,
    /// The same time, but in a replay the real one: for the last activity of a stream's consumers.
    pub(crate) clock_ms: u64,
    /// True if a script runs the command.
    pub(crate) in_script: bool,
    /// True if the reply is sent as RESP3, where pairs with scores are nested; in RESP2 they are flat. Scripts use
    /// RESP2 unless they choose otherwise.
    pub(crate) resp3: bool,
    /// The key for which the command of a blocked client is run again. Only this key is tried; `Stop::Wait` means
    /// that it does not serve, and the client stays blocked.
    pub(crate) woken_by: Option<Bytes>,
    /// The writes of the command, as commands with the same effect in a replay by a Redis server (EXPIRE as
    /// PEXPIREAT, SPOP as SREM, a blocking pop as a pop). They are logged as one transaction.
    pub(crate) effects: &'a mut Vec<crate::store::Effect>,
}

/// The reason why a command returned no reply.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Stop {
    /// An error reply, with its code.
    Error(String),
    /// No element yet: the client waits for one of `keys`; `timeout_ms` 0 means no limit. In scripts and
    /// transactions, and after the timeout, the engine replies `otherwise`. When one of the keys may serve, it runs
    /// `again`, or the original command.
    Wait {
        keys: Vec<Bytes>,
        timeout_ms: u64,
        otherwise: Reply,
        again: Option<Vec<Bytes>>,
    },
}

/// The outcome of a command.
pub(crate) type Outcome = Result<Reply, Stop>;

/// A command that needs only the data. `args[0]` is its name; the number of arguments has been checked against the
/// table.
pub(crate) type DataFn = fn(&mut Ctx<'_>, &[Bytes]) -> Outcome;

/// Returns the commands that need only the data.
pub(crate) fn data_commands() -> &'static [Spec] {
    data::COMMANDS
}

#[cfg(test)]
mod tests;
