//! Retries of calls while the server is briefly unavailable.

use std::time::Duration;

use meshwork_broker::{Outages, Tries};

use crate::error::CommandError;

/// Longest time of retries: a server restarts within it.
const FOR: Duration = Duration::from_secs(60);
/// Shortest and longest pause between two tries.
const PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// Repeats `call` while its errors are temporary, for at most 60 s. `operation` names the call in messages.
pub(crate) async fn persist<T>(
    outages: &Outages,
    operation: &'static str,
    call: impl AsyncFn() -> Result<T, meshwork_broker::Error>,
) -> Result<T, CommandError> {
    let (mut tries, mut pause) = (Tries::within(FOR), PAUSE.0);
    loop {
        match call().await {
            Err(error) if tries.repeat(&error) => {
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
