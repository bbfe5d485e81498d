//! No script is longer than the limit: a server parses all of it when it is loaded.
//!
//! A file of `lua/` names at its top the files that precede it in the script (`--- @include`, `--- @lazy`); each is
//! counted once. A test of the broker checks the names that a script uses.

use super::super::tree::File;
use super::{Finding, Tree, finding};

const SCRIPTS: &str = "crates/broker/src/lua/";

/// The folder of files that are no scripts by themselves.
const PARTS: &str = "lib/";

/// The folders in which a script for jobs of Hero finds the files that it names.
const FOLDERS: [&str; 2] = [
    "crates/broker/src/lua/lib/",
    "crates/broker/src/lua/lib/layout_hero/",
];

/// Beginning of a line that names included files.
const MADE_OF: &str = "--- @";

/// Lines of the longest script. Raise it only for a new step of the end of a job, which has to be atomic.
const LIMIT: usize = 1444;

/// Number of scripts that `cargo xtask tidy` names.
const SHOWN: usize = 5;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let all = lengths(tree);
    let Some((first, longest)) = all.first() else {
        return Vec::new();
    };
    let path = format!("{SCRIPTS}{first}");
    let what = match *longest {
        LIMIT => return Vec::new(),
        lines if lines > LIMIT => format!("a script of {lines} lines; the limit is {LIMIT}"),
        lines => format!("the longest script has {lines} lines, and the limit is still {LIMIT}"),
    };
    let remedy =
        "shorten the script, or lower the limit in xtask/src/tidy/rules/scripts.rs to the longest";
    vec![finding(&path, 1, what, remedy)]
}

/// The longest scripts, in a line.
pub(super) fn longest(tree: &Tree) -> String {
    let shown = lengths(tree).into_iter().take(SHOWN);
    let shown: Vec<_> = shown
        .map(|(name, lines)| format!("{name} {lines}"))
        .collect();
    format!("the longest scripts, in lines: {}", shown.join(", "))
}

/// Returns every script with the lines of all its files, the longest first.
fn lengths(tree: &Tree) -> Vec<(&str, usize)> {
    let scripts = tree.files().filter_map(|file| {
        let name = file.path.strip_prefix(SCRIPTS)?;
        let part = name.starts_with(PARTS);
        (file.is(".lua") && !part).then_some((file, name))
    });
    let mut all: Vec<_> = scripts
        .map(|(file, name)| (name, length(tree, file)))
        .collect();
    all.sort_by_key(|(name, lines)| (std::cmp::Reverse(*lines), *name));
    all
}

fn length(tree: &Tree, script: &File) -> usize {
    let mut seen = vec![script];
    let mut at = 0;
    while let Some(file) = seen.get(at).copied() {
        for path in parts(file) {
            let is_it = |folder| {
                tree.files()
                    .find(|part| part.path == format!("{folder}{path}"))
            };
            let part = FOLDERS.iter().find_map(is_it);
            if let Some(part) = part.filter(|part| seen.iter().all(|it| it.path != part.path)) {
                seen.push(part);
            }
        }
        at += 1;
    }
    let sent = |file: &&File| {
        file.text
            .lines()
            .filter(|line| !line.starts_with(MADE_OF))
            .count()
    };
    seen.iter().map(sent).sum()
}

/// Returns the files that a file names at its top.
fn parts(file: &File) -> Vec<String> {
    let tops = file
        .text
        .lines()
        .map_while(|line| line.strip_prefix(MADE_OF));
    let names = tops.filter_map(|top| {
        let (word, names) = top.split_once(' ')?;
        let names = names.split(" gives ").next()?;
        matches!(word, "include" | "lazy").then_some(names)
    });
    let names = names.flat_map(|names| names.split(','));
    names.map(|name| format!("{}.lua", name.trim())).collect()
}

#[cfg(test)]
mod tests {
    use super::super::places_of;
    use super::*;

    fn tree(lines: usize) -> Tree {
        let long = "x\n".repeat(lines);
        Tree::of(&[
            (
                "crates/broker/src/lua/a.lua",
                "--- @include b, c\n--- @lazy d gives e\nx\n",
            ),
            ("crates/broker/src/lua/lib/b.lua", "--- @include c\nx\n"),
            ("crates/broker/src/lua/lib/c.lua", "x\nx\n"),
            ("crates/broker/src/lua/lib/d.lua", &long),
            ("crates/broker/src/lua/f.lua", "x\n"),
        ])
    }

    #[test]
    fn each_part_is_counted_once() {
        assert_eq!(lengths(&tree(10)), [("a.lua", 14), ("f.lua", 1)]);
        let shown = "the longest scripts, in lines: a.lua 14, f.lua 1";
        assert_eq!(longest(&tree(10)), shown);
    }

    #[test]
    fn the_limit_is_that_of_the_longest() {
        let places = |lines: usize| check(&tree(lines - 4)).len();
        assert_eq!(places(LIMIT), 0);
        assert_eq!((places(LIMIT + 1), places(LIMIT - 1)), (1, 1));
        assert!(places_of(check, &[]).is_empty());
    }
}
