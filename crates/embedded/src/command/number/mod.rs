//! Numbers in arguments and values, parsed and formatted like Redis, that is, like C on x86-64.

mod big;
mod extended;
mod text;

use self::text::{Number, scan};
use crate::resp::parse_integer;

pub(crate) use self::extended::Extended;

/// Parses a score: any number that C's `strtod` reads and that is in the range of a double, or an infinity.
pub(crate) fn parse_score(text: &[u8]) -> Option<f64> {
    if text.first().is_none_or(|first| text::is_space(*first)) {
        return None;
    }
    let scanned = scan(text).filter(|scanned| scanned.rest.is_empty())?;
    let value = scanned.to_double();
    let lost = !matches!(scanned.number, Number::Infinite)
        && (value.is_infinite() || (value == 0.0 && !scanned.is_zero()));
    (!lost && !value.is_nan()).then_some(value)
}

/// Parses a bound of a range of scores. Here Redis is lenient: it accepts leading spaces, the empty text (0) and
/// numbers beyond the doubles (infinities and 0), and ignores text after a NUL.
pub(crate) fn parse_bound(text: &[u8]) -> Option<f64> {
    let text = until_nul(text);
    if text.is_empty() {
        return Some(0.0);
    }
    let scanned = scan(text).filter(|scanned| scanned.rest.is_empty())?;
    Some(scanned.to_double()).filter(|value| !value.is_nan())
}

/// Parses the cursor of a scan like C's `strtoul`: a sign is allowed, and the empty text is 0.
pub(crate) fn parse_cursor(text: &[u8]) -> Option<u64> {
    let text = until_nul(text);
    if text.is_empty() {
        return Some(0);
    }
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some(if negative {
        value.wrapping_neg()
    } else {
        value
    })
}

/// Parses an unsigned number like Redis in the id of an entry: a canonical integer, or a text for C's `strtoull`,
/// which accepts leading spaces and zeros, and a sign.
pub(crate) fn parse_ull(text: &[u8]) -> Option<u64> {
    if let Some(value) = parse_integer(text) {
        return u64::try_from(value).ok();
    }
    let spaces = text.iter().take_while(|byte| text::is_space(**byte));
    let text = &text[spaces.count()..];
    parse_cursor(text).filter(|_| !text.is_empty())
}

/// Returns the part of an argument that a C string function sees.
pub(crate) fn until_nul(text: &[u8]) -> &[u8] {
    text.split(|byte| *byte == 0).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_what_strtod_reads() {
        for (text, value) in [
            ("1", 1.0),
            ("+1.", 1.0),
            ("-.5e1", -5.0),
            ("inf", f64::INFINITY),
            ("-Infinity", f64::NEG_INFINITY),
            ("0x1p4", 16.0),
            ("0x.8", 0.5),
            ("-0xAp-1", -5.0),
            ("0e-999", 0.0),
            ("4.9e-324", 4.9e-324),
            ("0x1.fffffffffffff8p0", 2.0),
            ("0x1.fffffffffffff4p0", 1.999_999_999_999_999_8),
        ] {
            assert_eq!(parse_score(text.as_bytes()), Some(value), "{text}");
        }
        for text in [
            "", " 1", "1 ", "nan", "1e999", "1e-999", "abc", "1e", "0x", "0xg", ".", "1\0", "--1",
        ] {
            assert_eq!(parse_score(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn bounds_are_lenient() {
        for (text, value) in [
            ("", 0.0),
            (" 1", 1.0),
            ("1\0x", 1.0),
            ("1e999", f64::INFINITY),
            ("1e-999", 0.0),
        ] {
            assert_eq!(parse_bound(text.as_bytes()), Some(value), "{text}");
        }
        for text in [" ", "nan", "1 ", "x"] {
            assert_eq!(parse_bound(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn cursors_are_what_strtoul_reads() {
        for (text, value) in [("", 0), ("0", 0), ("017", 17), ("+5", 5), ("-1", u64::MAX)] {
            assert_eq!(parse_cursor(text.as_bytes()), Some(value), "{text}");
        }
        for text in ["-", " 1", "1x", "0x1", "18446744073709551616"] {
            assert_eq!(parse_cursor(text.as_bytes()), None, "{text}");
        }
    }
}
