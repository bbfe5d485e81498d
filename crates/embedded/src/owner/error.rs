//! Why a data directory cannot be opened, in words for the person who has to act on it.

use std::{io, net::SocketAddr, path::PathBuf, time::Duration};

use crate::log::LogError;

/// Why [`super::open`] failed. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file system refused: a read-only disk, missing permission, no space.
    #[error(
        "data directory {path}: cannot {action}: {source}. Name a directory that can be written"
    )]
    Directory {
        /// The data directory.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// There is something else at that path.
    #[error("data directory {path}: is not a directory. Name another, or move the file away")]
    NotADirectory {
        /// The path.
        path: PathBuf,
    },
    /// It is another user's, who could put anything there.
    #[error(
        "data directory {path}: it belongs to user {owner}, and this process runs as user {own}. Run it \
         as user {owner}; or name another directory (MESHWORK_DATA); or take it over: \
         chown -R {own} {path}"
    )]
    Foreign {
        /// The data directory.
        path: PathBuf,
        /// The number of its user.
        owner: u32,
        /// The number of the user of this process.
        own: u32,
    },
    /// Others could put anything there.
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
    /// Somebody else answers for it.
    #[error(
        "data directory {path}: the process that answers on {path}/redis.sock runs as user {user}, and not \
         as {own} or root. Nothing was sent to it. Stop it, and see who could write to the directory"
    )]
    Stranger {
        /// The data directory.
        path: PathBuf,
        /// The number of that process' user.
        user: u32,
        /// The number of the user of this process.
        own: u32,
    },
    /// Another process has the directory and does not answer.
    #[error(
        "data directory {path}: it belongs to another process ({holder}), which has not answered \
         on {path}/redis.sock for {waited:?}. Wait if it is still loading its log; else stop it"
    )]
    Busy {
        /// The data directory.
        path: PathBuf,
        /// What the other process has written about itself.
        holder: String,
        /// How long we tried.
        waited: Duration,
    },
    /// The TCP address is not for this machine alone, and the engine knows no passwords.
    #[error("data directory: will not listen on {address}: only loopback addresses are allowed")]
    NotLoopback {
        /// The address asked for.
        address: SocketAddr,
    },
    /// The TCP address cannot be listened on.
    #[error("data directory: cannot listen on {address}: {source}")]
    Tcp {
        /// The address asked for.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The log was refused.
    #[error(transparent)]
    Log(#[from] LogError),
}
