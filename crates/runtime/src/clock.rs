//! The host's wall clock, for logs. Deadlines and leases use the server's clock.

use std::time::UNIX_EPOCH;

/// Returns the current time, as `2026-11-20T16:23:37.123Z`.
pub fn now_iso() -> String {
    iso(host_ms())
}

/// Returns the time of this host, in milliseconds since 1970, for calls without a server.
#[must_use]
pub fn host_ms() -> u64 {
    host_micros() / 1000
}

/// Returns the time of this host, in microseconds since 1970.
#[allow(
    clippy::disallowed_methods,
    reason = "the one place that asks the host what time it is"
)]
pub fn host_micros() -> u64 {
    let since = std::time::SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    })
}

/// Formats milliseconds since 1970 in ISO 8601.
fn iso(ms: u64) -> String {
    let (days, of_day) = (ms / 86_400_000, ms % 86_400_000);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (of_day / 3_600_000, of_day / 60_000 % 60, of_day / 1000 % 60);
    let ms = of_day % 1000;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// Returns the date so many days after 1 January 1970, in years that begin in March, so that a leap day is the last
/// day.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let in_month = day - (153 * month + 2) / 5 + 1;
    let year = era * 400 + year;
    if month < 10 {
        (year, month + 3, in_month)
    } else {
        (year + 1, month - 9, in_month)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199_999, "2024-02-29T23:59:59.999Z"),
            (1_709_251_200_000, "2024-03-01T00:00:00.000Z"),
            (1_795_191_817_123, "2026-11-20T16:23:37.123Z"),
            (4_102_444_799_000, "2099-12-31T23:59:59.000Z"),
        ] {
            assert_eq!(iso(ms), text);
        }
    }
}
