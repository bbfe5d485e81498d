//! Rates: greatest number of starts in a time, in the form for people and in the stored form.

use std::fmt;
use std::str::FromStr;

use super::MAX_CONCURRENCY;

/// Greatest period of a rate, in milliseconds (366 days).
const MAX_PER_MS: u64 = 366 * 86_400_000;
/// Units of time, in milliseconds, with the preferred word first.
const UNITS: [(&str, u64); 13] = [
    ("ms", 1),
    ("s", 1000),
    ("sec", 1000),
    ("second", 1000),
    ("min", 60_000),
    ("m", 60_000),
    ("minute", 60_000),
    ("h", 3_600_000),
    ("hour", 3_600_000),
    ("d", 86_400_000),
    ("day", 86_400_000),
    ("w", 604_800_000),
    ("week", 604_800_000),
];

/// The greatest number of starts in a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    count: u64,
    per_ms: u64,
    burst: Option<u64>,
}

/// A text that is not a rate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no rate: {fault}; write 100/min, `10/s burst 20`, or `window 100/1m` for windows that begin \
     with the first start"
)]
pub struct RateError {
    text: String,
    fault: &'static str,
}

impl Rate {
    /// Returns a token bucket: `count` starts in `per_ms` milliseconds on average, and up to `burst` at once.
    ///
    /// # Errors
    /// A number is 0 or too large.
    pub fn bucket(count: u64, per_ms: u64, burst: u64) -> Result<Self, RateError> {
        let text = || format!("{count}/{per_ms}ms burst {burst}");
        Self::new(count, per_ms, Some(burst)).map_err(|fault| RateError {
            text: text(),
            fault,
        })
    }

    /// Returns a window: up to `count` starts within `per_ms` milliseconds of the first one. The next start after
    /// that begins the next window.
    ///
    /// # Errors
    /// A number is 0 or too large.
    pub fn window(count: u64, per_ms: u64) -> Result<Self, RateError> {
        let text = || format!("window {count}/{per_ms}ms");
        Self::new(count, per_ms, None).map_err(|fault| RateError {
            text: text(),
            fault,
        })
    }

    fn new(count: u64, per_ms: u64, burst: Option<u64>) -> Result<Self, &'static str> {
        let counts = 1..=MAX_CONCURRENCY;
        if !counts.contains(&count) || burst.is_some_and(|burst| !counts.contains(&burst)) {
            return Err("a number is 0 or over 1000000000");
        }
        if !(1..=MAX_PER_MS).contains(&per_ms) {
            return Err("its time is not from 1 ms to 366 days");
        }
        Ok(Self {
            count,
            per_ms,
            burst,
        })
    }

    /// Returns the milliseconds until the next start, by the state that scripts store; 0 is now. The state is the
    /// used count, a blank, and a time: the start of a window, or the last update of a bucket.
    #[must_use]
    pub fn wait_ms(&self, state: &str, now: u64) -> u64 {
        let read = || {
            let (used, at) = state.split_once(' ')?;
            Some((used.parse::<f64>().ok()?, at.parse::<u64>().ok()?))
        };
        let Some((used, at)) = read() else { return 0 };
        let (count, per_ms) = (self.count as f64, self.per_ms as f64);
        match self.burst {
            None if now < at || now >= at.saturating_add(self.per_ms) => 0,
            None if used < count => 0,
            None => at.saturating_add(self.per_ms) - now,
            Some(burst) => {
                let used = used.min(burst as f64);
                let drained = now.saturating_sub(at) as f64 * count / per_ms;
                let over = (used - drained).max(0.0) + 1.0 - burst as f64;
                // Scripts allow for the same rounding error.
                if over <= 1e-9 {
                    0
                } else {
                    (over * per_ms / count).ceil() as u64
                }
            }
        }
    }

    /// Returns the stored form: `window:N:MS` or `bucket:N:MS:BURST`.
    #[must_use]
    pub fn kept(&self) -> String {
        let Self { count, per_ms, .. } = self;
        match self.burst {
            None => format!("window:{count}:{per_ms}"),
            Some(burst) => format!("bucket:{count}:{per_ms}:{burst}"),
        }
    }

    /// Parses the stored form; `None` if the text is not a rate.
    #[must_use]
    pub fn read(kept: &str) -> Option<Self> {
        let mut parts = kept.split(':');
        let kind = parts.next()?;
        let numbers: Option<Vec<u64>> = parts.map(|part| part.parse().ok()).collect();
        match (kind, numbers?.as_slice()) {
            ("window", [count, per_ms]) => Self::new(*count, *per_ms, None).ok(),
            ("bucket", [count, per_ms]) => Self::new(*count, *per_ms, Some(*count)).ok(),
            ("bucket", [count, per_ms, burst]) => Self::new(*count, *per_ms, Some(*burst)).ok(),
            _ => None,
        }
    }
}

