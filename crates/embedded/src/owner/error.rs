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
