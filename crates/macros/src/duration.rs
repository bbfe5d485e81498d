//! Durations as people write them: `250ms`, `2s`, `5min`, `1h`, `7d`.

use syn::LitStr;

/// Units with their milliseconds.
const UNITS: [(&str, u64); 6] = [
    ("ms", 1),
    ("s", 1000),
    ("min", 60_000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];

/// Reads a duration as milliseconds.
pub(crate) fn millis(text: &LitStr) -> syn::Result<u64> {
    let value = text.value();
    let wrong = || {
        let message =
            format!("{value:?} is no duration: write a number and ms, s, min, h or d, as \"30s\"");
        syn::Error::new(text.span(), message)
    };
    let at = value
        .find(|c: char| !c.is_ascii_digit())
        .ok_or_else(wrong)?;
    let (number, unit) = value.split_at(at);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let unit = UNITS.iter().find(|(name, _)| *name == unit.trim());
    let (_, ms) = unit.ok_or_else(wrong)?;
    number.checked_mul(*ms).ok_or_else(wrong)
}
