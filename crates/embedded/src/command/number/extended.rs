//! Floating-point numbers of INCRBYFLOAT in Redis: C's `long double`, which has 64 bits of mantissa on x86-64. With
//! doubles, 0.1 + 0.2 would not be 0.3.

use super::{
    big::Big,
    text::{self, Number, Scanned, scan},
};

/// Length from which Redis does not accept a text as a number, in bytes.
const MAX_TEXT: usize = 5 * 1024;
/// Greatest exponent of a number written as 1.… times a power of two.
const MAX_EXPONENT: i64 = 16_383;
/// Exponent of half of the smallest number. Numbers up to it read as 0.
const TOO_SMALL: i64 = -16_446;
/// Greatest number of digits before the point, or of zeros after it.
const MAX_DECIMAL_EXPONENT: i64 = 5_000;
/// Number of written decimals.
const DECIMALS: u32 = 17;

/// A number: 0, a mantissa whose top bit is set times two to the exponent, or infinite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extended {
    negative: bool,
    size: Size,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Size {
    Finite { mantissa: u64, exponent: i64 },
    Infinite,
}

const NOTHING: Size = Size::Finite {
    mantissa: 0,
    exponent: 0,
};

impl Extended {
    pub(crate) const ZERO: Self = Self {
        negative: false,
        size: NOTHING,
    };

    /// Parses a number like C's `strtold`, if it is in range and not NaN.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        if text.first().is_none_or(|first| text::is_space(*first)) || text.len() >= MAX_TEXT {
            return None;
        }
        let scanned = scan(text).filter(|scanned| scanned.rest.is_empty())?;
        let size = match scanned.number {
            Number::Nan => return None,
            Number::Infinite => Size::Infinite,
            Number::Decimal { .. } | Number::Hex { .. } if scanned.is_zero() => NOTHING,
            Number::Decimal { .. } => in_range(decimal(&scanned)?)?,
            Number::Hex { .. } => in_range(hex(&scanned))?,
        };
        Some(Self {
            negative: scanned.negative,
            size,
        })
    }

    /// Returns the sum, or `None` if it is not finite.
    pub(crate) fn add(self, other: Self) -> Option<Self> {
        let (
            Size::Finite {
                mantissa: a,
                exponent: a_exponent,
            },
            Size::Finite {
                mantissa: b,
                exponent: b_exponent,
            },
        ) = (self.size, other.size)
        else {
            return None;
        };
        if b == 0 {
            return Some(self);
        }
        if a == 0 {
            return Some(other);
        }
        if (a_exponent, a) < (b_exponent, b) {
            return other.add(self);
        }
        // 63 bits below the greater mantissa are exact, and one more bit tells whether there is a rest.
        let by = u32::try_from(a_exponent - b_exponent).unwrap_or(u32::MAX);
        let wide = u128::from(b) << 63;
        let near = wide.checked_shr(by).unwrap_or(0);
        let more = near.checked_shl(by) != Some(wide);
        let sum = if self.negative == other.negative {
            (u128::from(a) << 63) + near
        } else {
            (u128::from(a) << 63) - near - u128::from(more)
        };
        let (mantissa, exponent) = round_wide(sum, more);
        if mantissa == 0 {
            return Some(Self::ZERO);
        }
        let size = in_range((mantissa, exponent + a_exponent - 63))?;
        Some(Self {
            negative: self.negative,
            size,
        })
    }

    pub(crate) fn is_infinite(self) -> bool {
        self.size == Size::Infinite
    }

    /// Returns a thousand times the number, rounded up to an integer, if that has 64 bits.
    pub(crate) fn thousandfold(self) -> Option<i64> {
        let Size::Finite { mantissa, exponent } = self.size else {
            return None;
        };
        let wide = u128::from(mantissa) * 1000;
        let by = u32::try_from(exponent.unsigned_abs()).unwrap_or(u32::MAX);
        let size = if exponent >= 0 {
            // The mantissa of a number other than 0 fills its 64 bits.
            wide.checked_shl(by).filter(|_| by < 32 || mantissa == 0)?
        } else {
            let whole = wide.checked_shr(by).unwrap_or(0);
            let exact = whole.checked_shl(by) == Some(wide);
            whole + u128::from(!exact && !self.negative)
        };
        let size = i128::try_from(size).ok()?;
        i64::try_from(if self.negative { -size } else { size }).ok()
    }

    /// Formats the number like Redis: no exponent, 17 decimals, without trailing zeros.
    pub(crate) fn to_text(self) -> String {
        let text = match self.size {
            Size::Infinite => "inf".to_owned(),
            Size::Finite { mantissa, exponent } => match usize::try_from(exponent) {
                Ok(shift) => {
                    let mut whole = Big::from_u64(mantissa);
                    whole.shift_left(shift);
                    whole.to_decimal()
                }
                Err(_) => fraction_text(mantissa, exponent.unsigned_abs()),
            },
        };
        if self.negative && text != "0" {
            format!("-{text}")
        } else {
            text
        }
    }
}

