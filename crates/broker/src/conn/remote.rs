//! A Redis or Valkey server over a socket: one connection for all commands that do not block, which comes
//! back by itself, and dedicated ones for those that do.

use std::time::Duration;

use futures_util::future::BoxFuture;
use redis::aio::{
    ConnectionLike, ConnectionManager, ConnectionManagerConfig, MultiplexedConnection,
};
use redis::{AsyncConnectionConfig, Cmd, Pipeline, RedisError, RedisFuture, RedisResult, Value};

use super::target::Server;
use super::{Conn, ConnectError, Target, Transport};
use crate::error::timed_out;

/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a command that does not block may take, reconnecting included: while the server is down a call
/// would else hang through all retries.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// Between two tries to reconnect, at the longest.
const MAX_DELAY: Duration = Duration::from_secs(1);

pub(super) struct Remote {
    client: redis::Client,
    manager: ConnectionManager,
    db: i64,
}

impl Remote {
    pub(super) async fn connect(server: &Server) -> Result<Self, ConnectError> {
        let client = server.client()?;
        // The first connection is made once: a wrong address is told at once, not after all retries.
        let place = Target::Server(server.clone()).place();
        let config = patient();
        let first = client
            .get_multiplexed_async_connection_with_config(&config)
            .await;
        drop(first.map_err(|e| refused(place.clone(), e))?);
        let config = ConnectionManagerConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(CALL_TIMEOUT))
            .set_max_delay(MAX_DELAY);
        let manager = client
            .get_connection_manager_with_config(config)
            .await
            .map_err(|e| refused(place, e))?;
        Ok(Self {
            client,
            manager,
            db: server.db(),
        })
    }
}

/// Without a time limit on replies, which would end a command that waits, and its connection.
fn patient() -> AsyncConnectionConfig {
    AsyncConnectionConfig::new()
        .set_connection_timeout(Some(CONNECT_TIMEOUT))
        .set_response_timeout(None)
}

fn refused(place: String, error: RedisError) -> ConnectError {
    let text = error.to_string();
    let by_server = matches!(error.code(), Some("WRONGPASS" | "NOAUTH" | "NOPERM"))
        || error.kind() == redis::ErrorKind::AuthenticationFailed
        || text.contains("AUTH");
    if by_server {
        return ConnectError::Refused {
            place,
            reason: text,
        };
    }
    ConnectError::Unreachable {
        place,
        source: error,
    }
}

async fn in_time<T>(call: impl Future<Output = RedisResult<T>>) -> RedisResult<T> {
    tokio::time::timeout(CALL_TIMEOUT, call)
        .await
        .unwrap_or_else(|_| Err(timed_out()))
}

impl Transport for Remote {
    fn call<'a>(&'a self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        let mut manager = self.manager.clone();
        Box::pin(in_time(
            async move { manager.req_packed_command(cmd).await },
        ))
    }

    fn call_many<'a>(
        &'a self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        let mut manager = self.manager.clone();
        Box::pin(in_time(async move {
            manager.req_packed_commands(pipeline, offset, count).await
        }))
    }

    fn dedicated(&self) -> BoxFuture<'_, RedisResult<Conn>> {
        Box::pin(async move {
            let config = patient();
            let one = self
                .client
                .get_multiplexed_async_connection_with_config(&config)
                .await?;
            Ok(Conn::new(Dedicated {
                client: self.client.clone(),
                one,
                db: self.db,
            }))
        })
    }

    fn db(&self) -> i64 {
        self.db
    }
}

/// One connection that does not come back when it breaks: whoever waits on it makes another.
struct Dedicated {
    client: redis::Client,
    one: MultiplexedConnection,
    db: i64,
}

impl Transport for Dedicated {
    fn call<'a>(&'a self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        let mut one = self.one.clone();
        Box::pin(async move { one.req_packed_command(cmd).await })
    }

    fn call_many<'a>(
        &'a self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        let mut one = self.one.clone();
        Box::pin(async move { one.req_packed_commands(pipeline, offset, count).await })
    }

    fn dedicated(&self) -> BoxFuture<'_, RedisResult<Conn>> {
        Box::pin(async move {
            let config = patient();
            let one = self
                .client
                .get_multiplexed_async_connection_with_config(&config)
                .await?;
            Ok(Conn::new(Self {
                client: self.client.clone(),
                one,
                db: self.db,
            }))
        })
    }

    fn db(&self) -> i64 {
        self.db
    }
}
