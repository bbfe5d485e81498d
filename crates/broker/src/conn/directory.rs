//! A data directory with the embedded engine: in this process if it owns the directory, else through the owner's
//! socket. When the owner exits, the first process that notices opens the directory again. It becomes the next owner,
//! or attaches to it. The engine itself is in another crate.

mod channels;
mod reply;
mod session;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use meshwork_embedded::{Handle, Opened, Options, Owner, Socket};
use redis::aio::{ConnectionLike, MultiplexedConnection, PubSub};
use redis::{
    AsyncConnectionConfig, Cmd, Pipeline, RedisConnectionInfo, RedisFuture, RedisResult, Value,
};
use tokio::sync::watch;

use super::dial::introduce;
use super::socket::{Dedicate, Wire};
use super::{CALL_TIMEOUT, Conn, ConnectError, Subscriber, Transport, in_time, is_read_only};
use session::Sessions;

/// The shared connection of one process to one data directory.
///
/// No future of a caller holds a lock across an await here. A future that is not polled for a while would block all
/// others, perhaps one that it waits for.
struct Directory {
    path: PathBuf,
    database: u32,
    /// Runtime that serves the socket if this process is the owner. A caller that notices the takeover may run on
    /// another runtime with a shorter life.
    runtime: tokio::runtime::Handle,
    access: watch::Sender<Access>,
    /// Held by the one task that searches for the next owner.
    search_lock: tokio::sync::Mutex<()>,
}

/// The current connection to the data.
#[derive(Clone)]
enum Access {
    /// The engine runs in this process.
    Owned(Arc<OwnedEngine>),
    /// The engine runs in another process.
    Attached(Arc<AttachedEngine>),
}

/// The engine of a directory that this process owns.
struct OwnedEngine {
    sessions: Sessions,
    /// Ownership of the directory. It is released when the last call has ended, whatever its database.
    owner: Arc<Owner>,
}

impl OwnedEngine {
    /// Returns the engine's sessions, unless this process has lost the directory.
    fn sessions(&self) -> RedisResult<&Sessions> {
        match self.owner.is_lost() {
            None => Ok(&self.sessions),
            Some(reason) => Err(io::Error::other(reason.to_string()).into()),
        }
    }
}

/// A connection to the process that owns the directory.
struct AttachedEngine {
    socket: Socket,
    connection: MultiplexedConnection,
}

/// Opens the directory, or attaches to its owner.
pub(super) async fn open(path: &Path) -> Result<Conn, ConnectError> {
    let access = Access::find(path, &Options::default(), 0)
        .await
        .map_err(|source| ConnectError::Directory {
            path: path.to_owned(),
            source,
        })?;
    let runtime = tokio::runtime::Handle::current();
    let directory = Directory {
        path: path.to_owned(),
        database: 0,
        runtime,
        access: watch::Sender::new(access),
        search_lock: tokio::sync::Mutex::new(()),
    };
    Ok(Conn::new(Shared(Arc::new(directory))))
}

/// Returns a connection to an engine in this process.
pub(super) fn in_memory(handle: &Handle) -> Conn {
    Conn::new(Sessions::new(handle, 0))
}

/// Greatest number of attempts to attach, each of which fails if the owner exits meanwhile. Many commands that start
/// and exit together need fewer.
const FIND_ATTEMPTS: usize = 20;

/// Greatest number of repetitions of a read, one for each owner that exits meanwhile.
const READ_ATTEMPTS: usize = 5;

type FindError = Box<dyn std::error::Error + Send + Sync>;

