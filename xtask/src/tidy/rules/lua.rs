//! Each Lua script has its contract at its top, and somebody who calls it.

use super::super::rust_text::lines_of;
use super::super::tree::File;
use super::{Finding, Tree, finding};

const HOME: &str = "crates/broker/src/";

const SCRIPTS: &str = "crates/broker/src/lua/";

/// How a line begins that says what a file is made of.
const MADE_OF: &str = "--- @";

/// What scripts begin with, and none calls: it says what it is for.
const LIBRARY: &str = "/lua/lib/";

const CONTRACT: [&str; 3] = ["-- KEYS", "-- ARGV", "-- Returns"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let included: Vec<String> = tree
        .files()
        .filter(|file| file.path.starts_with(HOME) && file.is(".rs"))
        .flat_map(|file| lines_of(&file.text, false))
        .flat_map(|line| line.literals)
        .filter(|literal| literal.ends_with(".lua"))
        .collect();
    let scripts = tree
        .files()
        .filter(|file| file.path.starts_with(HOME) && file.is(".lua"));
    scripts.flat_map(|file| faults(file, &included)).collect()
}

fn faults(file: &File, included: &[String]) -> Vec<Finding> {
    let mut found = Vec::new();
    let name = file.path.strip_prefix(SCRIPTS).unwrap_or_default();
    if !included.iter().any(|path| path == name) {
        let remedy = "name it in crates/broker/src/script/files.rs, or delete it";
        found.push(finding(&file.path, 1, "a script that nobody calls", remedy));
    }
    let header: Vec<&str> = file
        .text
        .lines()
        .skip_while(|line| line.starts_with(MADE_OF))
        .take_while(|line| line.starts_with("--"))
        .collect();
    if file.path.contains(LIBRARY) {
        let remedy = "say in its first comment what it is for";
        let silent = header.is_empty();
        return found
            .into_iter()
            .chain(silent.then(|| finding(&file.path, 1, "no comment", remedy)))
            .collect();
    }
    for part in CONTRACT {
        if !header.iter().any(|line| line.starts_with(part)) {
            let remedy = "say in its first comment what goes in and what comes out";
            found.push(finding(&file.path, 1, format!("no line `{part}`"), remedy));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::places_of;
    use super::*;

    #[test]
    fn scripts_have_contracts_and_callers() {
        let good = "-- Does.\n-- KEYS a\n-- ARGV b\n-- Returns c\nreturn 1";
        let files = [
            ("crates/broker/src/script.rs", "files![\"a.lua\"];"),
            ("crates/broker/src/lua/a.lua", good),
            ("crates/broker/src/lua/b.lua", good),
        ];
        assert_eq!(places_of(check, &files), ["crates/broker/src/lua/b.lua:1"]);
        let files = [
            files[0],
            ("crates/broker/src/lua/a.lua", "-- KEYS\nlocal a\n-- ARGV"),
        ];
        assert_eq!(places_of(check, &files).len(), 2);
        let library = |text| {
            let source = "files![\"lib/a.lua\"];";
            let files = [
                ("crates/broker/src/script.rs", source),
                ("crates/broker/src/lua/lib/a.lua", text),
            ];
            places_of(check, &files).len()
        };
        assert_eq!((library("-- Time.\nlocal a"), library("local a")), (0, 1));
        assert_eq!(library("--- @include b\nlocal a"), 1);
    }
}
