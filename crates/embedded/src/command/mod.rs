//! The commands that need no more than the data: a table, and one function each.

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

/// What a data command works on: the selected database, the time, and what it leaves behind.
///
/// `now_ms` stands still for the length of one command, script or transaction. 0 stands for a
/// replay of the log, in which nothing expires: what had expired is deleted by the log itself.
pub(crate) struct Ctx<'a> {
    pub(crate) store: &'a mut crate::store::Store,
    pub(crate) db: usize,
    pub(crate) now_ms: u64,
    /// The same, but in a replay the real time: when consumers of a stream were last seen.
    pub(crate) clock_ms: u64,
    /// Whether a script runs the command.
    pub(crate) in_script: bool,
    /// Whether the reply goes out as RESP3: pairs with scores are nested there, flat in RESP2.
    /// In scripts RESP2 unless the script says otherwise.
    pub(crate) resp3: bool,
    /// The key for which the command of a blocked client is run again. Only this key is looked
    /// at then; `Stop::Wait` says that it does not serve, and the client waits on.
    pub(crate) woken_by: Option<Bytes>,
    /// The writes done, as commands that a Redis server replays to the same effect (EXPIRE as
    /// PEXPIREAT, SPOP as SREM, a blocking pop as the pop it became). Logged as one transaction.
    pub(crate) effects: &'a mut Vec<crate::store::Effect>,
}

/// Why a command did not answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Stop {
    /// The error reply, with its code.
    Error(String),
    /// Nothing there yet: wait for one of `keys`; `timeout_ms` 0 is for ever. In scripts and
    /// transactions, and when the time is over, the engine answers `otherwise`. When one of the
    /// keys may serve, it runs `again`, or the command as it was sent.
    Wait {
        keys: Vec<Bytes>,
        timeout_ms: u64,
        otherwise: Reply,
        again: Option<Vec<Bytes>>,
    },
}

/// The outcome of a command.
pub(crate) type Outcome = Result<Reply, Stop>;

/// A command that needs no more than the data. `args[0]` is its name; the number of arguments
/// has been checked against the table.
pub(crate) type DataFn = fn(&mut Ctx<'_>, &[Bytes]) -> Outcome;

/// The commands that need no more than the data.
pub(crate) fn data_commands() -> &'static [Spec] {
    data::COMMANDS
}

#[cfg(test)]
mod tests;
