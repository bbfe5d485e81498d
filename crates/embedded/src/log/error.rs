//! What can be wrong with a log, in words for the person who has to act on it.

use std::{
    io,
    path::{Path, PathBuf},
};

/// Why the log of a data directory cannot be opened or written.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The file system refused.
    #[error("log {path}: cannot {action}: {source}")]
    Io {
        /// The file or directory in question.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// Something in the middle of the file is not a command, and is no torn end either.
    #[error(
        "log {path}: corrupted at byte {offset}: {what}. Nothing was changed. Restore a backup; or \
         copy the file, and let `redis-check-aof --fix {path}` cut off all that follows byte \
         {offset}"
    )]
    Corrupt {
        /// The log.
        path: PathBuf,
        /// Where the command that cannot be read begins.
        offset: u64,
        /// What was found or missed there.
        what: String,
    },
    /// The commands can be read, but this engine cannot carry one out.
    #[error(
        "log {path}: the command at byte {offset} cannot be replayed: {reply}. Nothing was changed. \
         If a Redis server wrote it, go on with that server"
    )]
    Replay {
        /// The log.
        path: PathBuf,
        /// Where the transaction begins.
        offset: u64,
        /// The error that the command answered.
        reply: String,
    },
    /// A database that this engine does not have, and a Redis server would not have either.
    #[error(
        "log {path}: the command at byte {offset} selects database {index}; there are {count}. \
         Nothing was changed"
    )]
    Database {
        /// The log.
        path: PathBuf,
        /// Where the `SELECT` is.
        offset: u64,
        /// What it selects.
        index: String,
        /// How many there are.
        count: usize,
    },
    /// The file begins with an RDB image instead of commands.
    #[error(
        "log {path}: begins with an RDB image, which this engine does not read. Load it into a \
         Redis server with `aof-use-rdb-preamble no`, run BGREWRITEAOF there, and take its .aof \
         file; or use that server"
    )]
    Rdb {
        /// The log.
        path: PathBuf,
    },
    /// A Redis server was started on the directory and has moved the log into its own.
    #[error(
        "data directory {path}: a Redis server has taken it over (there is an `appendonlydir`). \
         Use that server by its URL; or name another data directory. To come back: stop the \
         server, write the .base.aof and .incr.aof files of `appendonlydir`, in this order, into \
         one `appendonly.aof`, and move `appendonlydir` away"
    )]
    TakenOver {
        /// The data directory.
        path: PathBuf,
    },
}

impl LogError {
    /// For `map_err`: what was tried on which file.
    pub(super) fn io(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io {
            path: path.to_owned(),
            action,
            source,
        }
    }
}
