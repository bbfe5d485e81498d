//! Findings of a report as text.

use std::fmt;

/// Number of findings of each sort in the text; JSON has all.
const SHOWN: usize = 10;

/// Writes the first findings of each sort, one per line.
pub(super) fn write(
    f: &mut fmt::Formatter<'_>,
    findings: &[(&'static str, &[String])],
) -> fmt::Result {
    for (name, lines) in findings {
        for line in lines.iter().take(SHOWN) {
            write!(f, "\n  {name}: {line}")?;
        }
    }
    Ok(())
}
