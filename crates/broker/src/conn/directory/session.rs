//! Sessions of an engine in this process, as a connection.

use std::io;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use meshwork_embedded::{Handle, Reply, Session};
use redis::{Arg, Cmd, Pipeline, RedisFuture, RedisResult, Value};
use tokio::task;

use super::super::dial::introduction;
use super::super::{Conn, Subscriber, Transport};
use super::reply;

/// Number of idle sessions that are kept. More concurrent calls are rare, and a session is cheap to create.
const MAX_IDLE: usize = 16;

/// Sessions of an engine in this process: one for each concurrent call, so that no call waits for another.
pub(super) struct Sessions {
    handle: Handle,
    database: u32,
    idle: Mutex<Vec<Session>>,
}

impl Sessions {
    pub(super) fn new(handle: &Handle, database: u32) -> Self {
        Self {
            handle: handle.clone(),
            database,
            idle: Mutex::default(),
        }
    }

    /// Returns the same engine with another database.
    pub(super) fn in_database(&self, database: u32) -> Self {
        Self::new(&self.handle, database)
    }

    /// Runs `work` with a session. Commands do not wait for anything outside, so a caller of one after the other
    /// would never yield its thread. This function yields before the command, not after it, so that a call that is
    /// dropped here has done nothing.
    async fn with<T>(
        &self,
        work: impl AsyncFnOnce(&mut Session) -> RedisResult<T>,
    ) -> RedisResult<T> {
        task::yield_now().await;
        let mut session = self.take().await?;
        let done = work(&mut session).await;
        self.put(session);
        done
    }

    async fn take(&self) -> RedisResult<Session> {
        let idle = || {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            idle.pop()
        };
        // `CLIENT KILL` ends idle sessions too, which no longer answer.
        let alive = std::iter::from_fn(idle).find(|session| !session.is_over());
        match alive {
            Some(session) => Ok(session),
            None => opened(&self.handle, self.database).await,
        }
    }

    fn put(&self, session: Session) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MAX_IDLE {
            idle.push(session);
        }
    }
}

impl Transport for Sessions {
    fn call<'a>(&'a self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(self.with(async |session| call(session, cmd).await))
    }

    fn call_many<'a>(
        &'a self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        Box::pin(self.with(async move |session| call_many(session, pipeline, offset, count).await))
    }

    fn dedicated(&self) -> BoxFuture<'_, RedisResult<Conn>> {
        Box::pin(async move { Ok(Conn::new(Own::new(&self.handle, self.database).await?)) })
    }

    fn subscriber(&self) -> BoxFuture<'_, RedisResult<Subscriber>> {
        Box::pin(async move { Ok(Subscriber::new(self.handle.session())) })
    }

    fn in_database(&self, database: u32) -> BoxFuture<'_, RedisResult<Conn>> {
        let sessions = self.in_database(database);
        Box::pin(async move {
            sessions.with(async |_| Ok(())).await?;
            Ok(Conn::new(sessions))
        })
    }

    fn is_private(&self) -> bool {
        true
    }

    fn db(&self) -> i64 {
        i64::from(self.database)
    }
}

/// Opens a session in a database. Returns an error if the engine has fewer databases.
async fn opened(handle: &Handle, database: u32) -> RedisResult<Session> {
    let mut session = handle.session();
    if database != 0 {
        let mut select = redis::cmd("SELECT");
        call(&mut session, select.arg(database)).await?;
    }
    Ok(session)
}

/// One session for all calls, so that `CLIENT ID` is that of the blocked session.
struct Own {
    handle: Handle,
    database: u32,
    session: tokio::sync::Mutex<Session>,
}

impl Own {
    async fn new(handle: &Handle, database: u32) -> RedisResult<Self> {
        let mut session = opened(handle, database).await?;
        call(&mut session, &introduction()).await?;
        Ok(Self {
            handle: handle.clone(),
            database,
            session: tokio::sync::Mutex::new(session),
        })
    }
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
        Box::pin(async move { Ok(Conn::new(Self::new(&self.handle, self.database).await?)) })
    }

    fn is_private(&self) -> bool {
        true
    }

    fn db(&self) -> i64 {
        i64::from(self.database)
    }

    fn subscriber(&self) -> BoxFuture<'_, RedisResult<Subscriber>> {
        Box::pin(async move { Ok(Subscriber::new(self.handle.session())) })
    }
}

fn arguments(cmd: &Cmd) -> Vec<Bytes> {
    let argument = |arg| match arg {
        Arg::Simple(bytes) => Bytes::copy_from_slice(bytes),
        // Only iterators over SCAN create cursors, and they begin at 0. The verbs pass cursors as text.
        _ => Bytes::from_static(b"0"),
    };
    cmd.args_iter().map(argument).collect()
}

/// Runs a command. A session that was killed meanwhile is reported as a broken connection.
async fn run(session: &mut Session, cmd: &Cmd) -> RedisResult<Value> {
    let reply = session.call(&arguments(cmd)).await;
    if matches!(reply, Reply::Nothing | Reply::Error(_)) && session.is_over() {
        return Err(io::Error::from(io::ErrorKind::BrokenPipe).into());
    }
    Ok(reply::value(reply))
}

async fn call(session: &mut Session, cmd: &Cmd) -> RedisResult<Value> {
    run(session, cmd).await?.extract_error()
}

async fn call_many(
    session: &mut Session,
    pipeline: &Pipeline,
    offset: usize,
    count: usize,
) -> RedisResult<Vec<Value>> {
    let mut values = Vec::new();
    for cmd in pipeline.cmd_iter() {
        values.push(run(session, cmd).await?);
    }
    Ok(values.into_iter().skip(offset).take(count).collect())
}
