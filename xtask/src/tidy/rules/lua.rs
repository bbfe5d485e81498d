//! The broker's code names each Lua file, and a library file describes its purpose. `contracts.rs` checks the headers
//! of scripts.

use super::super::rust_text::lines_of;
use super::super::tree::File;
use super::{Finding, Tree, finding};

const HOME: &str = "crates/broker/src/";

const SCRIPTS: &str = "crates/broker/src/lua/";

/// First characters of a line that names parts of a script.
const MADE_OF: &str = "--- @";

/// Files that scripts include.
const LIBRARY: &str = "/lua/lib/";

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
    let mut lines = file
        .text
        .lines()
        .skip_while(|line| line.starts_with(MADE_OF));
    let silent = !lines.next().is_some_and(|line| line.starts_with("--"));
    if file.path.contains(LIBRARY) && silent {
        let remedy = "say in its first comment what it is for";
        found.push(finding(&file.path, 1, "no comment", remedy));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::places_of;
    use super::*;

    #[test]
    fn scripts_have_callers_and_libraries_a_comment() {
        let good = "-- Does.\nreturn 1";
        let files = [
            ("crates/broker/src/script.rs", "files![\"a.lua\"];"),
            ("crates/broker/src/lua/a.lua", good),
            ("crates/broker/src/lua/b.lua", good),
        ];
        assert_eq!(places_of(check, &files), ["crates/broker/src/lua/b.lua:1"]);
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
