//! Waiting longer after each failure, with jitter so that those who failed together do not return together.

use std::time::Duration;

/// After the first failure.
const FIRST: Duration = Duration::from_millis(50);
/// At most: a server that is back is noticed within this time.
const LONGEST: Duration = Duration::from_secs(1);

/// The waits between tries of one call.
#[derive(Debug)]
pub struct Backoff {
    next: Duration,
}

impl Backoff {
    /// Before the first failure.
    #[must_use]
    pub const fn new() -> Self {
        Self { next: FIRST }
    }

    /// Waits, and doubles the next wait: between half of it and the whole, at random.
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
