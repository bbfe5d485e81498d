//! Times of Hero's protocol: ISO 8601 in UTC, from and to milliseconds since 1970. There is no clock here: the
//! server's time counts.

use std::time::Duration;

/// Days in 400 years, after which the calendar repeats itself.
const ERA: i64 = 146_097;
/// Days from the first of March of the year 0 to 1970.
const TO_1970: i64 = 719_468;
const DAY_MS: i64 = 86_400_000;
/// Age of a time to come at which it counts as past, in milliseconds: clocks of hosts differ, and callers compute times.
pub const LATE_MS: u64 = 60_000;

/// Formats milliseconds since 1970 as `2026-01-31T12:00:00.000Z`, like the scripts.
#[must_use]
pub fn iso(ms: u64) -> String {
    let ms = i64::try_from(ms).unwrap_or(i64::MAX);
    let (year, month, day) = date_of(ms / DAY_MS);
    let (seconds, thousandths) = (ms % DAY_MS / 1000, ms % 1000);
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    format!(
        "{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{:02}.{thousandths:03}Z",
        seconds % 60
    )
}

/// Converts a day since 1970 to year, month and day. Years begin in March here, so that a leap day is the last.
pub(crate) fn date_of(day: i64) -> (i64, i64, i64) {
    let day = day + TO_1970;
    let (era, of_era) = (day.div_euclid(ERA), day.rem_euclid(ERA));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let calendar = if month < 10 { month + 3 } else { month - 9 };
    let early = i64::from(calendar <= 2);
    (
        era * 400 + year + early,
        calendar,
        of_year - (153 * month + 2) / 5 + 1,
    )
}

/// Returns the days from 1970 to a date.
fn day(year: i64, month: i64, of_month: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let month = (month + 9) % 12;
    let of_year = (153 * month + 2) / 5 + of_month - 1;
    era * ERA + of_era * 365 + of_era / 4 - of_era / 100 + of_year - TO_1970
}

/// Returns a duration in its two greatest units, as `1.5 s`, `59 min 58 s` or `7 d`. All texts for people use this form.
#[must_use]
pub fn duration(ms: u64) -> String {
    let (whole, part, units) = match ms / 1000 {
        0 if ms == 0 => return "0 s".to_owned(),
        0 => return format!("{ms} ms"),
        seconds @ 1..10 => match ms % 1000 / 100 {
            0 => return format!("{seconds} s"),
            tenths => return format!("{seconds}.{tenths} s"),
        },
        seconds @ 10..60 => return format!("{seconds} s"),
        seconds @ 60..3600 => (seconds / 60, seconds % 60, ("min", "s")),
        seconds @ 3600..86_400 => (seconds / 3600, seconds / 60 % 60, ("h", "min")),
        seconds => (seconds / 86_400, seconds / 3600 % 24, ("d", "h")),
    };
    match part {
        0 => format!("{whole} {}", units.0),
        _ => format!("{whole} {} {part:02} {}", units.0, units.1),
    }
}

/// Returns a [`Duration`] in the form of [`duration`].
#[must_use]
pub fn duration_of(span: Duration) -> String {
    duration(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
}

/// Parses a UTC time to milliseconds since 1970: `2026-01-31`, `2026-01-31T12:00:00Z` or with decimals of a second.
/// Returns `None` for other texts.
#[must_use]
pub fn parse_iso(text: &str) -> Option<u64> {
    let (date, time) = match text.split_once('T') {
        Some((date, time)) => (date, time.strip_suffix('Z')?),
        None => (text, "00:00:00"),
    };
    let days = parse_date(date)?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let [hours, minutes, seconds] = parse_clock(time)?;
    let digits = fraction.bytes().all(|c| c.is_ascii_digit());
    let three = fraction.bytes().chain([b'0'; 3]).take(3);
    let thousandths = three.fold(0, |sum, c| sum * 10 + i64::from(c) - i64::from(b'0'));
    if !digits {
        return None;
    }
    let ms = days * DAY_MS + ((hours * 60 + minutes) * 60 + seconds) * 1000 + thousandths;
    u64::try_from(ms).ok()
}

/// Parses a time with an offset from UTC to milliseconds since 1970: `2026-01-31T12:00:00Z` or `…+01:00`.
#[must_use]
pub fn parse_instant(text: &str) -> Option<u64> {
    if !text.contains('T') {
        return None;
    }
    if let Some(ms) = parse_iso(text) {
        return Some(ms);
    }
    let (local, zone) = text.split_at_checked(text.len().checked_sub(6)?)?;
    let ms = parse_iso(&format!("{local}Z"))?;
    let (sign, of_day) = zone.split_at_checked(1)?;
    let off = parse_iso(&format!("1970-01-01T{of_day}:00Z"))?;
    match sign {
        "+" => ms.checked_sub(off),
        "-" => ms.checked_add(off),
        _ => None,
    }
}

/// Returns a time in milliseconds that a record has in whole seconds, and perhaps exactly in other fields. An exact time
/// counts if it is in that second: else a client that knows only the seconds has changed them.
#[must_use]
pub fn exact(seconds: u64, exact: impl IntoIterator<Item = u64>) -> u64 {
    let same = exact.into_iter().filter(|ms| ms / 1000 == seconds);
    same.max().unwrap_or_else(|| seconds.saturating_mul(1000))
}

/// Units of a span, in milliseconds. `ms` is tried first, because `m` is its prefix.
const UNITS: [(&str, u64); 5] = [
    ("ms", 1),
    ("s", 1000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", DAY_MS as u64),
];

/// Parses a span to milliseconds: `500ms`, `90s`, `10m`, `2h`, `7d`, and several of them together, as `1m30s`. A
/// number alone is seconds. Returns `None` for other texts, or if the span is too large.
#[must_use]
pub fn parse_span(mut text: &str) -> Option<u64> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse::<u64>().ok()?.checked_mul(1000);
    }
    let mut sum: u64 = 0;
    while !text.is_empty() {
        let end = text.find(|c: char| !c.is_ascii_digit())?;
        let (number, rest) = text.split_at(end);
        let unit = |(unit, ms): &(&str, u64)| Some((*ms, rest.strip_prefix(unit)?));
        let (ms, rest) = UNITS.iter().find_map(unit)?;
        sum = sum.checked_add(number.parse::<u64>().ok()?.checked_mul(ms)?)?;
        text = rest;
    }
    Some(sum)
}

