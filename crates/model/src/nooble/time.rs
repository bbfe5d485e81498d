//! Times of Nooble4: the many forms that its models read, and the one that they write.

use crate::time::date_of;

const MICROS: i128 = 1_000_000;
const DAY: i128 = 86_400 * MICROS;
/// Numbers above this, in millionths, are milliseconds, below seconds: theirs draws the line here.
const MOST_SECONDS: u128 = 20_000_000_000 * MICROS.unsigned_abs();
/// A minus sign as it is printed, which theirs reads in an offset.
const MINUS: char = '\u{2212}';

/// The most that is written for a time, in bytes.
const LONGEST: usize = "2026-01-01T00:00:00.000001+00:00".len();

/// A time since 1970 as Nooble4 writes it: six digits of a second, none if they are all zero.
#[must_use]
pub fn micros(since_1970: u64) -> String {
    instant(i128::from(since_1970)).unwrap_or_default()
}

/// A time as it is written again; None for what is none.
pub(super) fn read(text: &str) -> Option<String> {
    match number(text) {
        Some(number) => number_of(number),
        None => written(text),
    }
}

/// A number of seconds or milliseconds since 1970, in millionths.
pub(super) fn number(text: &str) -> Option<i128> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = |part: &str| part.bytes().all(|c| c.is_ascii_digit());
    if whole.is_empty() || whole.len() > 18 || !all(whole) || !all(fraction) {
        return None;
    }
    let whole: i128 = whole.parse().ok()?;
    Some(sign * (whole * MICROS + six(fraction)))
}

/// What a number, in millionths, means as a time.
pub(super) fn number_of(millionths: i128) -> Option<String> {
    let is_seconds = millionths.unsigned_abs() <= MOST_SECONDS;
    instant(if is_seconds {
        millionths
    } else {
        millionths / 1000
    })
}

/// An instant, in microseconds since 1970, in UTC.
fn instant(micros: i128) -> Option<String> {
    let (days, of_day) = (micros.div_euclid(DAY), micros.rem_euclid(DAY));
    // Whatever number came: the years of more days have more digits than a time.
    let (year, month, day) = date_of(i32::try_from(days).ok()?.into());
    let seconds = of_day / MICROS;
    let parts = [seconds / 3600, seconds / 60 % 60, seconds % 60];
    let known = (1..=9999).contains(&year);
    known.then(|| format!("{}Z", show([year, month, day], parts, of_day % MICROS)))
}

fn show([year, month, day]: [i64; 3], [hour, minute, second]: [i128; 3], micros: i128) -> String {
    // Not with a format: each message has a time, and more than one is written for it.
    let mut text = String::with_capacity(LONGEST);
    for (before, number, width) in [
        ("", year, 4),
        ("-", month, 2),
        ("-", day, 2),
        ("T", hour as i64, 2),
        (":", minute as i64, 2),
        (":", second as i64, 2),
    ] {
        text.push_str(before);
        push_digits(&mut text, number, width);
    }
    if micros != 0 {
        text.push('.');
        push_digits(&mut text, micros as i64, 6);
    }
    text
}

fn push_digits(text: &mut String, number: i64, width: u32) {
    for place in (0..width).rev() {
        let digit = number / 10_i64.pow(place) % 10;
        text.push(char::from(b'0' + digit.unsigned_abs() as u8));
    }
}

/// A date, and a time of it that may have an offset.
fn written(text: &str) -> Option<String> {
    let day_text = text.get(..10)?;
    let days = crate::time::parse_date(day_text)?;
    let (year, month, day) = date_of(days);
    let day = [year, month, day];
    if year < 1 {
        return None;
    }
    let rest = &text[10..];
    if rest.is_empty() {
        return Some(show(day, [0; 3], 0));
    }
    let rest = rest.strip_prefix(['T', 't', ' ', '_'])?;
    let end = rest.find(['Z', 'z', '+', '-', MINUS]).unwrap_or(rest.len());
    let (time, zone) = rest.split_at(end);
    let (time, fraction) = match time.split_once(['.', ',']) {
        Some((_, "")) => return None,
        Some((time, fraction)) => (time, fraction),
        None => (time, ""),
    };
    // However many there are, six of them count.
    let is_fraction = fraction.bytes().all(|c| c.is_ascii_digit());
    // Seconds may be left out, and with them their fraction.
    let time = match time.len() {
        5 if fraction.is_empty() => format!("{time}:00"),
        _ => time.to_owned(),
    };
    let of_day = crate::time::parse_clock(&time).filter(|_| is_fraction)?;
    let shown = show(day, of_day.map(i128::from), six(fraction));
    Some(shown + &zone_of(zone)?)
}

/// An offset as it is written.
fn zone_of(text: &str) -> Option<String> {
    if matches!(text, "" | "Z" | "z") {
        return Some(text.to_uppercase());
    }
    let (sign, offset) = match text.strip_prefix('+') {
        Some(offset) => ('+', offset),
        None => ('-', text.strip_prefix(['-', MINUS])?),
    };
    let offset = match offset.len() {
        4 if offset.is_ascii() => format!("{}:{}", &offset[..2], &offset[2..]),
        _ => offset.to_owned(),
    };
    let [hours, minutes, _] = crate::time::parse_clock(&format!("{offset}:00"))?;
    Some(match (hours, minutes) {
        (0, 0) => "Z".to_owned(),
        _ => format!("{sign}{hours:02}:{minutes:02}"),
    })
}

/// The first six digits of a fraction.
fn six(digits: &str) -> i128 {
    let six = digits.bytes().chain([b'0'; 6]).take(6);
    six.fold(0, |sum, c| sum * 10 + i128::from(c) - i128::from(b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn micros_are_written_as_theirs() {
        assert_eq!(micros(0), "1970-01-01T00:00:00Z");
        assert_eq!(micros(1_751_198_400_123_456), "2025-06-29T12:00:00.123456Z");
    }

    #[test]
    fn forms_that_no_vector_has() {
        for (text, expected) in [
            ("2025-06-29T12:00Z", "2025-06-29T12:00:00Z"),
            ("2025-06-29T12:00:00+0530", "2025-06-29T12:00:00+05:30"),
            ("2025-06-29T12:00:00-00:00", "2025-06-29T12:00:00Z"),
            (
                "2025-06-29T12:00:00.01234567890123Z",
                "2025-06-29T12:00:00.012345Z",
            ),
            (
                "2025-06-29T12:00:00\u{2212}05:00",
                "2025-06-29T12:00:00-05:00",
            ),
            ("+1751198400", "2025-06-29T12:00:00Z"),
            ("-1.5", "1969-12-31T23:59:58.500000Z"),
            ("1751198400.25", "2025-06-29T12:00:00.250000Z"),
        ] {
            assert_eq!(read(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn no_number_is_too_large() {
        let least_of_too_many_days = i128::from(i64::MAX) * DAY * 1000;
        for millionths in [i128::MIN, i128::MAX, least_of_too_many_days] {
            assert_eq!(number_of(millionths), None, "{millionths}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for bad in [
            "",
            "2025-02-30",
            "2025-06-29T",
            "2025-06-29X12:00:00Z",
            "2025-06-29T24:00:00Z",
            "2025-06-29T12:00:00.Z",
            "2025-06-29T12:00:00+25:00",
            "2025-06-29T12:00:00Zx",
            "2025-06-29T12:00:00Z05:30",
            "0000-01-01T00:00:00Z",
            "99999999999999999",
            "1e9",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
