//! Each Rust file describes its content at its top.

use super::{Finding, Tree, finding};

const REMEDY: &str = "begin it with `//!` and a sentence on what lives here";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.files()
        .filter(|file| file.is(".rs"))
        .filter(|file| {
            let first = file.text.lines().next().unwrap_or_default();
            first
                .strip_prefix("//!")
                .is_none_or(|words| words.split_whitespace().count() < 2)
        })
        .map(|file| finding(&file.path, 1, "no word on what lives here", REMEDY))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::places_of;
    use super::*;

    #[test]
    fn a_header_is_a_sentence() {
        let files = [
            ("a.rs", "//! Says what.\n"),
            ("b.rs", "use x;"),
            ("c.rs", "//! placeholder"),
        ];
        assert_eq!(places_of(check, &files), ["b.rs:1", "c.rs:1"]);
    }
}
