//! Saying a call again while the server is away for a moment.

use std::time::Duration;

use meshwork_broker::Outages;
use tokio::time::Instant;

use crate::error::CommandError;

/// How long a call is said again: a server that is restarted is back within it.
const FOR: Duration = Duration::from_secs(60);
/// Between two tries, at first and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// Repeats `call`, the one named `operation`, while its errors are temporary, for a minute at most.
pub(crate) async fn persist<T>(
    outages: &Outages,
    operation: &'static str,
    call: impl AsyncFn() -> Result<T, meshwork_broker::Error>,
) -> Result<T, CommandError> {
    let (until, mut pause) = (Instant::now() + FOR, PAUSE.0);
    loop {
        match call().await {
            Err(error) if error.is_temporary() && Instant::now() < until => {
                outages.failed(operation, &error);
                tokio::time::sleep(pause).await;
                pause = PAUSE.1.min(pause * 2);
            }
            Ok(answer) => {
                outages.succeeded(operation);
                return Ok(answer);
            }
            Err(error) => return Err(error.into()),
        }
    }
}
