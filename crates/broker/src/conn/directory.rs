//! A data directory with the embedded engine: in this process if it owns the directory, else through the
//! owner's socket. When the owner goes away, whoever notices first opens the directory again and is the
//! next owner, or attaches to it. The engine itself is not here.

mod reply;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use meshwork_embedded::{Handle, Opened, Options, Owner, Session, Socket};
use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{
    Arg, AsyncConnectionConfig, Cmd, Pipeline, RedisConnectionInfo, RedisFuture, RedisResult, Value,
};
use tokio::sync::{Mutex, RwLock};

use super::socket::{Dedicate, Wire};
use super::{CALL_TIMEOUT, Conn, ConnectError, Transport, in_time};

/// The shared connection of one process to one data directory.
struct Directory {
    path: PathBuf,
    options: Options,
    /// The runtime that serves the socket if this process is the owner: a takeover may be noticed on
    /// another one, which does not live as long.
    runtime: tokio::runtime::Handle,
    way: RwLock<Way>,
}

/// How the data is reached at the moment.
enum Way {
    /// The engine runs here.
    Here {
        owner: Owner,
        session: Mutex<Session>,
    },
    /// It runs in another process.
    There {
        socket: Socket,
        connection: MultiplexedConnection,
    },
}

/// Opens the directory, or attaches to its owner.
pub(super) async fn open(path: &Path, options: Options) -> Result<Conn, ConnectError> {
    let way = Way::find(path, &options)
        .await
        .map_err(|source| ConnectError::Directory {
            path: path.to_owned(),
            source,
        })?;
    let runtime = tokio::runtime::Handle::current();
    let directory = Directory {
        path: path.to_owned(),
        options,
        runtime,
        way: RwLock::new(way),
    };
    Ok(Conn::new(Shared(Arc::new(directory))))
}

/// An engine in this process and nowhere else.
pub(super) fn in_memory(handle: &Handle) -> Conn {
    Conn::new(Own {
        session: Mutex::new(handle.session()),
        handle: handle.clone(),
    })
}

/// How often in a row an owner may go away while we attach to it: commands that come and go all at once are
/// not that many.
const FIND_TRIES: usize = 20;

/// What only looks, and is asked again where the owner went away: whether it was carried out does not
/// matter. What changes something is for the caller to repeat.
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

type FindError = Box<dyn std::error::Error + Send + Sync>;

