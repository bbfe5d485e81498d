//! Waiting longer after each failure, with jitter so that those who failed together do not return together.

use std::time::Duration;

/// After the first failure.
const FIRST: Duration = Duration::from_millis(50);
/// At most: a server that is back is noticed within this time.
const LONGEST: Duration = Duration::from_secs(2);

/// The waits between tries of one call.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
}

impl Backoff {
    pub(crate) const fn new() -> Self {
        Self { next: FIRST }
    }

    /// Waits, and doubles the next wait: between half of it and the whole, at random.
    pub(crate) async fn wait(&mut self) {
        let share = 0.5 + rand::random::<f64>() / 2.0;
        tokio::time::sleep(self.next.mul_f64(share)).await;
        self.next = LONGEST.min(self.next * 2);
    }
}
