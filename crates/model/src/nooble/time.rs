//! Times of Nooble4: parsers for all forms that its models read, and the one form that they write.

use std::borrow::Cow;

use crate::time::date_of;

const MICROS: i64 = 1_000_000;
const DAY: i64 = 86_400 * MICROS;
/// Greatest number that Nooble4 reads as seconds, in millionths; greater ones are milliseconds.
const MOST_SECONDS: u128 = 20_000_000_000 * MICROS.unsigned_abs() as u128;
/// A typographic minus sign, which Nooble4 accepts in an offset.
const MINUS: char = '\u{2212}';

/// Greatest length of a written time, in bytes.
const LONGEST: usize = "2026-01-01T00:00:00.000001+00:00".len();
/// Template of a time with seconds.
const CLOCK: [u8; 19] = *b"0000-00-00T00:00:00";
/// Positions of its pairs of digits.
const PAIRS: [usize; 7] = [0, 2, 5, 8, 11, 14, 17];

/// Formats microseconds since 1970 like Nooble4: six decimals of a second, none if they are all zero.
#[must_use]
pub fn micros(since_1970: u64) -> String {
    let since_1970 = i64::try_from(since_1970).ok();
    since_1970.and_then(instant).unwrap_or_default()
}

/// Converts a time to written form; `None` if the text is not a time.
pub(super) fn read<'a>(text: impl Into<Cow<'a, str>>) -> Option<String> {
    let text = text.into();
    if is_written(&text) {
        return Some(text.into_owned());
    }
    match number(&text) {
        Some(number) => number_of(number),
        None => written(&text),
    }
}

/// Returns whether a text is a UTC time in written form, as nearly all are.
fn is_written(text: &str) -> bool {
    let Some((clock, rest)) = text.as_bytes().split_first_chunk() else {
        return false;
    };
    let is_rest = match rest {
        b"Z" => true,
        // Six zeros are omitted.
        [b'.', six @ .., b'Z'] => {
            six.len() == 6 && six.iter().all(u8::is_ascii_digit) && six != b"000000"
        }
        _ => false,
    };
    is_rest && is_clock(clock)
}

/// Returns whether these are a valid date and time of day.
fn is_clock(clock: &[u8; CLOCK.len()]) -> bool {
    let in_form = |(byte, form): (&u8, &u8)| match form {
        b'0' => byte.is_ascii_digit(),
        other => byte == other,
    };
    if !clock.iter().zip(&CLOCK).all(in_form) {
        return false;
    }
    let pair = |at: usize| (clock[at] - b'0') * 10 + (clock[at + 1] - b'0');
    let [century, of_century, month, day, hour, minute, second] = PAIRS.map(pair);
    let year = u16::from(century) * 100 + u16::from(of_century);
    year > 0
        && (1..=12).contains(&month)
        && (1..=days_of(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60
}

/// Returns the number of days in a month.
fn days_of(year: u16, month: u8) -> u8 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 => 28 + u8::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Parses a number of seconds or milliseconds since 1970, in millionths.
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
    Some(sign * (whole * i128::from(MICROS) + i128::from(six(fraction))))
}

/// Converts such a number to a time.
pub(super) fn number_of(millionths: i128) -> Option<String> {
    let is_seconds = millionths.unsigned_abs() <= MOST_SECONDS;
    let micros = if is_seconds {
        millionths
    } else {
        millionths / 1000
    };
    // The range covers more than all years of four digits.
    instant(i64::try_from(micros).ok()?)
}

/// Formats microseconds since 1970 as a UTC time.
fn instant(micros: i64) -> Option<String> {
    let (days, of_day) = (micros.div_euclid(DAY), micros.rem_euclid(DAY));
    let (year, month, day) = date_of(days);
    let seconds = of_day / MICROS;
    let parts = [seconds / 3600, seconds / 60 % 60, seconds % 60];
    let known = (1..=9999).contains(&year);
    known.then(|| {
        let mut text = show([year, month, day], parts, of_day % MICROS);
        text.push('Z');
        text
    })
}

/// Formats a time without `format!`, because each message has at least one.
fn show([year, month, day]: [i64; 3], [hour, minute, second]: [i64; 3], micros: i64) -> String {
    let parts = [year / 100, year % 100, month, day, hour, minute, second];
    let mut bytes = CLOCK;
    for (at, part) in PAIRS.into_iter().zip(parts) {
        [bytes[at], bytes[at + 1]] = pair(part);
    }
    let mut text = String::with_capacity(LONGEST);
    push(&mut text, &bytes);
    if micros != 0 {
        let [a, b] = pair(micros / 10_000);
        let [c, d] = pair(micros / 100 % 100);
        let [e, f] = pair(micros % 100);
        push(&mut text, &[b'.', a, b, c, d, e, f]);
    }
    text
}

/// Returns two digits.
fn pair(number: i64) -> [u8; 2] {
    let number = number.unsigned_abs() as u8;
    [b'0' + number / 10 % 10, b'0' + number % 10]
}

fn push(text: &mut String, digits: &[u8]) {
    // Digits and signs are always text.
    text.push_str(std::str::from_utf8(digits).unwrap_or_default());
}

/// Reads a date and a time of day with an optional offset.
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
    // Any number of decimals is allowed; the first six count.
    if !fraction.bytes().all(|c| c.is_ascii_digit()) {
        return None;
    }
    // Seconds and their decimals are optional.
    let of_day = match time.as_bytes() {
        &[a, b, b':', c, d] if fraction.is_empty() => {
            let [hours, minutes] = hours_and_minutes([a, b, c, d])?;
            [hours, minutes, 0]
        }
        _ => crate::time::parse_clock(time)?,
    };
    let mut shown = show(day, of_day, six(fraction));
    push_zone(zone, &mut shown)?;
    Some(shown)
}

