//! The grammar of C's `strtod`, without the values of digits.

use super::big::Big;

/// The number at the start of a text.
pub(super) struct Scanned<'a> {
    pub(super) negative: bool,
    pub(super) number: Number<'a>,
    /// Text after the number.
    pub(super) rest: &'a [u8],
}

pub(super) enum Number<'a> {
    Infinite,
    Nan,
    /// Digits, with or without a point, times ten to the exponent.
    Decimal {
        mantissa: &'a [u8],
        exponent: i64,
    },
    /// Hexadecimal digits, with or without a point, times two to the exponent.
    Hex {
        mantissa: &'a [u8],
        exponent: i64,
    },
}

/// Parses a number, after spaces, at the start of `text`.
pub(super) fn scan(text: &[u8]) -> Option<Scanned<'_>> {
    let text = &text[text.iter().take_while(|byte| is_space(**byte)).count()..];
    let (negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let (number, rest) = word(text).or_else(|| hex(text)).or_else(|| decimal(text))?;
    Some(Scanned {
        negative,
        number,
        rest,
    })
}

pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

fn word(text: &[u8]) -> Option<(Number<'_>, &[u8])> {
    let starts = |word: &str| {
        text.get(..word.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(word.as_bytes()))
    };
    if starts("infinity") {
        return Some((Number::Infinite, &text[8..]));
    }
    if starts("inf") {
        return Some((Number::Infinite, &text[3..]));
    }
    if !starts("nan") {
        return None;
    }
    let rest = &text[3..];
    let inner = rest
        .iter()
        .skip(1)
        .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_');
    let close = 1 + inner.count();
    if rest.first() == Some(&b'(') && rest.get(close) == Some(&b')') {
        return Some((Number::Nan, &rest[close + 1..]));
    }
    Some((Number::Nan, rest))
}

fn decimal(text: &[u8]) -> Option<(Number<'_>, &[u8])> {
    let (mantissa, rest) = mantissa(text, u8::is_ascii_digit)?;
    let (exponent, rest) = exponent(rest, b'e');
    Some((Number::Decimal { mantissa, exponent }, rest))
}

fn hex(text: &[u8]) -> Option<(Number<'_>, &[u8])> {
    let [b'0', b'x' | b'X', digits @ ..] = text else {
        return None;
    };
    let (mantissa, rest) = mantissa(digits, u8::is_ascii_hexdigit)?;
    let (exponent, rest) = exponent(rest, b'p');
    Some((Number::Hex { mantissa, exponent }, rest))
}

/// Digits with at most one point, and at least one digit.
fn mantissa(text: &[u8], is_digit: fn(&u8) -> bool) -> Option<(&[u8], &[u8])> {
    let whole = text.iter().take_while(|byte| is_digit(byte)).count();
    let mut end = whole;
    let mut digits = whole;
    if text.get(whole) == Some(&b'.') {
        let fraction = text[whole + 1..]
            .iter()
            .take_while(|byte| is_digit(byte))
            .count();
        digits += fraction;
        end = whole + 1 + fraction;
    }
    (digits > 0).then(|| text.split_at(end))
}

/// Parses an exponent after its letter; 0 if there is none.
fn exponent(text: &[u8], letter: u8) -> (i64, &[u8]) {
    let signed = match text {
        [first, rest @ ..] if first.eq_ignore_ascii_case(&letter) => rest,
        _ => return (0, text),
    };
    let (negative, digits) = match signed {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let len = digits
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    if len == 0 {
        return (0, text);
    }
    let value = digits[..len].iter().fold(0_i64, |value, digit| {
        value
            .saturating_mul(10)
            .saturating_add(i64::from(digit - b'0'))
    });
    (if negative { -value } else { value }, &digits[len..])
}

impl Scanned<'_> {
    /// Returns whether all digits are 0.
    pub(super) fn is_zero(&self) -> bool {
        match self.number {
            Number::Infinite | Number::Nan => false,
            Number::Decimal { mantissa, .. } | Number::Hex { mantissa, .. } => {
                mantissa.iter().all(|byte| matches!(byte, b'0' | b'.'))
            }
        }
    }

    /// Returns the nearest double; an infinity or 0 out of range.
    pub(super) fn to_double(&self) -> f64 {
        let value = match self.number {
            Number::Infinite => f64::INFINITY,
            Number::Nan => f64::NAN,
            Number::Decimal { mantissa, exponent } => {
                let text = format!("{}e{exponent}", String::from_utf8_lossy(mantissa));
                text.parse().unwrap_or(f64::NAN)
            }
            Number::Hex { .. } => self.hex_double(),
        };
        if self.negative { -value } else { value }
    }

    fn hex_double(&self) -> f64 {
        let (digits, exponent) = self.digits();
        let digits = Big::from_digits(&digits, 16);
        // The smallest doubles have fewer than 53 bits.
        let top = i64::try_from(digits.bits())
            .unwrap_or(i64::MAX)
            .saturating_add(exponent);
        let bits = (top + 1074).clamp(0, 53);
        let (mantissa, shift) = digits.round(usize::try_from(bits).unwrap_or(53), false);
        scale(mantissa, shift.saturating_add(exponent))
    }

    /// Returns the digits as numbers without the point and leading zeros, and the matching exponent (of 10, or of 2
    /// for hexadecimal digits).
    pub(super) fn digits(&self) -> (Vec<u8>, i64) {
        let (mantissa, exponent, per_digit) = match self.number {
            Number::Infinite | Number::Nan => return (Vec::new(), 0),
            Number::Decimal { mantissa, exponent } => (mantissa, exponent, 1),
            Number::Hex { mantissa, exponent } => (mantissa, exponent, 4),
        };
        let point = mantissa.iter().position(|byte| *byte == b'.');
        let fraction = point.map_or(0, |point| mantissa.len() - point - 1);
        let shift = i64::try_from(fraction).unwrap_or(i64::MAX) * per_digit;
        let digits = mantissa
            .iter()
            .filter_map(|byte| char::from(*byte).to_digit(16))
            .filter_map(|digit| u8::try_from(digit).ok())
            .skip_while(|digit| *digit == 0)
            .collect();
        (digits, exponent.saturating_sub(shift))
    }
}

/// Returns `mantissa * 2^exponent`, or an infinity or 0 out of range.
fn scale(mantissa: u64, exponent: i64) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "a double holds no more")]
    let mantissa = mantissa as f64;
    // Two steps, because the power of two alone may be out of range.
    let power = i32::try_from(exponent.clamp(-4000, 4000)).unwrap_or(0);
    mantissa * 2_f64.powi(power / 2) * 2_f64.powi(power - power / 2)
}
