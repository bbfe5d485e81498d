//! No test waits for a time: it waits for a signal, with a bound.

use super::super::rust_text::{is_test_file, lines_of};
use super::{Finding, Tree, finding, has_word};

/// The only file that may pause between two polls.
const ALLOWED: &str = "crates/test-servers/src/eventually.rs";

const REMEDY: &str = "wait for a signal with a bound, or use `meshwork_test_servers::eventually`";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in tree
        .files()
        .filter(|file| file.is(".rs") && file.path != ALLOWED)
    {
        for (at, line) in lines_of(&file.text, is_test_file(&file.path))
            .iter()
            .enumerate()
        {
            let sleeps = ["sleep(", "sleep_until(", "sleep_ms("];
            if line.test && sleeps.iter().any(|word| has_word(&line.code, word)) {
                found.push(finding(&file.path, at + 1, "a test that sleeps", REMEDY));
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
    fn sleeps_in_tests_are_found_and_others_are_not() {
        let product = "fn a() {\n sleep(x);\n}\n#[cfg(test)]\nmod tests {\n thread::sleep(x);\n}";
        let script = "let python = \"time.sleep(1)\";\nno_sleep();\ntokio::time::sleep(x).await;";
        let files = [
            ("crates/a/src/lib.rs", product),
            ("crates/a/tests/it.rs", script),
            (ALLOWED, script),
        ];
        assert_eq!(
            places_of(check, &files),
            ["crates/a/src/lib.rs:6", "crates/a/tests/it.rs:3"]
        );
    }
}
