//! Sizes in bytes, as people write them: `512M`, `1GiB`, `4096`.

/// Units with their powers of 1,024. A suffix `B` or `iB` changes nothing: all units are binary, as those of systemd
/// and Docker.
const UNITS: [(char, u32); 4] = [('K', 1), ('M', 2), ('G', 3), ('T', 4)];
/// Bytes of each next unit.
const STEP: u64 = 1024;

/// Greatest number before an exact unit.
const LONGEST: u64 = 9_999;

/// A size that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no size: give bytes, or a number with K, M, G or T, as in 512M")]
pub struct InvalidSize(String);

/// Reads a size.
///
/// # Errors
/// The text is no whole number with an optional unit, or is too large.
pub fn parse_size(text: &str) -> Result<u64, InvalidSize> {
    let invalid = || InvalidSize(text.to_owned());
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.parse().map_err(|_| invalid())?;
    if digits.starts_with('+') {
        return Err(invalid());
    }
    let unit = text[digits.len()..].to_ascii_uppercase();
    let power = match unit.strip_suffix("IB").or(unit.strip_suffix('B')) {
        Some("") if unit == "B" => 0,
        Some(prefix) if !prefix.is_empty() => power(prefix).ok_or_else(invalid)?,
        None if unit.is_empty() => 0,
        None => power(&unit).ok_or_else(invalid)?,
        Some(_) => return Err(invalid()),
    };
    number.checked_mul(STEP.pow(power)).ok_or_else(invalid)
}

/// Returns the power of a unit's letter.
fn power(unit: &str) -> Option<u32> {
    let mut letters = unit.chars();
    let (letter, None) = (letters.next()?, letters.next()) else {
        return None;
    };
    UNITS
        .iter()
        .find(|(name, _)| *name == letter)
        .map(|(_, power)| *power)
}

/// Returns a size with the largest unit that divides it, as `512 MiB` or `1025 B`; if the number would be longer than four digits,
/// with two decimals, as `11.79 GiB`.
#[must_use]
pub fn format_size(bytes: u64) -> String {
    let units = || {
        UNITS
            .iter()
            .rev()
            .map(|(letter, power)| (letter, STEP.pow(*power)))
    };
    let exact = units().find(|(_, unit)| bytes > 0 && bytes.is_multiple_of(*unit));
    let exact = exact.map_or((bytes, String::new()), |(letter, unit)| {
        (bytes / unit, format!("{letter}i"))
    });
    match units().find(|(_, unit)| bytes >= *unit) {
        Some((letter, unit)) if exact.0 > LONGEST => {
            let hundredths = u128::from(bytes) * 100 / u128::from(unit);
            format!("{}.{:02} {letter}iB", hundredths / 100, hundredths % 100)
        }
        _ => format!("{} {}B", exact.0, exact.1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in [
            ("4096", 4096),
            ("0", 0),
            ("10B", 10),
            ("1k", 1024),
            ("512M", 512 << 20),
            ("512MB", 512 << 20),
            ("512MiB", 512 << 20),
            ("2gib", 2 << 30),
            ("1T", 1 << 40),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in [
            "",
            "M",
            "1.5G",
            "-1",
            "+1",
            "1 G",
            "1X",
            "1KK",
            "iB",
            "1iB",
            "1KiBB",
            "99999999999T",
        ] {
            let refused = parse_size(text).unwrap_err().to_string();
            assert!(refused.contains(&format!("`{text}`")), "{refused}");
        }
    }

    #[test]
    fn sizes_are_written_with_their_largest_unit() {
        for (bytes, text) in [
            (0, "0 B"),
            (1025, "1025 B"),
            (1024, "1 KiB"),
            (512 << 20, "512 MiB"),
            (3 << 29, "1536 MiB"),
            (1 << 40, "1 TiB"),
            (12_662_634_496, "11.79 GiB"),
            (u64::MAX, "16777215.99 TiB"),
        ] {
            assert_eq!(format_size(bytes), text);
        }
    }
}
