//! Errors of opening a data directory, worded for the person who has to act.

use std::{io, net::SocketAddr, path::PathBuf, time::Duration};

use crate::log::LogError;

/// The reason why [`super::open`] failed. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file system returned an error: a read-only disk, a missing right, no space.
    #[error(
        "data directory {path}: cannot {action}: {source}. Name a directory that can be written"
    )]
    Directory {
        /// The data directory.
        path: PathBuf,
        /// Attempted action.
        action: &'static str,
        /// Error of the system.
        source: io::Error,
    },
    /// The directory or its log was deleted while this process used it through another owner.
    #[error(
        "data directory {path}: it was deleted while this process used it. Restore it, or start this program again to \
         begin with an empty one"
    )]
    Gone {
        /// The data directory.
        path: PathBuf,
    },
    /// The path is not a directory.
    #[error("data directory {path}: is not a directory. Name another, or move the file away")]
    NotADirectory {
        /// The path.
        path: PathBuf,
    },
    /// Another user owns the directory, and could put any file there.
    #[error(
        "data directory {path}: it belongs to user {owner}, and this process runs as user {own}. Run it \
         as user {owner}; or name another directory (MESHWORK_DATA); or take it over: \
         chown -R {own} {path}"
    )]
    Foreign {
        /// The data directory.
        path: PathBuf,
        /// Number of the directory's owner.
        owner: u32,
        /// Number of this process' user.
        own: u32,
    },
    /// Other users can write to the directory, and could put any file there.
    #[error(
        "data directory {path}: other users may write to it (mode {mode:04o}): they could put a log or a \
         socket of their own there. Look at what is in it, and take that away: chmod go-w {path}"
    )]
    Writable {
        /// The data directory.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// A process of another user answers on the directory's socket.
    #[error(
        "data directory {path}: the process that answers on {path}/redis.sock runs as user {user}, and not \
         as {own} or root. Nothing was sent to it. Stop it, and see who could write to the directory"
    )]
    Stranger {
        /// The data directory.
        path: PathBuf,
        /// Number of that process' user.
        user: u32,
        /// Number of this process' user.
        own: u32,
    },
    /// Another process owns the directory and does not answer.
    #[error(
        "data directory {path}: it belongs to another process ({holder}), which has not answered \
         on {path}/redis.sock for {} s. Wait if it is still loading its log; else stop it",
        waited.as_secs_f64()
    )]
    Busy {
        /// The data directory.
        path: PathBuf,
        /// Description of the other process, from the lock file.
        holder: String,
        /// Time for which it was tried.
        waited: Duration,
    },
    /// Another process uses the directory into which something is to be imported.
    #[error("data directory {path}: another process uses it ({holder}). Stop it first")]
    Used {
        /// The data directory.
        path: PathBuf,
        /// Description of the other process, from the lock file.
        holder: String,
    },
    /// The TCP address is not a loopback address; the engine has no passwords.
    #[error("data directory: will not listen on {address}: only loopback addresses are allowed")]
    NotLoopback {
        /// The requested address.
        address: SocketAddr,
    },
    /// The TCP address cannot be listened on.
    #[error("data directory: cannot listen on {address}: {source}")]
    Tcp {
        /// The requested address.
        address: SocketAddr,
        /// Error of the system.
        source: io::Error,
    },
    /// The log cannot be used.
    #[error(transparent)]
    Log(#[from] LogError),
}