/// Formats `mantissa / 2^down`, rounded to 17 decimals.
fn fraction_text(mantissa: u64, down: u64) -> String {
    let one = 10_u128.pow(DECIMALS);
    let scaled = u128::from(mantissa) * one;
    // The product has at most 121 bits, so a shift by more than 127 gives 0.
    let down = u32::try_from(down).unwrap_or(u32::MAX);
    let rounded = match 1_u128.checked_shl(down) {
        None => 0,
        Some(unit) => {
            let (whole, rest) = (scaled / unit, scaled % unit);
            let half = unit / 2;
            whole + u128::from(rest > half || (rest == half && whole % 2 == 1))
        }
    };
    let text = format!("{}.{:017}", rounded / one, rounded % one);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Normalizes a number, if it is in range.
fn in_range((mantissa, exponent): (u64, i64)) -> Option<Size> {
    let up = i64::from(mantissa.leading_zeros());
    let top = exponent.saturating_add(63 - up);
    let mantissa = mantissa << up;
    let too_small = top < TOO_SMALL || (top == TOO_SMALL && mantissa == 1 << 63);
    let held = top <= MAX_EXPONENT && !too_small;
    held.then(|| Size::Finite {
        mantissa,
        exponent: top - 63,
    })
}

fn decimal(scanned: &Scanned<'_>) -> Option<(u64, i64)> {
    let (digits, exponent) = scanned.digits();
    let magnitude = exponent.saturating_add(i64::try_from(digits.len()).unwrap_or(i64::MAX));
    if magnitude.abs() > MAX_DECIMAL_EXPONENT {
        return None;
    }
    let mut number = Big::from_digits(&digits, 10);
    if exponent >= 0 {
        (0..exponent).for_each(|_| number.mul_add(10, 0));
        return Some(number.round(64, false));
    }
    let mut divisor = Big::from_u64(1);
    (exponent..0).for_each(|_| divisor.mul_add(10, 0));
    Some(divide(number, divisor))
}

/// Returns the quotient of two numbers other than 0, rounded to 64 bits.
fn divide(mut number: Big, mut divisor: Big) -> (u64, i64) {
    /// One bit more than needed, because the first may be 0, and one for rounding.
    const STEPS: u32 = 66;
    let up = number.bits().max(divisor.bits());
    let exponent = i64::try_from(number.bits()).unwrap_or(i64::MAX)
        - i64::try_from(divisor.bits()).unwrap_or(i64::MAX);
    number.shift_left(up - number.bits());
    divisor.shift_left(up - divisor.bits());
    let mut quotient = 0_u128;
    for _ in 0..STEPS {
        quotient <<= 1;
        if number.compare(&divisor).is_ge() {
            number.subtract(&divisor);
            quotient |= 1;
        }
        number.shift_left(1);
    }
    let (mantissa, shift) = round_wide(quotient, !number.is_zero());
    (mantissa, shift + exponent - i64::from(STEPS - 1))
}

fn hex(scanned: &Scanned<'_>) -> (u64, i64) {
    let (digits, exponent) = scanned.digits();
    let (mantissa, shift) = Big::from_digits(&digits, 16).round(64, false);
    (mantissa, exponent.saturating_add(shift))
}

/// Returns the nearest number of 64 bits with the top one set, and its power of two; 0 stays 0. `more` means that the
/// exact number is slightly greater than `wide`.
fn round_wide(wide: u128, more: bool) -> (u64, i64) {
    let mut big = Big::from_u64(u64::try_from(wide >> 64).unwrap_or(u64::MAX));
    big.shift_left(64);
    big.add(u64::try_from(wide & u128::from(u64::MAX)).unwrap_or(u64::MAX));
    let (mantissa, shift) = big.round(64, more);
    if mantissa == 0 {
        return (0, 0);
    }
    let up = mantissa.leading_zeros();
    (mantissa << up, shift - i64::from(up))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(a: &str, b: &str) -> Option<String> {
        let (a, b) = (
            Extended::parse(a.as_bytes())?,
            Extended::parse(b.as_bytes())?,
        );
        a.add(b).map(Extended::to_text)
    }

    /// Each right-hand side is the reply of a Redis 7.0 server to INCRBYFLOAT.
    #[test]
    fn sums_are_those_of_redis() {
        for (a, b, result) in [
            ("0.1", "0.2", "0.3"),
            ("3", "-3", "0"),
            ("-0", "-0", "0"),
            ("1e-18", "0", "0"),
            ("-1e-18", "0", "0"),
            ("5e-18", "0", "0"),
            ("4e-18", "2e-18", "0.00000000000000001"),
            ("123456789.123456789", "0", "123456789.12345678899873747"),
            ("9007199254740993", "0.5", "9007199254740993.5"),
            ("1e17", "0.1", "100000000000000000.1015625"),
            ("99999999999999999999", "1", "100000000000000000000"),
            ("1e30", "1", "1000000000000000000024696061952"),
        ] {
            assert_eq!(sum(a, b).as_deref(), Some(result), "{a} + {b}");
        }
        assert_eq!(sum("1.1e4932", "1.1e4932"), None);
        assert_eq!(sum("inf", "1"), None);
    }

    #[test]
    fn thousandfold_is_rounded_up() {
        for (text, ms) in [
            ("0", Some(0)),
            ("1.5", Some(1500)),
            ("1e-300", Some(1)),
            ("-1e-300", Some(0)),
            ("-0.0015", Some(-1)),
            ("9223372036854775", Some(9_223_372_036_854_775_000)),
            ("9223372036854776", None),
            ("1e300", None),
            ("-inf", None),
        ] {
            let number = Extended::parse(text.as_bytes()).unwrap();
            assert_eq!(number.thousandfold(), ms, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_held_is_no_number() {
        for text in ["1e4933", "1e-4952", "1e-5000", "nan", "", " 1", "1 ", "1x"] {
            assert_eq!(Extended::parse(text.as_bytes()), None, "{text}");
        }
        for text in ["1e4932", "1e-4950", "0e99999", "0x1p-16445", "inf"] {
            assert!(Extended::parse(text.as_bytes()).is_some(), "{text}");
        }
    }
}
