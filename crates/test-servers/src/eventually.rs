//! Polling for a state without a signal, such as a key in a server: the only place where tests may poll.

use std::time::{Duration, Instant};

/// Pause between two polls: short compared with any bound that is worth testing.
const PAUSE: Duration = Duration::from_millis(5);

/// Polls until `look` returns a value, and returns it.
///
/// # Panics
/// `bound` has passed; the message names `what` did not happen.
pub async fn eventually<T>(
    what: &str,
    bound: Duration,
    mut look: impl AsyncFnMut() -> Option<T>,
) -> T {
    let deadline = Instant::now() + bound;
    loop {
        if let Some(value) = look().await {
            return value;
        }
        assert!(Instant::now() < deadline, "not within {bound:?}: {what}");
        tokio::time::sleep(PAUSE).await;
    }
}