impl Access {
    /// Opens the directory, or attaches to its owner.
    async fn find(path: &Path, options: &Options, database: u32) -> Result<Self, FindError> {
        let mut tries = FIND_ATTEMPTS;
        loop {
            tries -= 1;
            let socket = match meshwork_embedded::open(path, options.clone()).await? {
                Opened::Owner(owner) => {
                    let sessions = Sessions::new(owner.handle(), database);
                    let owner = Arc::new(owner);
                    return Ok(Self::Owned(Arc::new(OwnedEngine { sessions, owner })));
                }
                Opened::Attach(socket) => socket,
            };
            match connect(&socket, database).await {
                Ok(connection) => {
                    return Ok(Self::Attached(Arc::new(AttachedEngine {
                        socket,
                        connection,
                    })));
                }
                // The owner exited after it had answered.
                Err(error) if tries > 0 => {
                    tracing::debug!(%error, "connection to the owner of the data directory lost");
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Opens a connection to the owner. It has no timeout, because blocking commands use such connections too.
async fn connect(socket: &Socket, database: u32) -> RedisResult<MultiplexedConnection> {
    let stream = socket.connect().await?;
    let config = AsyncConnectionConfig::new().set_response_timeout(None);
    let info = RedisConnectionInfo::default().set_db(i64::from(database));
    let (mut connection, driver) =
        MultiplexedConnection::new_with_config(&info, stream, config).await?;
    tokio::spawn(driver);
    introduce(&mut connection).await?;
    Ok(connection)
}

/// Opens a connection to the owner that receives published messages.
async fn connect_subscriber(socket: &Socket) -> RedisResult<Subscriber> {
    let stream = socket.connect().await?;
    let info = RedisConnectionInfo::default();
    let made = PubSub::new(&info, stream);
    Ok(Subscriber::new(in_time(Some(CALL_TIMEOUT), made).await?))
}

impl Directory {
    /// Returns a connection to another database of the same engine.
    async fn in_database(&self, database: u32) -> RedisResult<Self> {
        let access = match self.access() {
            Access::Owned(owned) => {
                let sessions = owned.sessions()?.in_database(database);
                // A database that does not exist is reported here.
                sessions.call(&redis::cmd("PING")).await?;
                let owner = Arc::clone(&owned.owner);
                Access::Owned(Arc::new(OwnedEngine { sessions, owner }))
            }
            Access::Attached(attached) => {
                let connection = connect(&attached.socket, database).await?;
                let socket = attached.socket.clone();
                Access::Attached(Arc::new(AttachedEngine { socket, connection }))
            }
        };
        Ok(Self {
            path: self.path.clone(),
            database,
            runtime: self.runtime.clone(),
            access: watch::Sender::new(access),
            search_lock: tokio::sync::Mutex::new(()),
        })
    }

    fn access(&self) -> Access {
        self.access.borrow().clone()
    }

    async fn send(&self, cmd: &Cmd) -> RedisResult<Value> {
        match self.access() {
            Access::Owned(owned) => owned.sessions()?.call(cmd).await,
            Access::Attached(attached) => {
                let mut connection = attached.connection.clone();
                in_time(Some(CALL_TIMEOUT), connection.req_packed_command(cmd)).await
            }
        }
    }

    async fn send_many(
        &self,
        pipeline: &Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisResult<Vec<Value>> {
        match self.access() {
            Access::Owned(owned) => owned.sessions()?.call_many(pipeline, offset, count).await,
            Access::Attached(attached) => {
                let mut connection = attached.connection.clone();
                let sent = connection.req_packed_commands(pipeline, offset, count);
                in_time(Some(CALL_TIMEOUT), sent).await
            }
        }
    }

    /// Returns true if `answer` is the error of an owner that exited. Before that, waits until the next owner is found
    /// or this process has become it.
    async fn recovered<T>(self: &Arc<Self>, answer: &RedisResult<T>) -> bool {
        let gone = matches!(answer, Err(e) if e.is_io_error() || e.is_unrecoverable_error());
        if gone {
            let directory = Arc::clone(self);
            // A separate task continues even if the caller is not polled.
            let found = self
                .runtime
                .spawn(async move { directory.find_next_owner().await });
            if let Err(error) = found.await {
                tracing::error!(%error, "search for the next owner of the data directory failed");
            }
        }
        gone
    }

    /// Returns the answer to `send`. Only reads are repeated when the owner exits, since a write may have taken effect.
    async fn answered<T, F: Future<Output = RedisResult<T>>>(
        self: &Arc<Self>,
        is_read: bool,
        send: impl Fn() -> F,
    ) -> RedisResult<T> {
        let mut answer = send().await;
        for _ in 0..READ_ATTEMPTS {
            if !self.recovered(&answer).await || !is_read {
                break;
            }
            answer = send().await;
        }
        answer
    }

    /// Waits until this process, as the owner, loses the directory. Returns the reason.
    async fn lost(&self) -> String {
        let mut access = self.access.subscribe();
        loop {
            let current = access.borrow_and_update().clone();
            let lost = async {
                match current {
                    Access::Owned(owned) => owned.owner.lost().await,
                    Access::Attached(_) => std::future::pending().await,
                }
            };
            tokio::select! {
                reason = lost => return reason.to_string(),
                Ok(()) = access.changed() => {}
            }
        }
    }

    /// Attaches to the next owner, or becomes it, if the current one is gone.
    async fn find_next_owner(&self) {
        let _one_at_a_time = self.search_lock.lock().await;
        let Access::Attached(attached) = self.access() else {
            return;
        };
        // Another caller may have found the new owner already.
        let ping = redis::cmd("PING");
        let mut connection = attached.connection.clone();
        let ping = ping.query_async::<Value>(&mut connection);
        if in_time(Some(CALL_TIMEOUT), ping).await.is_ok() {
            return;
        }
        // A new directory would hide that the data is gone.
        let options = Options {
            create: false,
            ..Options::default()
        };
        match Access::find(&self.path, &options, self.database).await {
            Ok(found) => {
                let owner = matches!(found, Access::Owned(_));
                tracing::info!(path = %self.path.display(), owner, "owner of the data directory replaced");
                self.access.send_replace(found);
            }
            Err(error) => {
                tracing::debug!(path = %self.path.display(), %error, "data directory not reachable");
            }
        }
    }
}

/// The transport of all calls without a dedicated connection.
struct Shared(Arc<Directory>);

impl Transport for Shared {
    fn call<'a>(&'a self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(async move {
            let is_read = is_read_only(cmd);
            self.0.answered(is_read, || self.0.send(cmd)).await
        })
    }

    fn call_many<'a>(
        &'a self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        Box::pin(async move {
            let is_read = pipeline.cmd_iter().all(is_read_only);
            let send = || self.0.send_many(pipeline, offset, count);
            self.0.answered(is_read, send).await
        })
    }

    fn dedicated(&self) -> BoxFuture<'_, RedisResult<Conn>> {
        Arc::clone(&self.0).dedicated()
    }

    fn subscriber(&self) -> BoxFuture<'_, RedisResult<Subscriber>> {
        Arc::clone(&self.0).subscriber()
    }

