//! Numbers in texts for people, and those of JSON. A number of JSON is exact if a signed 64-bit integer or a 64-bit float holds it with all its digits.

use std::borrow::Cow;
use std::fmt::Display;

use serde::de::IgnoredAny;
use serde_json::Value;

/// Most digits of a fraction of which a 64-bit float keeps each one (`f64::DIGITS`).
const SHORT: usize = f64::DIGITS as usize;

/// Returns a number with its noun, in the plural unless it is one.
///
/// ```
/// use meshwork_model::number::counted;
///
/// assert_eq!(counted(1, "job"), "1 job");
/// assert_eq!(counted(0, "batch"), "0 batches");
/// ```
pub fn counted<N: Display + Copy + PartialEq + From<u8>>(number: N, noun: &str) -> String {
    let plural = match noun.ends_with("ch") {
        _ if number == N::from(1) => "",
        true => "es",
        false => "s",
    };
    format!("{number} {noun}{plural}")
}

/// Reads JSON. A number that is not exact is a text with all its digits.
///
/// # Errors
/// The text is not JSON.
pub fn read(json: &str) -> serde_json::Result<Value> {
    match as_texts(json) {
        Cow::Borrowed(json) => serde_json::from_str(json),
        Cow::Owned(text) => {
            // A quoted number may make JSON of what is none, as in `{1e400: 1}`.
            serde_json::from_str::<IgnoredAny>(json)?;
            serde_json::from_str(&text)
        }
    }
}

/// Returns the first number in JSON that is not exact.
#[must_use]
pub fn first_inexact(json: &str) -> Option<&str> {
    Numbers::of(json)
        .find(|number| !is_exact(&json[number.clone()]))
        .map(|number| &json[number])
}

/// Returns true if a signed 64-bit integer, or for a fraction or an exponent a 64-bit float, holds all digits of a number.
#[must_use]
pub fn is_exact(number: &str) -> bool {
    if !number.contains(['.', 'e', 'E']) {
        return number.parse::<i64>().is_ok();
    }
    if number.len() <= SHORT && !number.contains(['e', 'E']) {
        return true;
    }
    match number.parse::<f64>() {
        Ok(float) if float.is_finite() => {
            Decimal::read(number) == Decimal::read(&format!("{float:e}"))
        }
        _ => false,
    }
}

fn as_texts(json: &str) -> Cow<'_, str> {
    let (mut out, mut copied) = (String::new(), 0);
    for number in Numbers::of(json) {
        if is_exact(&json[number.clone()]) {
            continue;
        }
        out.push_str(&json[copied..number.start]);
        out.push('"');
        out.push_str(&json[number.clone()]);
        out.push('"');
        copied = number.end;
    }
    if copied == 0 {
        return json.into();
    }
    out.push_str(&json[copied..]);
    out.into()
}

/// A number by its significant digits and the power of ten behind the last one.
#[derive(Debug, PartialEq)]
struct Decimal {
    negative: bool,
    digits: String,
    exponent: i64,
}

impl Decimal {
    /// Returns `None` if the exponent is out of range and the number is not 0.
    fn read(number: &str) -> Option<Self> {
        let negative = number.starts_with('-');
        let number = number.trim_start_matches(['+', '-']);
        let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{whole}{fraction}");
        let digits = all.trim_start_matches('0').trim_end_matches('0').to_owned();
        if digits.is_empty() {
            return Some(Self {
                negative,
                digits,
                exponent: 0,
            });
        }
        let zeros = all.len() - all.trim_end_matches('0').len();
        let shift = i64::try_from(zeros).ok()? - i64::try_from(fraction.len()).ok()?;
        let exponent = exponent.parse::<i64>().ok()?.checked_add(shift)?;
        Some(Self {
            negative,
            digits,
            exponent,
        })
    }
}

/// The places of the numbers in a text, if it is JSON.
struct Numbers<'j> {
    json: &'j [u8],
    at: usize,
}

impl<'j> Numbers<'j> {
    const fn of(json: &'j str) -> Self {
        let json = json.as_bytes();
        Self { json, at: 0 }
    }

    fn skip_text(&mut self) {
        self.at += 1;
        while let Some(byte) = self.json.get(self.at) {
            self.at += if *byte == b'\\' { 2 } else { 1 };
            if *byte == b'"' {
                return;
            }
        }
    }
}

impl Iterator for Numbers<'_> {
    type Item = std::ops::Range<usize>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.json.get(self.at)? {
                b'"' => self.skip_text(),
                b'-' | b'0'..=b'9' => break,
                _ => self.at += 1,
            }
        }
        let start = self.at;
        let part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
        while self.json.get(self.at).is_some_and(part) {
            self.at += 1;
        }
        Some(start..self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_exact_if_64_bits_hold_its_digits() {
        let exact = [
            "0",
            "-0",
            "7",
            "9007199254740993",
            "9223372036854775807",
            "-9223372036854775808",
            "1.0",
            "0.1",
            "-0.0",
            "1.50",
            "1e3",
            "1E+16",
            "1e16",
            "1.7976931348623157e308",
            "5e-324",
            "0.30000000000000004",
            "0e9999999999999999999",
            "100000000000000000000.0",
            "2.5e-7",
            "0.000000000000000000001",
        ];
        for number in exact {
            assert!(is_exact(number), "{number}");
        }
        let inexact = [
            "9223372036854775808",
            "-9223372036854775809",
            "18446744073709551615",
            "18446744073709551616",
            "10000000000000000000000000000000000000000",
            "1e400",
            "-1e400",
            "1e-400",
            "1e99999999999999999999",
            "9007199254740993.0",
            "0.1000000000000000055511151231257827",
            "0.1234567890123456789012345678901234567890",
            "1.00000000000000000000000000000000001",
        ];
        for number in inexact {
            assert!(!is_exact(number), "{number}");
        }
    }

    #[test]
    fn numbers_that_are_not_exact_are_read_as_texts() {
        let given = r#"{"a":[1e400, -18446744073709551616 ,7],"18446744073709551616":"18446744073709551616 \" 1e400","b":0.5}"#;
        let read = read(given).unwrap();
        assert_eq!(
            read["a"],
            serde_json::json!(["1e400", "-18446744073709551616", 7])
        );
        assert_eq!(
            read["18446744073709551616"],
            "18446744073709551616 \" 1e400"
        );
        assert_eq!(read["b"], 0.5);
        assert_eq!(first_inexact(given), Some("1e400"));
        assert_eq!(first_inexact("[1, 0.25, \"1e400\"]"), None);
    }

    #[test]
    fn no_json_stays_none() {
        for text in [
            "",
            "{1e400: 1}",
            "18446744073709551616x",
            "01e400",
            "1e400 1e400",
            "-",
            "\"\\",
            "+18446744073709551616",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
