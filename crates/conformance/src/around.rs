//! A connection around one that works, where a test says what becomes of a call: the half of it that does not know what
//! that is.

use std::fmt::Debug;
use std::io;

use futures_util::future::BoxFuture;
use meshwork_broker::conn::{Conn, Ear, Transport};
use redis::aio::ConnectionLike;
use redis::{Cmd, Pipeline, RedisFuture, RedisResult, Value};

/// What becomes of a call that is not simply carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is never answered, and has no effect.
    Silent,
    /// It breaks its connection, and has no effect.
    Before,
    /// It takes effect and breaks its connection: nobody learns of it.
    After,
}

/// What a test says of the calls of a connection.
pub trait Fates: Debug + Clone + Send + Sync + 'static {
    /// The same for a connection of its own.
    #[must_use]
    fn dedicated(&self) -> Self;

    /// What becomes of the next call, which goes over the wire like this. None if it is carried out and answered.
    fn next(&self, packed: impl FnOnce() -> Vec<u8>) -> Option<Fate>;

    /// Whether these replies are lost, of a call that was to be answered.
    fn loses(&self, _: &[Value]) -> bool {
        false
    }

    /// These replies were lost.
    fn lost(&self, _: Vec<Value>) {}
}

/// The connection.
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
        let told = replies.as_deref().unwrap_or_default();
        if fate.is_none() && !self.fates.loses(told) {
            return replies;
        }
        self.fates.lost(replies.unwrap_or_default());
        Err(broken())
    }
}

fn broken() -> redis::RedisError {
    io::Error::new(io::ErrorKind::ConnectionReset, "broken on purpose").into()
}

/// Whether a word goes over the wire in these bytes.
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

    fn ear(&self) -> BoxFuture<'_, RedisResult<Ear>> {
        Box::pin(self.inner.ear())
    }

    fn dedicated(&self) -> BoxFuture<'_, RedisResult<Conn>> {
        Box::pin(async move {
            let inner = self.inner.dedicated().await?;
            Ok(Conn::new(Self::of(inner, self.fates.dedicated())))
        })
    }

    fn db(&self) -> i64 {
        self.inner.get_db()
    }
}
