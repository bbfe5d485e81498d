//! The features of what users build: each alone, none and all compile without a warning, and the examples of the library
//! build with its default features. In the run of all tests, crates of the workspace enable features for each other.

use serde_json::Value;

use super::LIMIT;
use crate::process::{self, Failure, ask};
use crate::workspace::Workspace;

/// Packages with features for users.
const PACKAGES: [&str; 2] = ["meshwork", "meshwork-cli"];

pub(super) fn check(workspace: &Workspace) -> Result<(), Failure> {
    let words = ["metadata", "--no-deps", "--format-version", "1"];
    let metadata = ask(&mut workspace.cargo(&words), LIMIT)?;
    for package in PACKAGES {
        for form in forms(&metadata, package)? {
            let mut lints = workspace.cargo(&["clippy", "-p", package]);
            lints.args(form).args(["--", "-D", "warnings"]);
            process::run_quoting(&mut lints, LIMIT)?;
        }
    }
    let mut examples = workspace.cargo(&["test", "-p", "meshwork", "--doc"]);
    process::run_quoting(&mut examples, LIMIT)
}

/// Returns the arguments of cargo for each form of a package.
fn forms(metadata: &str, package: &str) -> Result<Vec<Vec<String>>, Failure> {
    let unreadable = || Failure::new(format!("cargo names no features of {package}"));
    let metadata: Value = serde_json::from_str(metadata).map_err(|_| unreadable())?;
    let mut packages = metadata["packages"].as_array().into_iter().flatten();
    let found = packages.find(|it| it["name"] == package);
    let features = found.and_then(|it| it["features"].as_object());
    let alone = features.ok_or_else(unreadable)?.keys();
    let none = || vec!["--no-default-features".to_owned()];
    let with = |name: &String| [none(), vec!["--features".to_owned(), name.clone()]].concat();
    let alone = alone.filter(|name| *name != "default").map(with);
    let all = vec!["--all-features".to_owned()];
    Ok(std::iter::once(none()).chain(alone).chain([all]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_feature_is_a_form_beside_none_and_all() {
        let metadata =
            r#"{"packages":[{"name":"a","features":{"default":["x"],"x":[],"y":["x"]}}]}"#;
        let lines: Vec<_> = forms(metadata, "a").unwrap();
        let lines: Vec<_> = lines.iter().map(|words| words.join(" ")).collect();
        let expected = [
            "--no-default-features",
            "--no-default-features --features x",
            "--no-default-features --features y",
            "--all-features",
        ];
        assert_eq!(lines, expected);
        assert!(forms(metadata, "b").is_err() && forms("", "a").is_err());
    }
}
