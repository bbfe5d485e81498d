//! Limits of the length of files.

use super::{Finding, Tree, finding};

/// Lines by ending of the path.
const LIMITS: [(&str, usize); 3] = [(".rs", 500), (".lua", 100), ("ARCHITECTURE.md", 250)];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in tree.files() {
        let lines = file.text.lines().count();
        for (ending, limit) in LIMITS {
            if file.is(ending) && lines > limit {
                let what = format!("{lines} lines, and {limit} are the limit");
                found.push(finding(
                    &file.path,
                    limit + 1,
                    what,
                    "split it by what its parts do",
                ));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::places_of;
    use super::*;

    #[test]
    fn long_files_are_found() {
        let files = [("a.rs", "\n".repeat(500)), ("b.rs", "\n".repeat(501))];
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, &**text)).collect();
        assert_eq!(places_of(check, &files), ["b.rs:501"]);
        assert_eq!(
            places_of(check, &[("x/c.lua", &"\n".repeat(101))]),
            ["x/c.lua:101"]
        );
    }
}
