//! ARCHITECTURE.md names only existing files.

use super::{Finding, Tree, finding};

const DOCUMENT: &str = "ARCHITECTURE.md";

/// Beginnings of words in backticks that are paths.
const FOLDERS: [&str; 4] = ["crates/", "xtask/", "examples/", ".ci/"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(document) = tree.file(DOCUMENT) else {
        return vec![finding(
            DOCUMENT,
            1,
            "there is none",
            "write it: the way of a job, and why",
        )];
    };
    let mut found = Vec::new();
    for (number, line) in document.lines() {
        for path in line
            .split('`')
            .skip(1)
            .step_by(2)
            .filter(|word| is_path(word))
        {
            if !tree.has(path) {
                let what = format!("{path} is not there");
                found.push(finding(DOCUMENT, number, what, "name what is there"));
            }
        }
    }
    found
}

/// Returns whether a word is a path; patterns, as `crates/*`, are not.
fn is_path(word: &str) -> bool {
    FOLDERS.iter().any(|folder| word.starts_with(folder))
        && word
            .chars()
            .all(|c| c.is_alphanumeric() || "/._-".contains(c))
}

#[cfg(test)]
mod tests {
    use super::super::places_of;
    use super::*;

    #[test]
    fn paths_exist() {
        let text = "`crates/a/src/lib.rs` crates/x `crates/*`\n`crates/a/` `crates/b/` `job.rs`";
        let files = [(DOCUMENT, text), ("crates/a/src/lib.rs", "")];
        assert_eq!(places_of(check, &files), ["ARCHITECTURE.md:2"]);
    }
}
