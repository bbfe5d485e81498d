//! Keys are built in one folder. Tests spell them out, because they check the wire format.

use super::super::rust_text::{is_beside_the_product, lines_of};
use super::{Finding, Tree, finding};

const HOME: &str = "crates/model/src/keys/";

/// Parts of the keys of supported systems.
const PARTS: [&str; 4] = ["hero:", ":q:", "bananas:", "nooble4:"];

const REMEDY: &str = "build the name by a function in crates/model/src/keys";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in tree.files().filter(|file| file.krate().is_some()) {
        if file.is(".rs") && !file.path.starts_with(HOME) {
            for (at, line) in lines_of(&file.text, is_beside_the_product(&file.path))
                .iter()
                .enumerate()
            {
                if !line.test && line.literals.iter().any(|literal| names_a_key(literal)) {
                    found.push(finding(&file.path, at + 1, "the name of a key", REMEDY));
                }
            }
        }
        if file.is(".lua") {
            for (number, line) in file.lines() {
                let code = line.split("--").next().unwrap_or_default();
                if names_a_key(code) {
                    found.push(finding(&file.path, number, "the name of a key", REMEDY));
                }
            }
        }
    }
    found
}

fn names_a_key(text: &str) -> bool {
    PARTS.iter().any(|part| text.contains(part))
}

#[cfg(test)]
mod tests {
    use super::super::places_of;
    use super::*;

    #[test]
    fn names_of_keys_outside_their_home_are_found() {
        let code =
            "// hero:job\nlet a = \"hero:job:1\";\n#[cfg(test)]\nfn t() { k(\"hero:job:1\") }";
        let lua = "-- hero:job\nredis.call('GET', 'hero:job')";
        let files = [
            ("crates/broker/src/a.rs", code),
            ("crates/model/src/keys/hero.rs", code),
            ("crates/broker/tests/it.rs", code),
            ("crates/broker/src/lua/a.lua", lua),
        ];
        let expected = ["crates/broker/src/a.rs:2", "crates/broker/src/lua/a.lua:2"];
        assert_eq!(places_of(check, &files), expected);
    }
}
