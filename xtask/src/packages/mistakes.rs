//! Planted mistakes: a checker of types has to find each of them, and nothing else.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::{INSTALL, failed};
use crate::process::{self, Failure};

/// Ends each line with a mistake.
const MARK: &str = "mistake";
/// Number of mistakes in each file.
const PLANTED: usize = 10;

/// Lets a checker read a file with mistakes.
pub(super) fn find(checker: &mut Command, file: &Path) -> Result<(), Failure> {
    let text = fs::read_to_string(file).map_err(failed)?;
    let marked = text
        .lines()
        .zip(1..)
        .filter(|(line, _)| line.ends_with(MARK));
    let planted: BTreeSet<u32> = marked.map(|(_, number)| number).collect();
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let mut found = BTreeSet::new();
    process::watch(checker, INSTALL, |line| {
        found.extend(line_of_error(line, &name));
    })?;
    if planted.len() == PLANTED && found == planted {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{}: the checker has found mistakes in the lines {found:?}, planted are {planted:?}",
        file.display()
    )))
}

/// Returns the number of the line of an error: `file:12: error` or `file(12,5): error`.
fn line_of_error(line: &str, name: &str) -> Option<u32> {
    let (_, rest) = line.split_once(name)?;
    let rest = rest.strip_prefix([':', '('])?;
    let (number, rest) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
    rest.contains(" error").then(|| number.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_an_error_is_read() {
        let of = |line| line_of_error(line, "mistakes.ts");
        assert_eq!(of("mistakes.ts(12,5): error TS2322: it is"), Some(12));
        assert_eq!(of("a/mistakes.ts:7: error: it is  [arg-type]"), Some(7));
        assert_eq!(of("mistakes.ts:7: note: it is"), None);
        assert_eq!(of("other.ts:7: error: it is"), None);
        assert_eq!(of("Found 10 errors in mistakes.ts"), None);
    }
}