    fn in_database(&self, database: u32) -> BoxFuture<'_, RedisResult<Conn>> {
        Box::pin(async move {
            Ok(Conn::new(Self(Arc::new(
                self.0.in_database(database).await?,
            ))))
        })
    }

    fn db(&self) -> i64 {
        i64::from(self.0.database)
    }

    fn is_private(&self) -> bool {
        true
    }

    fn lost(&self) -> BoxFuture<'static, String> {
        let directory = Arc::clone(&self.0);
        Box::pin(async move { directory.lost().await })
    }
}

impl Dedicate for Directory {
    fn dedicated(self: Arc<Self>) -> BoxFuture<'static, RedisResult<Conn>> {
        Box::pin(async move {
            let made = match self.access() {
                Access::Owned(owned) => return owned.sessions()?.dedicated().await,
                Access::Attached(attached) => connect(&attached.socket, self.database).await,
            };
            self.recovered(&made).await;
            Ok(Wire::conn(made?, self))
        })
    }

    fn subscriber(self: Arc<Self>) -> BoxFuture<'static, RedisResult<Subscriber>> {
        Box::pin(async move {
            let made = match self.access() {
                Access::Owned(owned) => return owned.sessions()?.subscriber().await,
                Access::Attached(attached) => connect_subscriber(&attached.socket).await,
            };
            self.recovered(&made).await;
            made
        })
    }
}
