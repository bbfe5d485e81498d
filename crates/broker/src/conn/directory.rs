//! A data directory with the embedded engine: in this process if it owns the directory, else through the owner's
//! socket. When the owner exits, the first process that notices opens the directory again. It becomes the next owner,
//! or attaches to it. The engine itself is in another crate.

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
use super::{CALL_TIMEOUT, Conn, ConnectError, Subscriber, Transport, in_time, only_looks};
use session::Sessions;

/// The shared connection of one process to one data directory.
///
/// No future of a caller holds a lock across an await here. A future that is not polled for a while would block all
/// others, perhaps one that it waits for.
struct Directory {
    path: PathBuf,
    options: Options,
    database: u32,
    /// Runtime that serves the socket if this process is the owner. A caller that notices the takeover may run on
    /// another runtime with a shorter life.
    runtime: tokio::runtime::Handle,
    way: watch::Sender<Way>,
    /// Lock of the only task that searches for the owner.
    finding: tokio::sync::Mutex<()>,
}

/// The current connection to the data.
#[derive(Clone)]
enum Way {
    /// The engine runs in this process.
    Here(Arc<Here>),
    /// The engine runs in another process.
    There(Arc<There>),
}

struct Here {
    sessions: Sessions,
    /// Released after the last call in this way has ended, whatever its database.
    owner: Arc<Owner>,
}

impl Here {
    /// Returns the engine, unless the directory is no longer this process'.
    fn sessions(&self) -> RedisResult<&Sessions> {
        match self.owner.is_lost() {
            None => Ok(&self.sessions),
            Some(reason) => Err(io::Error::other(reason.to_string()).into()),
        }
    }
}

struct There {
    socket: Socket,
    connection: MultiplexedConnection,
}

/// Opens the directory, or attaches to its owner.
pub(super) async fn open(path: &Path, options: Options) -> Result<Conn, ConnectError> {
    let way = Way::find(path, &options, 0)
        .await
        .map_err(|source| ConnectError::Directory {
            path: path.to_owned(),
            source,
        })?;
    let runtime = tokio::runtime::Handle::current();
    let directory = Directory {
        path: path.to_owned(),
        options,
        database: 0,
        runtime,
        way: watch::Sender::new(way),
        finding: tokio::sync::Mutex::new(()),
    };
    Ok(Conn::new(Shared(Arc::new(directory))))
}

/// Returns a connection to an engine in this process.
pub(super) fn in_memory(handle: &Handle) -> Conn {
    Conn::new(Sessions::new(handle, 0))
}

/// Number of owners in a row that may exit while this process attaches. Many commands that start and exit together
/// stay below it.
const FIND_TRIES: usize = 20;

/// Number of owners in a row that may exit during one read.
const LOOK_AGAIN: usize = 5;

type FindError = Box<dyn std::error::Error + Send + Sync>;

