//! Intervals: `@every 30s`, `1h30m`.

use std::fmt;
use std::str::FromStr;

use jiff::{Span, SpanRelativeTo};

/// Least interval, in seconds. Shorter ones need a loop, not a schedule.
const LEAST: i64 = 1;
/// Greatest interval, in seconds: 366 days.
const MOST: i64 = 366 * 24 * 3600;

/// An interval of whole seconds, from one second to 366 days.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Every(u64);

/// A text that is not an interval.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no interval: give whole seconds from 1s to 366d, as 30s, 15m, 1h30m or 7d, or for --every a day, as \
     monday, 'weekdays 9:00' or day, or hour"
)]
pub struct EveryError(String);

impl Every {
    /// Returns the interval in milliseconds.
    #[must_use]
    pub fn ms(self) -> u64 {
        self.0 * 1000
    }
}

impl FromStr for Every {
    type Err = EveryError;

    fn from_str(text: &str) -> Result<Self, EveryError> {
        let read = || {
            let span: Span = text.trim().parse().ok()?;
            let length = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
            let seconds = length.as_secs();
            let whole = length.subsec_nanos() == 0 && (LEAST..=MOST).contains(&seconds);
            whole.then_some(Self(seconds.unsigned_abs()))
        };
        read().ok_or_else(|| EveryError(text.to_owned()))
    }
}

impl fmt::Display for Every {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        for (unit, seconds) in [("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)] {
            let count = rest / seconds;
            rest %= seconds;
            if count > 0 {
                write!(f, "{count}{unit}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_read_and_written() {
        for (text, seconds, written) in [
            ("30s", 30, "30s"),
            ("1h30m", 5400, "1h30m"),
            ("90m", 5400, "1h30m"),
            ("1h 30m", 5400, "1h30m"),
            ("7d", 604_800, "7d"),
            ("1d1s", 86_401, "1d1s"),
            ("366d", 366 * 86_400, "366d"),
            ("1000ms", 1, "1s"),
        ] {
            let every: Every = text.parse().unwrap();
            assert_eq!(
                (every.ms(), every.to_string()),
                (seconds * 1000, written.to_owned())
            );
            assert_eq!(every.to_string().parse(), Ok(every));
        }
    }

    #[test]
    fn what_is_no_interval_is_refused() {
        for text in [
            "", "30", "500ms", "1500ms", "0s", "-5s", "5s ago", "367d", "1mo", "1y", "soon",
        ] {
            assert_eq!(text.parse::<Every>(), Err(EveryError(text.to_owned())));
        }
    }
}
