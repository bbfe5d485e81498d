//! Only the broker sends commands to Redis, and the functions of SAL, whose server a script names.

use super::super::rust_text::{is_beside_the_product, lines_of};
use super::{Finding, Tree, finding, has_word};

const REMEDY: &str = "give the broker a function for it";
/// Crates that may use the redis crate.
const MAY: [&str; 2] = ["broker", "sal"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in tree.files() {
        let elsewhere = file.krate().is_some_and(|krate| !MAY.contains(&krate));
        if !elsewhere || !file.is(".rs") {
            continue;
        }
        for (at, line) in lines_of(&file.text, is_beside_the_product(&file.path))
            .iter()
            .enumerate()
        {
            if !line.test && has_word(&line.code, "redis::") {
                found.push(finding(
                    &file.path,
                    at + 1,
                    "the redis crate outside broker",
                    REMEDY,
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
    fn redis_outside_the_broker_is_found() {
        let code = "//! redis::cmd\nuse redis::Cmd;\nlet a = fakeredis::x();";
        let files = [
            ("crates/broker/src/conn.rs", code),
            ("crates/conformance/src/lib.rs", code),
            ("crates/cli/tests/it.rs", code),
            ("crates/meshwork/examples/a.rs", code),
            ("crates/cli/src/main.rs", code),
        ];
        assert_eq!(places_of(check, &files), ["crates/cli/src/main.rs:2"]);
    }
}
