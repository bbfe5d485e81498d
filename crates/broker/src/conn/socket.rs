//! A connection of the `redis` crate as a transport for blocking commands, over any stream.

use std::pin::{Pin, pin};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{Cmd, Pipeline, RedisError, RedisFuture, RedisResult, Value};

use super::{Conn, Subscriber, Transport, gone};

/// Opens connections for blocking commands.
pub(super) trait Dedicate: Send + Sync + 'static {
    /// Opens another one.
    fn dedicated(self: Arc<Self>) -> BoxFuture<'static, RedisResult<Conn>>;

    /// Opens one that receives published messages.
    fn subscriber(self: Arc<Self>) -> BoxFuture<'static, RedisResult<Subscriber>>;

    /// Returns true for a cluster.
    fn is_cluster(&self) -> bool {
        false
    }

    /// Names the place of the data in an error.
    fn named(&self, error: RedisError) -> RedisError {
        error
    }

    /// Returns when the data has moved to another server since the connection was opened. The connection may not
    /// notice this, if its server hangs.
    fn moved(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}

/// A connection for blocking commands. A broken one is not reconnected: the caller opens another one.
pub(super) struct Wire {
    connection: MultiplexedConnection,
    origin: Arc<dyn Dedicate>,
}

impl Wire {
    pub(super) fn conn(connection: MultiplexedConnection, origin: Arc<dyn Dedicate>) -> Conn {
        Conn::new(Self { connection, origin })
    }

    /// The call is pinned by the caller, because it is large and would be copied.
    async fn unless_moved<T>(
        &self,
        call: Pin<&mut (impl Future<Output = RedisResult<T>> + Send)>,
    ) -> RedisResult<T> {
        tokio::select! {
            biased;
            answer = call => answer.map_err(|error| self.origin.named(error)),
            () = self.origin.moved() => Err(gone("the data is on another server now")),
        }
    }
}

impl Transport for Wire {
    fn call<'a>(&'a self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        let mut connection = self.connection.clone();
        Box::pin(async move {
            let call = pin!(async {
                match connection.send_packed_command(cmd).await? {
                    Value::ServerError(error) => Err(error.into()),
                    answer => Ok(answer),
                }
            });
            self.unless_moved(call).await
        })
    }

    fn call_many<'a>(
        &'a self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        let mut connection = self.connection.clone();
        Box::pin(async move {
            let call = pin!(connection.send_packed_commands(pipeline, offset, count));
            self.unless_moved(call).await
        })
    }

    fn dedicated(&self) -> BoxFuture<'_, RedisResult<Conn>> {
        Arc::clone(&self.origin).dedicated()
    }

    fn subscriber(&self) -> BoxFuture<'_, RedisResult<Subscriber>> {
        Arc::clone(&self.origin).subscriber()
    }

    fn is_cluster(&self) -> bool {
        self.origin.is_cluster()
    }

    fn db(&self) -> i64 {
        self.connection.get_db()
    }
}
