//! Exponential backoff between tries of a call, with jitter, so that callers that failed together do not return
//! together.

use std::time::Duration;

/// First wait.
const FIRST: Duration = Duration::from_millis(50);
/// Greatest wait, and so the longest time until a recovered server is noticed.
const LONGEST: Duration = Duration::from_secs(1);

/// The waits between tries of one call.
#[derive(Debug)]
pub struct Backoff {
    next: Duration,
}

impl Backoff {
    /// Returns the state before the first failure.
    #[must_use]
    pub const fn new() -> Self {
        Self { next: FIRST }
    }

    /// Waits, and doubles the next wait. Jitter shortens each wait by up to a half.
    pub async fn wait(&mut self) {
        let share = 0.5 + rand::random::<f64>() / 2.0;
        tokio::time::sleep(self.next.mul_f64(share)).await;
        self.next = LONGEST.min(self.next * 2);
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new()
    }
}
