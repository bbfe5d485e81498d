//! Waiting for something that sends no signal, such as a key in a server: the one place where
//! tests may poll.

use std::time::{Duration, Instant};

/// Between two looks: short beside any bound that is worth testing.
const PAUSE: Duration = Duration::from_millis(5);

/// Looks again and again until `look` gives a value, and returns it.
///
/// # Panics
/// When `bound` has passed, naming `what` did not happen.
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
