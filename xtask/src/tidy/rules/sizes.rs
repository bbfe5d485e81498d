//! Limits of the length of files, and of the number of files in a folder.

use std::collections::BTreeMap;

use super::{Finding, Tree, finding};

/// Lines by ending of the path.
const LIMITS: [(&str, usize); 3] = [(".rs", 500), (".lua", 100), ("ARCHITECTURE.md", 250)];

/// Files of one folder of sources, without those in its folders: as many as a reader overlooks at once.
const MAX_FILES: usize = 25;

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
    found.extend(full_folders(tree));
    found
}

/// Returns the folders with too many sources, each at the first file beyond the limit.
fn full_folders(tree: &Tree) -> Vec<Finding> {
    let mut folders: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let sources = [".rs", ".lua", ".py", ".diff"];
    for file in tree.files() {
        let is_source = sources.iter().any(|ending| file.is(ending));
        if let Some((folder, _)) = file.path.rsplit_once('/').filter(|_| is_source) {
            folders.entry(folder).or_default().push(&file.path);
        }
    }
    let full = folders.values().filter_map(|files| {
        let first = files.get(MAX_FILES)?;
        let what = format!(
            "{} sources in one folder, and {MAX_FILES} are the limit",
            files.len()
        );
        Some(finding(
            first,
            1,
            what,
            "move those of one subject into a folder",
        ))
    });
    full.collect()
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

    #[test]
    fn full_folders_are_found() {
        let paths: Vec<_> = (0..=MAX_FILES).map(|n| format!("a/{n:02}.rs")).collect();
        let mut files: Vec<_> = paths.iter().map(|path| (&**path, "\n")).collect();
        files.push(("a/b/c.rs", "\n"));
        assert_eq!(places_of(check, &files), ["a/25.rs:1"]);
        assert!(places_of(check, &files[1..]).is_empty());
    }
}
