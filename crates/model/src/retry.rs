//! Backoff of a failed job. The job's `retries` decides whether there is another run.

use std::time::Duration;

/// Exponential backoff with a cap. A random part of each pause keeps jobs that failed together apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryBackoff {
    /// Pause before the second run.
    pub first: Duration,
    /// Greatest pause.
    pub cap: Duration,
}

impl Default for RetryBackoff {
    /// From 1 second to 10 minutes.
    fn default() -> Self {
        Self {
            first: Duration::from_secs(1),
            cap: Duration::from_secs(600),
        }
    }
}

impl RetryBackoff {
    /// Returns the pause after run number `attempt`, counted from 1. It is between three quarters and the whole of
    /// the doubled value, by `chance` from 0 to 1. `first` is the job's own first pause.
    #[must_use]
    pub fn pause(&self, attempt: u32, first: Option<Duration>, chance: f64) -> Duration {
        let doublings = attempt.saturating_sub(1).min(31);
        let pause = first
            .unwrap_or(self.first)
            .saturating_mul(1 << doublings)
            .min(self.cap);
        pause.mul_f64(0.75 + chance.clamp(0.0, 1.0) / 4.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACKOFF: RetryBackoff = RetryBackoff {
        first: Duration::from_secs(2),
        cap: Duration::from_secs(60),
    };

    #[test]
    fn doubles_up_to_the_cap() {
        for (attempt, seconds) in [(0, 2), (1, 2), (2, 4), (5, 32), (6, 60), (u32::MAX, 60)] {
            let pause = BACKOFF.pause(attempt, None, 1.0);
            assert_eq!(pause, Duration::from_secs(seconds), "{attempt}");
        }
    }

    #[test]
    fn chance_takes_a_quarter_at_most() {
        let pause = |chance| BACKOFF.pause(1, Some(Duration::from_millis(400)), chance);
        assert_eq!(pause(0.0), Duration::from_millis(300));
        assert_eq!(pause(0.5), Duration::from_millis(350));
        assert_eq!(pause(9.0), Duration::from_millis(400));
    }

    #[test]
    fn none_is_none() {
        assert_eq!(BACKOFF.pause(9, Some(Duration::ZERO), 1.0), Duration::ZERO);
    }
}
