//! A connection that wraps a working one, where a test decides the fate of each call. This file is the part without
//! the decisions.

use std::fmt::Debug;
use std::io;

use futures_util::future::BoxFuture;
use meshwork_broker::conn::{Conn, SlotMap, Subscriber, Transport};
use redis::aio::ConnectionLike;
use redis::{Cmd, Pipeline, RedisFuture, RedisResult, Value};

/// Fate of a call that is not simply carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The call gets no answer, and has no effect.
    Silent,
    /// The connection breaks, and the call has no effect.
    Before,
    /// The call takes effect and the connection breaks before the answer.
    After,
}

/// Decisions of a test about the calls of a connection.
pub trait Fates: Debug + Clone + Send + Sync + 'static {
    /// Returns the decisions for a dedicated connection.
    #[must_use]
    fn dedicated(&self) -> Self;

    /// Returns the fate of the next call, given the bytes that it sends. `None`: it is carried out and answered.
    fn next(&self, packed: impl FnOnce() -> Vec<u8>) -> Option<Fate>;

    /// Returns true if these replies of an answered call are lost.
    fn loses(&self, _: &[Value]) -> bool {
        false
    }

    /// Receives the replies that were lost.
    fn lost(&self, _: Vec<Value>) {}
}

/// A connection with decisions about its calls.
#[derive(Debug, Clone)]
pub struct Around<F> {
    inner: Conn,
    pub(crate) fates: F,
}

impl<F: Fates> Around<F> {
    pub(crate) fn of(inner: Conn, fates: F) -> Self {
        Self { inner, fates }
    }

    async fn meet(
        &self,
        packed: impl FnOnce() -> Vec<u8>,
        call: impl Future<Output = RedisResult<Vec<Value>>>,
    ) -> RedisResult<Vec<Value>> {
        let fate = self.fates.next(packed);
        match fate {
            Some(Fate::Silent) => return std::future::pending().await,
            Some(Fate::Before) => return Err(broken()),
            Some(Fate::After) | None => {}
        }
        let replies = call.await;
        let sent = replies.as_deref().unwrap_or_default();
        if fate.is_none() && !self.fates.loses(sent) {
            return replies;
        }
        self.fates.lost(replies.unwrap_or_default());
        Err(broken())
    }
}

fn broken() -> redis::RedisError {
    io::Error::new(io::ErrorKind::ConnectionReset, "broken on purpose").into()
}

/// Returns true if `bytes` contain a word as a command or an argument.
pub(crate) fn contains(bytes: &[u8], word: &str) -> bool {
    let mut parts = bytes.windows(word.len());
    parts.any(|part| part == word.as_bytes())
}

impl<F: Fates> Transport for Around<F> {
    fn call<'a>(&'a self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        let mut inner = self.inner.clone();
        let call = async move { Ok(vec![inner.req_packed_command(cmd).await?]) };
        Box::pin(async move {
            let mut replies = self.meet(|| cmd.get_packed_command(), call).await?;
            Ok(replies.pop().unwrap_or(Value::Nil))
        })
    }

    fn call_many<'a>(
        &'a self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        let mut inner = self.inner.clone();
        let call = async move { inner.req_packed_commands(pipeline, offset, count).await };
        Box::pin(self.meet(|| pipeline.get_packed_pipeline(), call))
    }

    fn subscriber(&self) -> BoxFuture<'_, RedisResult<Subscriber>> {
        Box::pin(self.inner.subscriber())
    }

    fn dedicated(&self) -> BoxFuture<'_, RedisResult<Conn>> {
        Box::pin(async move {
            let inner = self.inner.dedicated().await?;
            Ok(Conn::new(Self::of(inner, self.fates.dedicated())))
        })
    }

    fn of_key(&self, key: &str) -> Option<Conn> {
        let inner = self.inner.is_cluster().then(|| self.inner.of_key(key))?;
        Some(Conn::new(Self::of(inner, self.fates.clone())))
    }

    fn slots(&self) -> BoxFuture<'_, RedisResult<Option<SlotMap>>> {
        Box::pin(self.inner.slots())
    }

    fn is_cluster(&self) -> bool {
        self.inner.is_cluster()
    }

    fn db(&self) -> i64 {
        self.inner.get_db()
    }
}
