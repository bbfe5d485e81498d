//! Connections to the data: a server ([`remote`], found by [`locate`]) or the embedded engine ([`directory`]), behind
//! one type that implements the `redis` crate's connection. The verbs decide what is sent.

mod connect_error;
mod dial;
#[cfg(feature = "embedded")]
mod directory;
mod locate;
#[cfg(not(feature = "embedded"))]
mod no_directory;
mod remote;
mod requirements;
mod shared;
mod socket;
mod stranger;
mod subscriber;
mod target;
mod tls;

use meshwork_macros::boxed;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
#[cfg(feature = "embedded")]
pub use meshwork_embedded::{
    Clock as StoreClock, Handle, StoreCheck, check_store, import_aof, repair_store,
};
use meshwork_model::name::Namespace;
use redis::{
    Arg, Cmd, ConnectionAddr, ErrorKind, Pipeline, RedisError, RedisFuture, RedisResult, Value,
};
use tokio::sync::OnceCell;

use crate::Outages;
use crate::error::{moves, timed_out};
pub use connect_error::ConnectError;
pub(crate) use dial::CLIENT_NAME;
pub use locate::SlotMap;
#[cfg(not(feature = "embedded"))]
use no_directory as directory;
pub use requirements::Unsuitable;
pub(crate) use requirements::evicts;
pub(crate) use shared::SharedConn;
pub use subscriber::{Heard, Subscriber};
pub(crate) use target::Security;
pub use target::{Server, Target, TargetError, TlsFiles};
pub use tls::connect_by_tls;

/// Timeout of a command that does not block, with reconnects. Without it, a call would hang through all retries while
/// the server is down.
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

/// Returns the error of a call whose connection was lost. It is unknown whether the call took effect.
fn gone(why: &'static str) -> RedisError {
    (ErrorKind::Io, why).into()
}

/// Names a node of a cluster in the error of its connection. Errors with details are those of servers.
fn of_node(node: &ConnectionAddr, error: RedisError) -> RedisError {
    if !error.is_io_error() || error.detail().is_some() || tls::reason(&error).is_some() {
        return error;
    }
    let kind = match () {
        () if error.is_timeout() => io::ErrorKind::TimedOut,
        () if error.is_connection_refusal() => io::ErrorKind::ConnectionRefused,
        () => io::ErrorKind::NotConnected,
    };
    io::Error::new(kind, format!("node {node}: {error}")).into()
}

/// Codes of a cluster's errors that are about a slot, or about the node that should have it, beside those of [`moves`].
const OF_SLOT: [&str; 5] = ["CLUSTERDOWN", "LOADING", "MASTERDOWN", "MOVED", "READONLY"];

/// Names the slot and its node in an error of a cluster.
fn of_slot(slot: u16, node: &ConnectionAddr, error: RedisError) -> RedisError {
    let code = error.code();
    let code = code.filter(|code| OF_SLOT.contains(code) || moves(&error));
    let Some(code) = code.map(str::to_owned) else {
        return of_node(node, error);
    };
    let detail = error.detail().unwrap_or_default();
    let detail = format!("slot {slot} at node {node}: {detail}");
    redis::make_extension_error(code, Some(detail))
}