impl Way {
    async fn find(path: &Path, options: &Options, database: u32) -> Result<Self, FindError> {
        let mut tries = FIND_TRIES;
        loop {
            tries -= 1;
            let socket = match meshwork_embedded::open(path, options.clone()).await? {
                Opened::Owner(owner) => {
                    let sessions = Sessions::new(owner.handle(), database);
                    let owner = Arc::new(owner);
                    return Ok(Self::Here(Arc::new(Here { sessions, owner })));
                }
                Opened::Attach(socket) => socket,
            };
            match connect(&socket, database).await {
                Ok(connection) => {
                    return Ok(Self::There(Arc::new(There { socket, connection })));
                }
                // The owner answered, and has exited since.
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
async fn hear(socket: &Socket) -> RedisResult<Subscriber> {
    let stream = socket.connect().await?;
    let info = RedisConnectionInfo::default();
    let made = PubSub::new(&info, stream);
    Ok(Subscriber::server(in_time(Some(CALL_TIMEOUT), made).await?))
}

impl Directory {
    /// Returns a connection to another database of the same engine.
    async fn in_database(&self, database: u32) -> RedisResult<Self> {
        let way = match self.way() {
            Way::Here(here) => {
                let sessions = here.sessions()?.in_database(database);
                // A database that does not exist is reported here.
                sessions.call(&redis::cmd("PING")).await?;
                let owner = Arc::clone(&here.owner);
                Way::Here(Arc::new(Here { sessions, owner }))
            }
            Way::There(there) => {
                let connection = connect(&there.socket, database).await?;
                let socket = there.socket.clone();
                Way::There(Arc::new(There { socket, connection }))
            }
        };
        Ok(Self {
            path: self.path.clone(),
            options: self.options.clone(),
            database,
            runtime: self.runtime.clone(),
            way: watch::Sender::new(way),
            finding: tokio::sync::Mutex::new(()),
        })
    }

    fn way(&self) -> Way {
        self.way.borrow().clone()
    }

    async fn send(&self, cmd: &Cmd) -> RedisResult<Value> {
        match self.way() {
            Way::Here(here) => here.sessions()?.call(cmd).await,
            Way::There(there) => {
                let mut connection = there.connection.clone();
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
        match self.way() {
            Way::Here(here) => here.sessions()?.call_many(pipeline, offset, count).await,
            Way::There(there) => {
                let mut connection = there.connection.clone();
                let sent = connection.req_packed_commands(pipeline, offset, count);
                in_time(Some(CALL_TIMEOUT), sent).await
            }
        }
    }

    /// Returns whether `answer` is the error of an owner that exited. If so, the next owner has been found, or is
    /// this process.
    async fn recovered<T>(self: &Arc<Self>, answer: &RedisResult<T>) -> bool {
        let gone = matches!(answer, Err(e) if e.is_io_error() || e.is_unrecoverable_error());
        if gone {
            let directory = Arc::clone(self);
            // A separate task continues whether or not the caller is polled.
            let found = self
                .runtime
                .spawn(async move { directory.find_again().await });
            if let Err(error) = found.await {
                tracing::error!(%error, "takeover of the data directory timed out");
            }
        }
        gone
    }

    /// Returns the answer to `send`; reads are repeated over the new connection when the owner exits.
    async fn answered<T, F: Future<Output = RedisResult<T>>>(
        self: &Arc<Self>,
        looks: bool,
        send: impl Fn() -> F,
    ) -> RedisResult<T> {
        let mut answer = send().await;
        for _ in 0..LOOK_AGAIN {
            if !self.recovered(&answer).await || !looks {
                break;
            }
            answer = send().await;
        }
        answer
    }

    /// Waits until this process owns the directory and loses it, and returns the reason.
    async fn lost(&self) -> String {
        let mut way = self.way.subscribe();
        loop {
            let present = way.borrow_and_update().clone();
            let lost = async {
                match present {
                    Way::Here(here) => here.owner.lost().await,
                    Way::There(_) => std::future::pending().await,
                }
            };
            tokio::select! {
                reason = lost => return reason.to_string(),
                Ok(()) = way.changed() => {}
            }
        }
    }

    async fn find_again(&self) {
        let _one_at_a_time = self.finding.lock().await;
        let Way::There(there) = self.way() else {
            return;
        };
        // Another caller may have found the new owner already.
        let ping = redis::cmd("PING");
        let mut connection = there.connection.clone();
        let ping = ping.query_async::<Value>(&mut connection);
        if in_time(Some(CALL_TIMEOUT), ping).await.is_ok() {
            return;
        }
        // A new directory would hide that the data is gone.
        let options = Options {
            create: false,
            ..self.options.clone()
        };
        match Way::find(&self.path, &options, self.database).await {
            Ok(found) => {
                let owner = matches!(found, Way::Here(_));
                tracing::info!(path = %self.path.display(), owner, "the owner went away");
                self.way.send_replace(found);
            }
            Err(error) => {
                tracing::debug!(path = %self.path.display(), %error, "data directory not reachable");
            }
        }
    }
}

struct Shared(Arc<Directory>);

impl Transport for Shared {
    fn call<'a>(&'a self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(async move {
            let looks = only_looks(cmd);
            self.0.answered(looks, || self.0.send(cmd)).await
        })
    }

    fn call_many<'a>(
        &'a self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        Box::pin(async move {
            let looks = pipeline.cmd_iter().all(only_looks);
            let send = || self.0.send_many(pipeline, offset, count);
            self.0.answered(looks, send).await
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

    fn lost(&self) -> BoxFuture<'static, String> {
        let directory = Arc::clone(&self.0);
        Box::pin(async move { directory.lost().await })
    }
}

impl Dedicate for Directory {
    fn dedicated(self: Arc<Self>) -> BoxFuture<'static, RedisResult<Conn>> {
        Box::pin(async move {
            let made = match self.way() {
                Way::Here(here) => return here.sessions()?.dedicated().await,
                Way::There(there) => connect(&there.socket, self.database).await,
            };
            self.recovered(&made).await;
            Ok(Wire::conn(made?, self))
        })
    }

    fn subscriber(self: Arc<Self>) -> BoxFuture<'static, RedisResult<Subscriber>> {
        Box::pin(async move {
            let made = match self.way() {
                Way::Here(here) => return here.sessions()?.subscriber().await,
                Way::There(there) => hear(&there.socket).await,
            };
            self.recovered(&made).await;
            made
        })
    }
}
