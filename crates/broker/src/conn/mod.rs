//! The way to the data: a server ([`remote`], found by [`locate`]) or the embedded engine ([`directory`]),
//! behind one type that the `redis` crate takes for a connection. What is sent over it is the verbs' business.

mod check;
mod dial;
mod directory;
mod ear;
mod locate;
mod remote;
mod socket;
mod target;
mod tls;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use meshwork_embedded::{Handle, Options};
use meshwork_model::name::Namespace;
use redis::{Arg, Cmd, ErrorKind, Pipeline, RedisError, RedisFuture, RedisResult, Value};

use crate::Outages;
use crate::error::{passes, timed_out};
pub use check::Unfit;
pub(crate) use dial::CLIENT_NAME;
pub use ear::{Ear, Heard};
pub(crate) use target::Security;
pub use target::{Server, Target, TargetError, TlsFiles};

/// How long a command that does not block may take, reconnecting included: while the server is down a call
/// would else hang through all retries.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

async fn in_time<T>(
    limit: Option<Duration>,
    call: impl Future<Output = RedisResult<T>>,
) -> RedisResult<T> {
    match limit {
        Some(limit) => tokio::time::timeout(limit, call)
            .await
            .unwrap_or_else(|_| Err(timed_out())),
        None => call.await,
    }
}

/// What a call says whose connection leads nowhere any more: whether it took effect is not known.
fn gone(why: &'static str) -> RedisError {
    (ErrorKind::Io, why).into()
}

/// What only looks, and may be asked again whether or not it was carried out. What changes something is for
/// the caller to repeat.
const READS: [&[u8]; 11] = [
    b"GET",
    b"HGET",
    b"HGETALL",
    b"HMGET",
    b"INFO",
    b"LLEN",
    b"SCAN",
    b"TIME",
    b"ZCARD",
    b"ZRANGE",
    b"ZRANGEBYSCORE",
];

fn only_looks(cmd: &Cmd) -> bool {
    matches!(cmd.args_iter().next(), Some(Arg::Simple(name)) if READS.contains(&name))
}

/// What carries commands to the data and replies back. The seam between the verbs and the engines; tests
/// put a faulty one in.
pub trait Transport: Send + Sync + 'static {
    /// Sends one command that does not block.
    fn call<'a>(&'a self, cmd: &'a Cmd) -> RedisFuture<'a, Value>;

    /// Sends several at once and returns `count` replies from the one at `offset` on.
    fn call_many<'a>(
        &'a self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>>;

    /// A connection of its own for a command that waits: it has no time limit, and holds nobody else up.
    fn dedicated(&self) -> BoxFuture<'_, RedisResult<Conn>>;

    /// A connection of its own that hears what others publish.
    fn ear(&self) -> BoxFuture<'_, RedisResult<Ear>>;

    /// A connection to another database of the same store. Default: there is none.
    fn in_database(&self, _: u32) -> BoxFuture<'_, RedisResult<Conn>> {
        let error = (
            ErrorKind::InvalidClientConfig,
            "there is one database alone",
        );
        Box::pin(std::future::ready(Err(error.into())))
    }

    /// The selected database.
    fn db(&self) -> i64 {
        0
    }
}

/// A connection; cheap to clone.
#[derive(Clone)]
pub struct Conn {
    transport: Arc<dyn Transport>,
    outages: Arc<Outages>,
}

impl Conn {
    /// A connection over `transport`.
    #[must_use]
    pub fn new(transport: impl Transport) -> Self {
        Self {
            transport: Arc::new(transport),
            outages: Arc::default(),
        }
    }

    /// Connects to `target` and makes sure that what answers there is fit to keep jobs. In a cluster, the
    /// connection leads to the node that keeps `namespace`, wherever it moves.
    ///
    /// # Errors
    /// If nobody answers, the credentials are refused, the server would lose jobs ([`Unfit`]), or it
    /// belongs to a cluster and the namespace has no hash tag.
    pub async fn open(target: &Target, namespace: &Namespace) -> Result<Self, ConnectError> {
        match target {
            Target::Server(server) => remote::connect(server, namespace).await,
            Target::Directory(path) => {
                let conn = directory::open(path, Options::default()).await?;
                let place = target.place();
                check::ask(&mut conn.clone(), &place).await?.fit(&place)?;
                Ok(conn)
            }
        }
    }

    /// Connects to `target` without asking whether it is fit: to find out what is wrong with it.
    pub(crate) async fn reach(
        target: &Target,
        namespace: &Namespace,
    ) -> Result<Self, ConnectError> {
        match target {
            Target::Server(server) => remote::reach(server, namespace).await,
            Target::Directory(path) => directory::open(path, Options::default()).await,
        }
    }