impl Way {
    async fn find(path: &Path, options: &Options) -> Result<Self, FindError> {
        let mut tries = FIND_TRIES;
        loop {
            tries -= 1;
            let socket = match meshwork_embedded::open(path, options.clone()).await? {
                Opened::Owner(owner) => {
                    let session = Mutex::new(owner.handle().session());
                    return Ok(Self::Here { owner, session });
                }
                Opened::Attach(socket) => socket,
            };
            match connect(&socket).await {
                Ok(connection) => return Ok(Self::There { socket, connection }),
                // It answered, and has gone since.
                Err(error) if tries > 0 => tracing::debug!(%error, "the owner went away"),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// A connection to the owner. It has no time limit of its own: commands that wait use such ones too.
async fn connect(socket: &Socket) -> RedisResult<MultiplexedConnection> {
    let stream = socket.connect().await?;
    let config = AsyncConnectionConfig::new().set_response_timeout(None);
    let info = RedisConnectionInfo::default();
    let (connection, driver) =
        MultiplexedConnection::new_with_config(&info, stream, config).await?;
    tokio::spawn(driver);
    Ok(connection)
}

impl Directory {
    async fn send(&self, cmd: &Cmd) -> RedisResult<Value> {
        match &*self.way.read().await {
            Way::Here { session, .. } => call(&mut *session.lock().await, cmd).await,
            Way::There { connection, .. } => {
                let mut connection = connection.clone();
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
        match &*self.way.read().await {
            Way::Here { session, .. } => {
                call_many(&mut *session.lock().await, pipeline, offset, count).await
            }
            Way::There { connection, .. } => {
                let mut connection = connection.clone();
                let sent = connection.req_packed_commands(pipeline, offset, count);
                in_time(Some(CALL_TIMEOUT), sent).await
            }
        }
    }

    /// Whether `answer` is the error of an owner that went away; if so, who is the owner now has been found
    /// out, or this process is it.
    async fn recovered<T>(self: &Arc<Self>, answer: &RedisResult<T>) -> bool {
        let gone = matches!(answer, Err(e) if e.is_io_error() || e.is_unrecoverable_error());
        if gone {
            self.find_again().await;
        }
        gone
    }

    async fn find_again(self: &Arc<Self>) {
        let mut way = self.way.write().await;
        let Way::There { connection, .. } = &*way else {
            return;
        };
        // Somebody else may have found the new way meanwhile.
        let mut connection = connection.clone();
        let ping = redis::cmd("PING");
        if in_time(
            Some(CALL_TIMEOUT),
            ping.query_async::<Value>(&mut connection),
        )
        .await
        .is_ok()
        {
            return;
        }
        let directory = Arc::clone(self);
        let find = async move { Way::find(&directory.path, &directory.options).await };
        match self.runtime.spawn(find).await {
            Ok(Ok(found)) => {
                let owner = matches!(found, Way::Here { .. });
                tracing::info!(path = %self.path.display(), owner, "the owner went away");
                *way = found;
            }
            Ok(Err(error)) => {
                tracing::warn!(path = %self.path.display(), %error, "no way to the data");
            }
            Err(error) => tracing::error!(%error, "the takeover did not end"),
        }
    }
}

struct Shared(Arc<Directory>);

impl Transport for Shared {
    fn call<'a>(&'a self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(async move {
            let answer = self.0.send(cmd).await;
            if self.0.recovered(&answer).await && only_looks(cmd) {
                return self.0.send(cmd).await;
            }
            answer
        })
    }

    fn call_many<'a>(
        &'a self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        Box::pin(async move {
            let answer = self.0.send_many(pipeline, offset, count).await;
            if self.0.recovered(&answer).await && pipeline.cmd_iter().all(only_looks) {
                return self.0.send_many(pipeline, offset, count).await;
            }
            answer
        })
    }

    fn dedicated(&self) -> BoxFuture<'_, RedisResult<Conn>> {
        Arc::clone(&self.0).dedicated()
    }

    fn db(&self) -> i64 {
        0
    }
}

impl Dedicate for Directory {
    fn dedicated(self: Arc<Self>) -> BoxFuture<'static, RedisResult<Conn>> {
        Box::pin(async move {
            let made = match &*self.way.read().await {
                Way::Here { owner, .. } => return Ok(in_memory(owner.handle())),
                Way::There { socket, .. } => connect(socket).await,
            };
            self.recovered(&made).await;
            Ok(Wire::alone(made?, self))
        })
    }
}

/// A session of the engine in this process.
struct Own {
    session: Mutex<Session>,
    handle: Handle,
}

impl Transport for Own {
    fn call<'a>(&'a self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(async move { call(&mut *self.session.lock().await, cmd).await })
    }

    fn call_many<'a>(
        &'a self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        Box::pin(async move {
            call_many(&mut *self.session.lock().await, pipeline, offset, count).await
        })
    }

    fn dedicated(&self) -> BoxFuture<'_, RedisResult<Conn>> {
        Box::pin(async move { Ok(in_memory(&self.handle)) })
    }

    fn db(&self) -> i64 {
        0
    }
}

fn arguments(cmd: &Cmd) -> Vec<Bytes> {
    let argument = |arg| match arg {
        Arg::Simple(bytes) => Bytes::copy_from_slice(bytes),
        // A cursor: only iterators over SCAN make one, and they begin at 0; the verbs pass theirs as text.
        _ => Bytes::from_static(b"0"),
    };
    cmd.args_iter().map(argument).collect()
}

async fn call(session: &mut Session, cmd: &Cmd) -> RedisResult<Value> {
    reply::value(session.call(&arguments(cmd)).await).extract_error()
}

async fn call_many(
    session: &mut Session,
    pipeline: &Pipeline,
    offset: usize,
    count: usize,
) -> RedisResult<Vec<Value>> {
    let mut values = Vec::new();
    for cmd in pipeline.cmd_iter() {
        values.push(reply::value(session.call(&arguments(cmd)).await));
    }
    Ok(values.into_iter().skip(offset).take(count).collect())
}
