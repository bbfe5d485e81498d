//! Exponential backoff between tries of a call, with jitter, so that callers that failed together do not return
//! together.

use meshwork_macros::boxed;
use std::time::Duration;

use tokio::time::Instant;

use crate::Error;

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
    #[boxed]
    pub async fn wait(&mut self) {
        let share = 0.5 + rand::random::<f64>() / 2.0;
        tokio::time::sleep(self.next.mul_f64(share)).await;
        self.next = LONGEST.min(self.next * 2);
    }
}

/// Longest time for which a call is repeated while its slot of a Cluster moves: a move that was left half-way is reported.
const MOVES_FOR: Duration = Duration::from_secs(4);

/// Limits of the tries of one call.
#[derive(Debug, Clone, Copy)]
pub struct Tries {
    until: Instant,
    moves_until: Instant,
}

impl Tries {
    /// Begins the tries of a call, the last one not after `until`.
    #[must_use]
    pub fn until(until: Instant) -> Self {
        let moves_until = until.min(Instant::now() + MOVES_FOR);
        Self { until, moves_until }
    }

    /// Begins the tries of a call, for this time.
    #[must_use]
    pub fn within(limit: Duration) -> Self {
        Self::until(Instant::now() + limit)
    }

    /// Returns whether a call is repeated after an error: the same call may succeed later, and there is time left.
    #[must_use]
    pub fn repeat(&self, error: &Error) -> bool {
        let until = match error.is_moving() {
            true => self.moves_until,
            false => self.until,
        };
        error.is_temporary() && Instant::now() < until
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new()
    }
}
