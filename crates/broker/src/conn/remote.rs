//! A Redis or Valkey server over a socket: one connection for all commands that do not block, which comes
//! back by itself, and dedicated ones for those that do.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use redis::aio::ConnectionManagerConfig;
use redis::{AsyncConnectionConfig, RedisError, RedisResult};

use super::socket::{Dedicate, Wire};
use super::target::Server;
use super::{CALL_TIMEOUT, Conn, ConnectError, Target};

/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Between two tries to reconnect, at the longest.
const MAX_DELAY: Duration = Duration::from_secs(1);

/// Connects to a server.
pub(super) async fn connect(server: &Server) -> Result<Conn, ConnectError> {
    let source = Arc::new(Source(server.client()?));
    let place = Target::Server(Box::new(server.clone())).place();
    // The first connection is made once: a wrong address is told at once, not after all retries.
    let first = source
        .0
        .get_multiplexed_async_connection_with_config(&patient())
        .await;
    drop(first.map_err(|e| refused(place.clone(), e))?);
    let config = ConnectionManagerConfig::new()
        .set_connection_timeout(Some(CONNECT_TIMEOUT))
        .set_response_timeout(Some(CALL_TIMEOUT))
        .set_max_delay(MAX_DELAY);
    let manager = source.0.get_connection_manager_with_config(config).await;
    Ok(Wire::shared(
        manager.map_err(|e| refused(place, e))?,
        CALL_TIMEOUT,
        source,
    ))
}

struct Source(redis::Client);

impl Dedicate for Source {
    fn dedicated(self: Arc<Self>) -> BoxFuture<'static, RedisResult<Conn>> {
        Box::pin(async move {
            let made = self
                .0
                .get_multiplexed_async_connection_with_config(&patient())
                .await?;
            Ok(Wire::alone(made, self))
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