/// Appends an offset in written form.
fn push_zone(text: &str, out: &mut String) -> Option<()> {
    if text.is_empty() {
        return Some(());
    }
    if matches!(text, "Z" | "z") {
        out.push('Z');
        return Some(());
    }
    let (sign, offset) = match text.strip_prefix('+') {
        Some(offset) => ('+', offset),
        None => ('-', text.strip_prefix(['-', MINUS])?),
    };
    let digits = match *offset.as_bytes() {
        [a, b, b':', c, d] | [a, b, c, d] => [a, b, c, d],
        _ => return None,
    };
    if hours_and_minutes(digits)? == [0, 0] {
        out.push('Z');
        return Some(());
    }
    let [a, b, c, d] = digits;
    out.push(sign);
    push(out, &[a, b, b':', c, d]);
    Some(())
}

/// Reads hours and minutes of two digits each.
fn hours_and_minutes(digits: [u8; 4]) -> Option<[i64; 2]> {
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let [a, b, c, d] = digits.map(|digit| i64::from(digit - b'0'));
    let (hours, minutes) = (10 * a + b, 10 * c + d);
    (hours < 24 && minutes < 60).then_some([hours, minutes])
}

/// Returns the first six digits of a fraction as a number.
fn six(digits: &str) -> i64 {
    let six = digits.bytes().chain([b'0'; 6]).take(6);
    six.fold(0, |sum, c| sum * 10 + i64::from(c) - i64::from(b'0'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Converts any form by the general parser.
    fn by_parts(text: &str) -> Option<String> {
        number(text).map_or_else(|| written(text), number_of)
    }

    /// Returns whether a text is recognized as written form. If so, the general parser must agree.
    fn is_kept(text: &str) -> bool {
        assert_eq!(read(text), by_parts(text), "{text}");
        is_written(text)
    }

    #[test]
    fn each_day_is_read_as_by_parts() {
        for year in [0, 1, 4, 100, 400, 1900, 1970, 2000, 2023, 2024, 9999] {
            for (month, day) in (0..=13).flat_map(|month| (0..=32).map(move |day| (month, day))) {
                let text = format!("{year:04}-{month:02}-{day:02}T23:59:59.999999Z");
                assert_eq!(is_kept(&text), by_parts(&text).is_some(), "{text}");
            }
        }
    }

    #[test]
    fn each_byte_of_a_time_is_judged() {
        for time in ["2024-02-29T19:35:48Z", "2024-02-29T19:35:48.000001Z"] {
            for at in 0..time.len() {
                for byte in 0..=0x7f_u8 {
                    let mut bytes = time.as_bytes().to_vec();
                    bytes[at] = byte;
                    let text = String::from_utf8(bytes).unwrap();
                    // A text in written form must stay unchanged. An unchanged text must be in written form, unless
                    // it has an offset or no zone.
                    let same = by_parts(&text).as_deref() == Some(&text);
                    assert_eq!(is_kept(&text), same && text.ends_with('Z'), "{text}");
                }
            }
        }
    }

    #[test]
    fn each_part_of_a_day_is_bounded() {
        for (hour, minute, second) in [
            (23, 59, 59),
            (24, 0, 0),
            (0, 60, 0),
            (0, 0, 60),
            (99, 99, 99),
        ] {
            let text = format!("2024-02-29T{hour:02}:{minute:02}:{second:02}Z");
            assert_eq!(is_kept(&text), hour == 23, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_nearly_a_time_is_read_as_by_parts(
            text in "[0-9]{4}-[01][0-9]-[0-3][0-9][T_t ]([012][0-9]:[0-6][0-9]|[01][0-9](:[0-5][0-9]){2})([.,][0-9]{0,8}|\\.0{6})?(Z|z|[-+\u{2212}][0-2][0-9]:?[0-6][0-9])?",
            changes in proptest::collection::vec((any::<prop::sample::Index>(), "[-0-9:TZ.ñ]?"), 0..2),
        ) {
            let mut chars: Vec<_> = text.chars().map(String::from).collect();
            for (at, change) in changes {
                let at = at.index(chars.len());
                chars[at] = change;
            }
            let text = chars.concat();
            let kept = is_kept(&text);
            prop_assert!(!kept || by_parts(&text) == Some(text));
        }

        #[test]
        fn each_instant_comes_back(of_9999_years in 0..253_402_300_800_000_000_u64) {
            let text = micros(of_9999_years);
            let (date, rest) = text.split_at(10);
            let days = crate::time::parse_date(date).unwrap();
            let [hours, minutes, seconds] = crate::time::parse_clock(&rest[1..9]).unwrap();
            let fraction = rest[9..].trim_matches(['.', 'Z']);
            let fraction: i64 = if fraction.is_empty() { 0 } else { fraction.parse().unwrap() };
            let is = ((days * 24 + hours) * 60 + minutes) * 60 + seconds;
            prop_assert_eq!(is * MICROS + fraction, i64::try_from(of_9999_years).unwrap());
            prop_assert!(is_kept(&text));
        }
    }

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
        let least_of_too_many_days = i128::from(i64::MAX) * i128::from(DAY) * 1000;
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
