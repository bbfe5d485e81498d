//! Errors of a log, worded for the person who has to act.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::SUMS_FILE;

/// The reason why the log of a data directory cannot be opened or written.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The file system returned an error.
    #[error("log {path}: cannot {action}: {source}")]
    Io {
        /// File or directory.
        path: PathBuf,
        /// Attempted action.
        action: &'static str,
        /// Error of the system.
        source: io::Error,
    },
    /// Bytes in the middle of the file are not a command, and not a torn end either.
    #[error(
        "log {path}: corrupted at byte {offset}: {what}. Nothing was changed. Restore a backup; or \
         copy the file, and let `redis-check-aof --fix {path}` cut off all that follows byte \
         {offset}"
    )]
    Corrupt {
        /// The log.
        path: PathBuf,
        /// Position of the unreadable command.
        offset: u64,
        /// Description of the fault.
        what: String,
    },
    /// The commands are readable, but this engine cannot run one of them.
    #[error(
        "log {path}: the command at byte {offset} cannot be replayed: {reply}. Nothing was changed. \
         If a Redis server wrote it, use that server"
    )]
    Replay {
        /// The log.
        path: PathBuf,
        /// Position of the transaction.
        offset: u64,
        /// Error reply of the command.
        reply: String,
    },
    /// A command selects a database that does not exist.
    #[error(
        "log {path}: the command at byte {offset} selects database {index}; there are {count}. \
         Nothing was changed"
    )]
    Database {
        /// The log.
        path: PathBuf,
        /// Position of the `SELECT`.
        offset: u64,
        /// Selected index.
        index: String,
        /// Number of databases.
        count: usize,
    },
    /// The file begins with an RDB image instead of commands.
    #[error(
        "log {path}: begins with an RDB image, which this engine does not read. Start the Redis server on its directory \
         with --aof-use-rdb-preamble no, run BGREWRITEAOF, wait until aof_rewrite_in_progress in INFO is 0, and stop \
         it; then the files can be imported: meshwork import --aof DIR. Or use that server"
    )]
    Rdb {
        /// The log.
        path: PathBuf,
    },
    /// The manifest of a server's append-only files is missing or wrong.
    #[error("{path}: {fault}. Name the directory of a Redis server, or its `appendonlydir`")]
    Manifest {
        /// The manifest, or the directory without one.
        path: PathBuf,
        /// Description of the fault.
        fault: String,
    },
    /// A log exists where another is to be imported.
    #[error(
        "log {path}: the data directory has data already. Import into an empty one (MESHWORK_DATA); nothing was changed"
    )]
    Present {
        /// The log.
        path: PathBuf,
    },
    /// A stretch of the log differs from its checksum.
    #[error(
        "log {path}: bytes {from} to {to} have changed since they were written: their checksum differs, so a value in \
         them may be wrong. Nothing was changed. Restore a backup; or move {SUMS_FILE} away, to use the log as it is"
    )]
    Damaged {
        /// The log.
        path: PathBuf,
        /// Start of the stretch.
        from: u64,
        /// End of the stretch.
        to: u64,
    },
    /// The lock or the log was deleted or replaced while this process owned the directory.
    #[error(
        "data directory {dir}: {file} was deleted or replaced while this process used the directory. Another process \
         may own it now, so this one writes no more; the log stays as it is. Restore the directory if it was deleted, \
         and start this program again", dir = .dir.display()
    )]
    Lost {
        /// The data directory.
        dir: PathBuf,
        /// Name of the file.
        file: &'static str,
    },
    /// A Redis server was started on the directory and has moved the log to its own directory.
    #[error(
        "data directory {path}: a Redis server has taken it over (there is an `appendonlydir`). \
         Use that server by its URL; or name another data directory. To come back: stop the server, then run \
         `meshwork import --aof {path}` with this data directory"
    )]
    TakenOver {
        /// The data directory.
        path: PathBuf,
    },
}

impl LogError {
    /// Returns a function for `map_err` with the attempted action and its file.
    pub(super) fn io(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io {
            path: path.to_owned(),
            action,
            source,
        }
    }
}