/// Parses `N/TIME`, the time with or without a number before its unit.
fn quotient(text: &str) -> Result<(u64, u64), &'static str> {
    let (count, time) = text.split_once('/').ok_or("it has no slash")?;
    let count = count.trim().parse();
    let time = time.trim();
    let digits = time.len() - time.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = time.split_at(digits);
    let unit = unit.trim();
    let known = UNITS.iter().find(|(word, _)| *word == unit);
    let (_, ms) = known.ok_or("its time has no unit of ms, s, min, h, d or w")?;
    let number: u64 = match number {
        "" => 1,
        number => number.parse().map_err(|_| "its time is too long")?,
    };
    let count = count.map_err(|_| "the part before the slash is no whole number")?;
    Ok((
        count,
        number.checked_mul(*ms).ok_or("its time is too long")?,
    ))
}

impl FromStr for Rate {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Self, RateError> {
        let read = || {
            if let Some(window) = text.trim().strip_prefix("window ") {
                let (count, per_ms) = quotient(window)?;
                return Self::new(count, per_ms, None);
            }
            let (rate, burst) = match text.split_once(" burst ") {
                Some((rate, burst)) => {
                    let burst = burst.trim().parse();
                    (
                        rate,
                        Some(burst.map_err(|_| "its burst is no whole number")?),
                    )
                }
                None => (text, None),
            };
            let (count, per_ms) = quotient(rate)?;
            Self::new(count, per_ms, Some(burst.unwrap_or(count)))
        };
        read().map_err(|fault| RateError {
            text: text.to_owned(),
            fault,
        })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Weeks are written as days.
        let (unit, ms) = ["d", "h", "min", "s", "ms"]
            .iter()
            .filter_map(|unit| UNITS.iter().find(|(word, _)| word == unit))
            .find(|(_, ms)| self.per_ms.is_multiple_of(*ms))
            .copied()
            .unwrap_or(("ms", 1));
        let time = match self.per_ms / ms {
            1 => unit.to_owned(),
            n => format!("{n}{unit}"),
        };
        match self.burst {
            None => write!(f, "window {}/{time}", self.count),
            Some(burst) => write!(f, "{}/{time} burst {burst}", self.count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_as_people_write_them() {
        for (text, kept, shown) in [
            ("100/min", "bucket:100:60000:100", "100/min burst 100"),
            ("10/s burst 20", "bucket:10:1000:20", "10/s burst 20"),
            ("1 / 250ms", "bucket:1:250:1", "1/250ms burst 1"),
            ("5/2h burst 1", "bucket:5:7200000:1", "5/2h burst 1"),
            ("3/week", "bucket:3:604800000:3", "3/7d burst 3"),
            ("window 100/1m", "window:100:60000", "window 100/min"),
            ("window 7/90 s", "window:7:90000", "window 7/90s"),
        ] {
            let rate: Rate = text.parse().unwrap();
            assert_eq!(rate.kept(), kept, "{text}");
            assert_eq!(rate.to_string(), shown, "{text}");
            assert_eq!(Rate::read(kept), Some(rate));
            assert_eq!(shown.parse(), Ok(rate), "{shown}");
        }
        assert_eq!(Rate::read("bucket:4:10"), Rate::bucket(4, 10, 4).ok());
    }

    #[test]
    fn when_the_next_may_start() {
        let window = Rate::window(2, 1000).unwrap();
        for (state, now, wait) in [
            ("", 5, 0),
            ("1.000000 100", 200, 0),
            ("2.000000 100", 200, 900),
            ("2.000000 100", 1100, 0),
            ("2.000000 100", 50, 0),
        ] {
            assert_eq!(window.wait_ms(state, now), wait, "{state} {now}");
        }
        let bucket = Rate::bucket(10, 1000, 5).unwrap();
        for (state, now, wait) in [
            ("4.000000 100", 100, 0),
            ("5.000000 100", 100, 100),
            ("5.000000 100", 150, 50),
            ("5.000000 100", 200, 0),
            ("900.000000 100", 100, 100),
        ] {
            assert_eq!(bucket.wait_ms(state, now), wait, "{state} {now}");
        }
    }

    #[test]
    fn what_is_no_rate_says_how_one_is_written() {
        for bad in [
            "",
            "100",
            "/s",
            "100/",
            "100/5",
            "0/s",
            "-1/s",
            "1.5/s",
            "100/0s",
            "100/year",
            "100/400d",
            "10/s burst",
            "10/s burst 0",
            "10/s burst x",
            "window",
            "window 1",
            "window 1/s burst 2",
            "2000000000/s",
            "1/99999999999999999999s",
        ] {
            let error = bad.parse::<Rate>().unwrap_err().to_string();
            assert!(error.contains(&format!("{bad:?}")), "{error}");
            assert!(error.contains("100/min"), "{error}");
        }
        for bad in [
            "",
            "window:1",
            "bucket:1",
            "window:1:2:3",
            "bucket:0:1:1",
            "x:1:1",
        ] {
            assert_eq!(Rate::read(bad), None, "{bad}");
        }
        assert!(Rate::window(1, u64::MAX).is_err() && Rate::bucket(1, 1, 0).is_err());
    }
}
