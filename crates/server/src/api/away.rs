//! Calls while the store is away: they get an answer within a second, and do not wait until it is back.

use std::time::Duration;

use meshwork_broker::Broker;
use tokio::time::Instant;

use super::error::{ApiError, Code};

/// Time for which a call waits for a lost connection: a failover that is shorter is not noticed.
const WAITS: Duration = Duration::from_millis(600);
/// Pause between two looks at the connection.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Runs a call, or fails when its store has no connection. With `waits` the call waits for an event: it survives an absence of
/// the store that begins later.
pub(crate) async fn unless_away<T>(
    broker: &Broker,
    waits: bool,
    call: impl Future<Output = Result<T, ApiError>>,
) -> Result<T, ApiError> {
    tokio::select! {
        result = call => result,
        () = away(broker, waits) => Err(is_away()),
    }
}

fn is_away() -> ApiError {
    let message = "the store does not answer; the call may have been carried out all the same";
    ApiError::new(Code::StorageError, message)
        .hint("repeat the call with the same id or Idempotency-Key")
}

/// Returns when the store has been without a connection.
async fn away(broker: &Broker, waits: bool) {
    let began = Instant::now();
    tokio::time::sleep(WAITS).await;
    while broker.conn().is_connected() {
        if waits && began.elapsed() > 2 * WAITS {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