/// Commands that only read, and are repeated automatically. Callers repeat the others.
const READS: [&[u8]; 12] = [
    b"EVALSHA_RO",
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

/// Returns true for a command that changes nothing, so that it can be repeated after a lost connection.
fn is_read_only(cmd: &Cmd) -> bool {
    matches!(cmd.args_iter().next(), Some(Arg::Simple(name)) if READS.contains(&name))
}

/// Receives a key that was read and has changed since; `None` if any of those that were read may have changed.
pub type Changed = Arc<dyn Fn(Option<&[u8]>) + Send + Sync>;

/// Carries commands to the data and replies back: the interface between verbs and engines. Tests use it to inject
/// faults.
pub trait Transport: Send + Sync + 'static {
    /// Sends one command that does not block.
    fn call<'a>(&'a self, cmd: &'a Cmd) -> RedisFuture<'a, Value>;

    /// Sends several commands at once and returns `count` replies from the one at `offset` on.
    fn call_many<'a>(
        &'a self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>>;

    /// Opens a separate connection for blocking commands. It has no timeout, and delays no other calls.
    fn dedicated(&self) -> BoxFuture<'_, RedisResult<Conn>>;

    /// Opens a separate connection that receives published messages.
    fn subscriber(&self) -> BoxFuture<'_, RedisResult<Subscriber>>;

    /// Opens a separate connection that reports changes of the keys that it has read, and returns the address of its
    /// server. Default: `None`, the store does not report changes.
    fn tracking(&self, _: Changed) -> BoxFuture<'_, RedisResult<Option<(Conn, String)>>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Opens a connection to another database of the same store. Default: an error.
    fn in_database(&self, _: u32) -> BoxFuture<'_, RedisResult<Conn>> {
        let error = (
            ErrorKind::InvalidClientConfig,
            "there is one database alone",
        );
        Box::pin(std::future::ready(Err(error.into())))
    }

    /// Returns a connection for the slot of `key`, if the store is a cluster. Default: `None`.
    fn of_key(&self, _: &str) -> Option<Conn> {
        None
    }

    /// Returns true for a cluster, whose nodes divide the keys. Default: false.
    fn is_cluster(&self) -> bool {
        false
    }

    /// Returns the owners of all slots of a cluster. Default: `None`.
    fn slots(&self) -> BoxFuture<'_, RedisResult<Option<SlotMap>>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Returns the selected database.
    fn db(&self) -> i64 {
        0
    }

    /// Returns false while a lost connection is being opened again. Default: true.
    fn is_connected(&self) -> bool {
        true
    }

    /// Returns true if only the user of this process reaches the data. Default: false.
    fn is_private(&self) -> bool {
        false
    }

    /// Waits until the data is lost for this process for good, and returns the reason. Default: never.
    fn lost(&self) -> BoxFuture<'static, String> {
        Box::pin(std::future::pending())
    }
}

/// A connection; cheap to clone.
#[derive(Clone)]
pub struct Conn {
    transport: Arc<dyn Transport>,
    shared: Arc<SharedState>,
}

/// State of all connections that were opened from one.
#[derive(Debug, Default)]
struct SharedState {
    outages: Outages,
    /// Set when the keys of the node are where a Cluster needs them.
    node_keys: OnceCell<()>,
}

impl Conn {
    /// Returns a connection over `transport`.
    #[must_use]
    pub fn new(transport: impl Transport) -> Self {
        Self {
            transport: Arc::new(transport),
            shared: Arc::default(),
        }
    }

    /// Connects to `target` and checks that the server is suitable for jobs. In a cluster, the connection follows the
    /// node that owns the slot of `namespace`.
    ///
    /// # Errors
    /// The server does not answer, refuses the credentials, or would lose jobs ([`Unsuitable`]); or it belongs to a
    /// cluster and the namespace has no hash tag.
    #[boxed]
    pub async fn open(target: &Target, namespace: &Namespace) -> Result<Self, ConnectError> {
        match target {
            Target::Server(server) => Box::pin(remote::connect(server, namespace)).await,
            Target::Directory(path) => {
                let conn = directory::open(path).await?;
                let place = target.place();
                requirements::read_info(&mut conn.clone(), &place)
                    .await?
                    .check(&place)?;
                Ok(conn)
            }
        }
    }

    /// Connects to `target` without checks, for diagnosis.
    pub(crate) async fn reach(
        target: &Target,
        namespace: &Namespace,
    ) -> Result<Self, ConnectError> {
        let conn = match target {
            Target::Server(server) => remote::reach(server, namespace).await,
            Target::Directory(path) => directory::open(path).await,
        }?;
        // A diagnosis moves no keys.
        let _ = conn.node_keys().set(());
        Ok(conn)
    }

    /// Creates a store in the memory of this process. It ends with its last connection.
    #[cfg(feature = "embedded")]
    #[must_use]
    pub fn in_memory() -> Self {
        Self::embedded(&Handle::in_memory())
    }

    /// As [`Conn::in_memory`], with a clock that tests advance.
    #[cfg(feature = "embedded")]
    #[must_use]
    pub fn in_memory_with_clock(clock: &StoreClock) -> Self {
        Self::embedded(&Handle::with_clock(clock.clone()))
    }

