//! Reading scripts from the source folder is for tests only: no build for users enables it.

use super::{Finding, Tree, finding};

/// The feature of meshwork-broker, its definition, and the place that enables it. The rule `layers` keeps product
/// crates from depending on that crate.
const FEATURE: &str = "scripts-from-files";
const MADE: (&str, &str) = ("crates/broker/Cargo.toml", "scripts-from-files = []");
const TURNED_ON: &str = "crates/conformance/Cargo.toml";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let manifests = tree.files().filter(|file| file.is("Cargo.toml"));
    let mut found = Vec::new();
    for file in manifests.filter(|file| file.path != TURNED_ON) {
        for (number, line) in file.lines() {
            let made = (file.path.as_str(), line) == MADE;
            if line.contains(FEATURE) && !line.starts_with('#') && !made {
                let what = format!("turns {FEATURE} on");
                let remedy =
                    "only meshwork-conformance does: users' programs have their scripts built in";
                found.push(finding(&file.path, number, what, remedy));
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
    fn only_the_crate_for_tests_turns_it_on() {
        let on = "[dependencies]\nmeshwork-broker = { features = [\"scripts-from-files\"] }";
        let made = "[features]\ndefault = [\"scripts-from-files\"]\nscripts-from-files = []";
        let files = [
            ("crates/broker/Cargo.toml", made),
            ("crates/cli/Cargo.toml", on),
            ("crates/conformance/Cargo.toml", on),
            ("Cargo.toml", on),
        ];
        let expected = [
            "crates/broker/Cargo.toml:2",
            "crates/cli/Cargo.toml:2",
            "Cargo.toml:2",
        ];
        assert_eq!(places_of(check, &files), expected);
    }
}
