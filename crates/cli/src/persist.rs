//! Saying a call again while the server is away for a moment.

use std::time::Duration;

use tokio::time::Instant;

use crate::error::Error;

/// How long a call is said again: a server that is restarted is back within it.
const FOR: Duration = Duration::from_secs(60);
/// Between two tries, at first and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// The answer to `call`, which may be repeated.
pub(crate) async fn persist<T>(
    call: impl AsyncFn() -> Result<T, meshwork_broker::Error>,
) -> Result<T, Error> {
    let (until, mut pause) = (Instant::now() + FOR, PAUSE.0);
    loop {
        match call().await {
            Err(error) if error.is_temporary() && Instant::now() < until => {
                tracing::warn!(%error, "trying again");
                tokio::time::sleep(pause).await;
                pause = PAUSE.1.min(pause * 2);
            }
            answer => return Ok(answer?),
        }
    }
}