    /// Connects to an engine that runs in this process.
    #[must_use]
    pub fn embedded(engine: &Handle) -> Self {
        directory::in_memory(engine)
    }

    /// A connection of its own for a command that waits.
    ///
    /// # Errors
    /// If it cannot be made.
    pub async fn dedicated(&self) -> RedisResult<Self> {
        let conn = self.transport.dedicated().await?;
        let outages = Arc::clone(&self.outages);
        Ok(Self { outages, ..conn })
    }

    /// A connection to the database of this number, of the same store: this one if it is there already.
    ///
    /// # Errors
    /// If it cannot be made, or the store has fewer databases.
    pub async fn in_database(&self, database: u32) -> RedisResult<Self> {
        if self.transport.db() == i64::from(database) {
            return Ok(self.clone());
        }
        let conn = self.transport.in_database(database).await?;
        let outages = Arc::clone(&self.outages);
        Ok(Self { outages, ..conn })
    }

    /// What fails over this connection, and those made from it.
    #[must_use]
    pub fn outages(&self) -> &Outages {
        &self.outages
    }

    /// A connection of its own that hears what others publish.
    ///
    /// # Errors
    /// If it cannot be made.
    pub async fn ear(&self) -> RedisResult<Ear> {
        self.transport.ear().await
    }
}

impl std::fmt::Debug for Conn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Conn").finish()
    }
}

impl redis::aio::ConnectionLike for Conn {
    fn req_packed_command<'a>(&'a mut self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        self.transport.call(cmd)
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        self.transport.call_many(pipeline, offset, count)
    }

    fn get_db(&self) -> i64 {
        self.transport.db()
    }
}

/// Kinds of system errors that the same try meets again: a certificate is refused, the address cannot be, or this user
/// may not open the socket.
const LASTING: [io::ErrorKind; 3] = [
    io::ErrorKind::InvalidData,
    io::ErrorKind::InvalidInput,
    io::ErrorKind::PermissionDenied,
];

impl ConnectError {
    /// Returns whether another try may succeed a little later: nobody answers, the name does not resolve (those of
    /// containers are gone while they restart), the server is loading its data, or roles are changing. Credentials,
    /// databases, certificates and servers that are refused stay refused.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Loading { .. } => true,
            Self::Unreachable { source, .. } => match std::error::Error::source(source) {
                Some(cause) if source.is_io_error() => {
                    io_kind(cause).is_some_and(|kind| !LASTING.contains(&kind))
                }
                _ => source.is_io_error() || passes(source),
            },
            _ => false,
        }
    }

    /// Of a connection for the keys of another system, whose first part is its prefix.
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

/// The kind of the system error that the redis crate keeps in an `Arc`.
fn io_kind(cause: &(dyn std::error::Error + 'static)) -> Option<io::ErrorKind> {
    let cause = cause.downcast_ref::<Arc<dyn std::error::Error + Send + Sync>>()?;
    Some(cause.downcast_ref::<io::Error>()?.kind())
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The place was named wrongly.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// Nobody answers there.
    #[error("no answer from {place}: {source}; is the server running, and is the address right?")]
    Unreachable {
        /// Where, without secrets.
        place: String,
        /// What the connection said.
        source: redis::RedisError,
    },
    /// Server and client do not agree on TLS.
    #[error("no TLS connection to {place}: {reason}")]
    Tls {
        /// Where, without secrets.
        place: String,
        /// Why not, and what to do.
        reason: String,
    },
    /// It has fewer databases.
    #[error("{place} has no such database; look at the number at the end of the URL")]
    NoDatabase {
        /// Where, without secrets.
        place: String,
        /// What the connection said.
        source: redis::RedisError,
    },
    /// The data directory cannot be opened.
    #[error("{source}")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why not, and what to do.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The server was started a moment ago.
    #[error("{place} is still loading its data from disk; try again when it has")]
    Loading {
        /// Where, without secrets.
        place: String,
    },
    /// The server does not let us in.
    #[error("{place} refuses the credentials: {reason}; check user and password in the URL")]
    Refused {
        /// Where, without secrets.
        place: String,
        /// What the server said.
        reason: String,
    },
    /// The server answers, but is not fit to keep jobs.
    #[error("{place} cannot be used: {reason}")]
    Unfit {
        /// Where, without secrets.
        place: String,
        /// Why not, and what to do.
        reason: Unfit,
    },
    /// A cluster would spread the keys of the namespace over its nodes.
    #[error(
        "{place} is a Redis Cluster, where all keys of a namespace must share a slot: \
         give it a hash tag, as in {option} '{{{namespace}}}'"
    )]
    Untagged {
        /// Where, without secrets.
        place: String,
        /// The namespace.
        namespace: String,
        /// The command's option for it.
        option: &'static str,
    },
}

#[cfg(test)]
mod tests {
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
