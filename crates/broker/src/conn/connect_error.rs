//! Errors of connecting: what the server says, with a remedy.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::{TargetError, Unsuitable};
use crate::error::passes;

/// System errors that another try meets again: a refused certificate, an invalid address, or a socket that this user
/// may not open.
const LASTING: [io::ErrorKind; 3] = [
    io::ErrorKind::InvalidData,
    io::ErrorKind::InvalidInput,
    io::ErrorKind::PermissionDenied,
];

impl ConnectError {
    /// Returns whether another try may succeed later: no answer, a name that does not resolve, a server that is
    /// loading, or a change of roles. (Names of containers disappear while they restart.) Refused credentials,
    /// databases, certificates and servers are permanent.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Loading { .. } | Self::Closed { .. } => true,
            Self::Unreachable { source, .. } => match std::error::Error::source(source) {
                Some(cause) if source.is_io_error() => {
                    io_kind(cause).is_some_and(|kind| !LASTING.contains(&kind))
                }
                _ => source.is_io_error() || passes(source),
            },
            _ => false,
        }
    }

    /// Adapts the error to a connection for the keys of another system, whose first part is its prefix.
    pub(crate) fn of_prefix(self) -> Self {
        match self {
            Self::Untagged {
                place, namespace, ..
            } => Self::Untagged {
                place,
                namespace,
                option: "--prefix",
            },
            other => other,
        }
    }
}

/// Returns the kind of the system error that the redis crate keeps in an `Arc`.
fn io_kind(cause: &(dyn std::error::Error + 'static)) -> Option<io::ErrorKind> {
    let cause = cause.downcast_ref::<Arc<dyn std::error::Error + Send + Sync>>()?;
    Some(cause.downcast_ref::<io::Error>()?.kind())
}

/// Command that examines a cluster.
pub(super) const CHECK: &str = "`redis-cli --cluster check`";

/// Returns what to do, unless the error says it.
fn remedy(source: &redis::RedisError) -> &'static str {
    match source.detail().is_some_and(|detail| detail.contains(CHECK)) {
        true => "",
        false => "; is the server running, and is the address right?",
    }
}

/// The reason why a connection failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The target is not valid.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The server does not answer.
    #[error("no answer from {place}: {source}{}", remedy(source))]
    Unreachable {
        /// The server, without secrets.
        place: String,
        /// Error of the connection.
        source: redis::RedisError,
    },
    /// The server closes new connections, and says why: it has too many clients, for example.
    #[error("{place} closes new connections: {said}; CONFIG SET maxclients allows more clients")]
    Closed {
        /// The server, without secrets.
        place: String,
        /// Message of the server.
        said: String,
    },
    /// Another kind of server answers.
    #[error("{place}: {said}")]
    NoRedis {
        /// The server, without secrets.
        place: String,
        /// The kind of server, with a remedy.
        said: String,
    },
    /// The sentinels refuse the credentials.
    #[error(
        "{place}: the sentinels refuse the credentials: {reason}; their login is ?sentinel_username=…&sentinel_password=… \
         in the URL, the one before @ is for the servers"
    )]
    RefusedBySentinels {
        /// The service and its sentinels, without secrets.
        place: String,
        /// Message of the sentinel.
        reason: String,
    },
    /// The TLS handshake failed.
    #[error("no TLS connection to {place}: {reason}")]
    Tls {
        /// The server, without secrets.
        place: String,
        /// The reason, with a remedy.
        reason: String,
    },
    /// The server has fewer databases.
    #[error("{place} has no such database; look at the number at the end of the URL")]
    NoDatabase {
        /// The server, without secrets.
        place: String,
        /// Error of the connection.
        source: redis::RedisError,
    },
    /// The data directory cannot be opened.
    #[error("{source}")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The reason, with a remedy.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The server is still loading its data.
    #[error("{place} is still loading its data from disk; try again when it has")]
    Loading {
        /// The server, without secrets.
        place: String,
    },
    /// The server refuses the credentials.
    #[error("{place} refuses the credentials: {reason}; check user and password in the URL")]
    Refused {
        /// The server, without secrets.
        place: String,
        /// Message of the server.
        reason: String,
    },
    /// The server is not suitable for jobs.
    #[error("{place} cannot be used: {reason}")]
    Unsuitable {
        /// The server, without secrets.
        place: String,
        /// The reason, with a remedy.
        reason: Unsuitable,
    },
    /// The server is a cluster, which would spread the keys of the namespace over its nodes.
    #[error(
        "{place} is a Redis Cluster, where all keys of a namespace must share a slot: \
         give it a hash tag, as in {option} '{{{namespace}}}'"
    )]
    Untagged {
        /// The server, without secrets.
        place: String,
        /// The namespace.
        namespace: String,
        /// Option of the command that sets the namespace.
        option: &'static str,
    },
}

#[cfg(test)]
mod tests {
    use redis::{ErrorKind, RedisError};

    use super::*;

    fn unreachable(source: impl Into<RedisError>) -> ConnectError {
        ConnectError::Unreachable {
            place: "redis://h".to_owned(),
            source: source.into(),
        }
    }

    #[test]
    fn a_server_that_is_away_may_come_back() {
        for kind in [
            io::ErrorKind::ConnectionRefused,
            io::ErrorKind::ConnectionReset,
            io::ErrorKind::TimedOut,
            io::ErrorKind::NotFound,
            io::ErrorKind::Other,
        ] {
            let error = unreachable(io::Error::from(kind));
            assert!(error.is_temporary(), "{kind}");
        }
        assert!(unreachable((ErrorKind::Io, "a failover is under way")).is_temporary());
        let place = "redis://h".to_owned();
        assert!(ConnectError::Loading { place }.is_temporary());
    }

    #[test]
    fn what_is_refused_stays_refused() {
        let certificate = "invalid peer certificate: UnknownIssuer";
        let unknown = ErrorKind::MasterNameNotFoundBySentinel;
        let refused = ConnectError::Refused {
            place: "redis://h".to_owned(),
            reason: "WRONGPASS".to_owned(),
        };
        for error in [
            unreachable(io::Error::new(io::ErrorKind::InvalidData, certificate)),
            unreachable(io::Error::from(io::ErrorKind::PermissionDenied)),
            unreachable((unknown, "no such service")),
            unreachable((ErrorKind::InvalidClientConfig, "a bad certificate")),
            refused,
        ] {
            assert!(!error.is_temporary(), "{error}");
        }
    }
}