    /// Connects to an engine in this process.
    #[cfg(feature = "embedded")]
    #[must_use]
    pub fn embedded(engine: &Handle) -> Self {
        directory::in_memory(engine)
    }

    /// Opens a separate connection for blocking commands.
    ///
    /// # Errors
    /// The connection cannot be opened.
    #[boxed]
    pub async fn dedicated(&self) -> RedisResult<Self> {
        let conn = self.transport.dedicated().await?;
        let shared = Arc::clone(&self.shared);
        Ok(Self { shared, ..conn })
    }

    /// Opens a separate connection that reports changes of the keys that it has read: of each one once, until it is
    /// read again. Also returns the address of its server. `None`: the store does not report changes, or not to this
    /// user.
    ///
    /// # Errors
    /// The connection cannot be opened.
    pub(crate) async fn tracking(&self, changed: Changed) -> RedisResult<Option<(Self, String)>> {
        let opened = self.transport.tracking(changed).await?;
        let shared = Arc::clone(&self.shared);
        Ok(opened.map(|(conn, addr)| (Self { shared, ..conn }, addr)))
    }

    /// Returns a connection to the database of this number in the same store; this one, if it has that database.
    ///
    /// # Errors
    /// The connection cannot be opened, or the store has fewer databases.
    #[boxed]
    pub async fn in_database(&self, database: u32) -> RedisResult<Self> {
        if self.transport.db() == i64::from(database) {
            return Ok(self.clone());
        }
        self.another(database).await
    }

    /// Opens a further connection to a database of the same store, whichever this one has.
    async fn another(&self, database: u32) -> RedisResult<Self> {
        let conn = self.transport.in_database(database).await?;
        let shared = Arc::clone(&self.shared);
        Ok(Self { shared, ..conn })
    }

    /// Returns a connection for keys with the hash tag of `key`. In a cluster, the connection follows the node that
    /// owns their slot; all slots of a node share one connection to it. Elsewhere, it is this one.
    #[must_use]
    pub fn of_key(&self, key: &str) -> Self {
        match self.transport.of_key(key) {
            Some(conn) => Self {
                shared: Arc::clone(&self.shared),
                ..conn
            },
            None => self.clone(),
        }
    }

    /// Returns the slot of a key; `None` outside of clusters.
    pub(crate) fn slot_of(&self, key: &str) -> Option<u16> {
        self.is_cluster().then(|| locate::slot_of_key(key))
    }

    /// Returns true for a cluster, whose nodes divide the keys by hash tag.
    #[must_use]
    pub fn is_cluster(&self) -> bool {
        self.transport.is_cluster()
    }

    /// Returns the owners of all slots of a cluster; `None` for another store.
    ///
    /// # Errors
    /// No node answers.
    #[boxed]
    pub async fn slots(&self) -> RedisResult<Option<SlotMap>> {
        self.transport.slots().await
    }

    /// Returns a connection over another transport, with the same failures.
    fn with(&self, transport: impl Transport) -> Self {
        let shared = Arc::clone(&self.shared);
        Self {
            shared,
            ..Self::new(transport)
        }
    }

    /// Returns false while a lost connection is being opened again: calls wait for it.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.transport.is_connected()
    }

    /// Returns true if only the user of this process reaches the data: it is in a data directory of this user, or in
    /// this process.
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.transport.is_private()
    }

    /// Returns the failures over this connection and those opened from it.
    #[must_use]
    pub fn outages(&self) -> &Outages {
        &self.shared.outages
    }

    /// Returns the state that is set when the keys of the node are where a Cluster needs them.
    pub(crate) fn node_keys(&self) -> &OnceCell<()> {
        &self.shared.node_keys
    }

    /// Waits until the data is lost for this process for good, and returns the reason: it owned a data directory whose
    /// files were deleted or replaced.
    #[must_use]
    pub fn lost(&self) -> BoxFuture<'static, String> {
        self.transport.lost()
    }

    /// Opens a separate connection that receives published messages.
    ///
    /// # Errors
    /// The connection cannot be opened.
    #[boxed]
    pub async fn subscriber(&self) -> RedisResult<Subscriber> {
        self.transport.subscriber().await
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
