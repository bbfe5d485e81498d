//! Paths of `/proc/self/mountinfo`.

use std::path::PathBuf;

/// Decodes a path of mountinfo, in which blanks, tabs, newlines and backslashes are octal numbers.
pub(super) fn unescape(text: &str) -> PathBuf {
    let mut path = text.to_owned();
    for (code, character) in [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ] {
        path = path.replace(code, character);
    }
    path.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octal_numbers_are_decoded() {
        assert_eq!(unescape("/a\\040b\\134c"), PathBuf::from("/a b\\c"));
    }
}