/// Parses a date like `2026-01-31` to days from 1970.
pub(crate) fn parse_date(text: &str) -> Option<i64> {
    let [year, month, of_month] = numbers(text, '-', [4, 2, 2])?;
    let days = day(year, month, of_month);
    // An invalid date becomes another one in the round trip.
    (date_of(days) == (year, month, of_month)).then_some(days)
}

/// Parses hours, minutes and seconds as `12:00:00`.
pub(crate) fn parse_clock(text: &str) -> Option<[i64; 3]> {
    let [hours, minutes, seconds] = numbers(text, ':', [2, 2, 2])?;
    (hours < 24 && minutes < 60 && seconds < 60).then_some([hours, minutes, seconds])
}

/// Parses three numbers of fixed numbers of digits.
fn numbers(text: &str, between: char, digits: [usize; 3]) -> Option<[i64; 3]> {
    let mut parts = text.split(between);
    let mut numbers = [0; 3];
    for (place, digits) in numbers.iter_mut().zip(digits) {
        *place = number(parts.next().filter(|part| part.len() == digits)?)?;
    }
    parts.next().is_none().then_some(numbers)
}

fn number(text: &str) -> Option<i64> {
    let digits = text.bytes().all(|c| c.is_ascii_digit());
    digits.then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_times() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_767_225_599_001, "2025-12-31T23:59:59.001Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(iso(ms), text);
            assert_eq!(parse_iso(text), Some(ms));
        }
    }

    #[test]
    fn every_day_of_400_years_comes_back() {
        let days = u64::try_from(ERA).unwrap();
        for ms in (0..days).map(|day| day * 86_400_000 + 1) {
            assert_eq!(parse_iso(&iso(ms)), Some(ms));
        }
    }

    #[test]
    fn parts_may_be_left_out() {
        assert_eq!(parse_iso("1970-01-02"), Some(86_400_000));
        assert_eq!(parse_iso("1970-01-01T00:00:01Z"), Some(1000));
        assert_eq!(parse_iso("1970-01-01T00:00:00.25Z"), Some(250));
        assert_eq!(parse_iso("1970-01-01T00:00:00.123456Z"), Some(123));
    }

    #[test]
    fn durations_have_two_units() {
        for (ms, text) in [
            (0, "0 s"),
            (5, "5 ms"),
            (1000, "1 s"),
            (1500, "1.5 s"),
            (10_900, "10 s"),
            (60_000, "1 min"),
            (61_000, "1 min 01 s"),
            (3_598_513, "59 min 58 s"),
            (3_660_000, "1 h 01 min"),
            (86_400_000, "1 d"),
            (90_000_000, "1 d 01 h"),
        ] {
            assert_eq!(duration(ms), text);
            assert_eq!(duration_of(Duration::from_millis(ms)), text);
        }
        assert_eq!(duration_of(Duration::from_micros(1_500_900)), "1.5 s");
    }

    #[test]
    fn spans_have_units() {
        for (text, ms) in [
            ("0", 0),
            ("90", 90_000),
            ("500ms", 500),
            ("1m30s", 90_000),
            ("2h", 7_200_000),
            ("7d", 604_800_000),
            ("1d1ms", 86_400_001),
        ] {
            assert_eq!(parse_span(text), Some(ms), "{text}");
        }
        let long = "9".repeat(20);
        for bad in [
            "",
            "s",
            "1x",
            "1.5h",
            "-1s",
            "1h 1m",
            "1e3",
            "1ä",
            &long,
            "99999999999999999d",
        ] {
            assert_eq!(parse_span(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for bad in [
            "",
            "now",
            "1969-12-31",
            "2026-02-29",
            "2026-13-01",
            "2026-00-01",
            "2026-1-01",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:60:00Z",
            "2026-01-01T00:00:00",
            "2026-01-01T00:00:00.xZ",
            "2026-01-01T00:00:00.1äZ",
            "+026-01-01",
            "2026-01-01T00:00:00+01:00",
        ] {
            assert_eq!(parse_iso(bad), None, "{bad}");
        }
    }
}
