//! A connection of the `redis` crate as a transport, whatever it runs over.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use redis::aio::ConnectionLike;
use redis::{Cmd, Pipeline, RedisFuture, RedisResult, Value};

use super::{Conn, Transport, in_time};

/// Makes connections of their own for commands that wait.
pub(super) trait Dedicate: Send + Sync + 'static {
    fn dedicated(self: Arc<Self>) -> BoxFuture<'static, RedisResult<Conn>>;
}

/// One connection, and where more come from.
pub(super) struct Wire<C> {
    connection: C,
    /// None for a connection whose commands may wait.
    limit: Option<Duration>,
    more: Arc<dyn Dedicate>,
}

impl<C> Wire<C>
where
    C: ConnectionLike + Clone + Send + Sync + 'static,
{
    /// A connection that all commands share; none may take longer than `limit`.
    pub(super) fn shared(connection: C, limit: Duration, more: Arc<dyn Dedicate>) -> Conn {
        Conn::new(Self {
            connection,
            limit: Some(limit),
            more,
        })
    }

    /// A connection for commands that wait. It does not come back when it breaks: whoever waits on it makes
    /// another.
    pub(super) fn alone(connection: C, more: Arc<dyn Dedicate>) -> Conn {
        Conn::new(Self {
            connection,
            limit: None,
            more,
        })
    }
}

impl<C> Transport for Wire<C>
where
    C: ConnectionLike + Clone + Send + Sync + 'static,
{
    fn call<'a>(&'a self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        let mut connection = self.connection.clone();
        Box::pin(in_time(self.limit, async move {
            connection.req_packed_command(cmd).await
        }))
    }

    fn call_many<'a>(
        &'a self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        let mut connection = self.connection.clone();
        Box::pin(in_time(self.limit, async move {
            connection
                .req_packed_commands(pipeline, offset, count)
                .await
        }))
    }

    fn dedicated(&self) -> BoxFuture<'_, RedisResult<Conn>> {
        Arc::clone(&self.more).dedicated()
    }

    fn db(&self) -> i64 {
        self.connection.get_db()
    }
}
