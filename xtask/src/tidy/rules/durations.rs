//! Messages write durations in one form, `59 min 58 s`, and not as Rust's `3598.513s`.

use super::super::rust_text::{is_beside_the_product, is_test_file, lines_of};
use super::{Finding, Tree, finding};

/// Last words of the names of durations.
const DURATIONS: [&str; 14] = [
    "after", "age", "backoff", "byte", "delay", "elapsed", "grace", "interval", "lease",
    "patience", "pause", "timeout", "took", "waited",
];

const REMEDY: &str = "write it with `meshwork_model::time::duration_of`";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    let product = tree
        .files()
        .filter(|file| file.is(".rs") && file.path.starts_with("crates/"))
        .filter(|file| !is_beside_the_product(&file.path));
    for file in product {
        let lines = lines_of(&file.text, is_test_file(&file.path));
        for (at, line) in lines.iter().enumerate() {
            // The parts of a hash are for no reader.
            if line.test || line.code.contains("hash.") {
                continue;
            }
            if let Some(name) = line.literals.iter().find_map(|it| duration(it)) {
                let what = format!("the duration `{name}` in the form of Rust");
                found.push(finding(&file.path, at + 1, what, REMEDY));
            }
        }
    }
    found
}

/// Returns the name of the first duration that a literal writes with `:?`.
fn duration(literal: &str) -> Option<&str> {
    let before = literal.match_indices(":?}").map(|(at, _)| &literal[..at]);
    let mut names = before.filter_map(|text| text.rsplit_once('{').map(|(_, name)| name));
    names.find(|name| {
        let last = name.rsplit(['_', '.']).next().unwrap_or_default();
        DURATIONS.contains(&last.to_lowercase().as_str())
    })
}

#[cfg(test)]
mod tests {
    use super::super::places_of;
    use super::*;

    #[test]
    fn durations_of_messages_are_found_and_others_are_not() {
        let product = "format!(\"not after {waited:?}\");\nformat!(\"{name:?} after {}\", of(waited));\n\
                       format!(\"for {ABSENCE_TIMEOUT:?}\");\nhash.part(format!(\"{timeout:?}\"));\n\
                       #[cfg(test)]\nmod tests {\n format!(\"{took:?}\");\n}";
        let files = [
            ("crates/a/src/lib.rs", product),
            ("crates/a/tests/it.rs", product),
        ];
        assert_eq!(
            places_of(check, &files),
            ["crates/a/src/lib.rs:1", "crates/a/src/lib.rs:3"]
        );
    }
}
