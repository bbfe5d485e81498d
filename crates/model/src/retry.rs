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
    /// the doubled value, by `chance` from 0 to 1. `own` is the job's own first pause: the cap does not shorten it, and
    /// chance adds up to a quarter.
    #[must_use]
    pub fn pause(&self, attempt: u32, own: Option<Duration>, chance: f64) -> Duration {
        let doublings = attempt.saturating_sub(1).min(31);
        let pause = own
            .unwrap_or(self.first)
            .saturating_mul(1 << doublings)
            .min(self.cap.max(own.unwrap_or_default()));
        let least = if own.is_some() { 1.0 } else { 0.75 };
        pause.mul_f64(least + chance.clamp(0.0, 1.0) / 4.0)
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
        let pause = |chance| BACKOFF.pause(1, None, chance);
        assert_eq!(pause(0.0), Duration::from_millis(1500));
        assert_eq!(pause(0.5), Duration::from_millis(1750));
        assert_eq!(pause(9.0), Duration::from_millis(2000));
    }

    #[test]
    fn a_job_never_waits_less_than_its_own_backoff() {
        let own = Duration::from_secs(3600);
        for attempt in [0, 1, 2, 9] {
            assert_eq!(BACKOFF.pause(attempt, Some(own), 0.0), own, "{attempt}");
        }
        let short = Some(Duration::from_millis(400));
        assert_eq!(BACKOFF.pause(1, short, 0.0), Duration::from_millis(400));
        assert_eq!(BACKOFF.pause(1, short, 1.0), Duration::from_millis(500));
        assert_eq!(BACKOFF.pause(9, short, 0.0), BACKOFF.cap);
    }

    #[test]
    fn none_is_none() {
        assert_eq!(BACKOFF.pause(9, Some(Duration::ZERO), 1.0), Duration::ZERO);
    }
}
