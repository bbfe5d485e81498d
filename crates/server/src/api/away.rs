//! Calls while the store is away: they get an answer within two seconds, and do not wait until it is back.

use std::time::Duration;

use meshwork_broker::Broker;
use tokio::time::Instant;

use super::error::{ApiError, Code};

/// Time for which a call waits for a lost connection: a failover that is shorter is not noticed.
const WAITS: Duration = Duration::from_millis(600);
/// Time in which a store with a connection answers a short command. One that is frozen, or behind a cut line, does not.
const ANSWERS: Duration = Duration::from_secs(1);
/// Pause between two looks at the connection.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Runs a call, or fails when its store has no connection or does not answer. With `waits` the call waits for an event: it
/// survives an absence of the store that begins later.
pub(crate) async fn unless_away<T>(
    broker: &Broker,
    waits: bool,
    call: impl Future<Output = Result<T, ApiError>>,
) -> Result<T, ApiError> {
    tokio::select! {
        biased;
        result = call => result,
        () = away(broker, waits) => Err(is_away()),
    }
}

fn is_away() -> ApiError {
    let message = "the store does not answer; the call may have been carried out all the same";
    ApiError::new(Code::StorageError, message)
        .hint("repeat the call with the same id or Idempotency-Key")
}

/// Returns when the store has been without a connection, or has not answered.
async fn away(broker: &Broker, waits: bool) {
    let began = Instant::now();
    tokio::time::sleep(WAITS).await;
    loop {
        tokio::select! {
            () = without_connection(broker) => return,
            answers = answers(broker) => if !answers {
                return;
            },
        }
        if waits && began.elapsed() > 2 * WAITS {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn without_connection(broker: &Broker) {
    while broker.conn().is_connected() {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Returns false if the store has a connection and does not answer. A Cluster has other reasons not to answer for a slot, for
/// which the call itself has a time and a better error.
async fn answers(broker: &Broker) -> bool {
    broker.conn().is_cluster() || tokio::time::timeout(ANSWERS, broker.now()).await.is_ok()
}
