//! `cargo xtask check --fast`: checks the parts that a change affects, and stops at the first failure.

use std::collections::BTreeSet;

use super::change::Change;
use super::{Step, cargo, lints};
use crate::process::Failure;
use crate::suite::{self, Selection};
use crate::tidy;
use crate::workspace::Workspace;

/// One engine suffices for changes in Rust: the whole check covers differences between engines.
const ENGINES: (&str, &str) = ("MESHWORK_ENGINES", "redis");

/// Variable that names the changed scripts to the tests; also in `meshwork_conformance::mutation::touched`.
const CHANGED: &str = "MESHWORK_CHANGED_SCRIPTS";

/// Checks the difference from the revision `since`.
pub(super) fn check(workspace: &Workspace, since: &str) -> Result<(), Failure> {
    let change = Change::since(workspace, since)?;
    if change.is_empty() {
        eprintln!("nothing differs from {since}");
        return Ok(());
    }
    let (scripts, crates) = (&change.scripts, &change.crates);
    let steps: [(bool, Step<'_>); 6] = [
        (
            true,
            ("fmt", Box::new(|| cargo(workspace, "fmt --all --check"))),
        ),
        (true, ("tidy", Box::new(|| tidy::tidy(workspace)))),
        (
            !crates.is_empty(),
            ("clippy", Box::new(|| lints(workspace))),
        ),
        (
            !scripts.is_empty(),
            ("scripts", Box::new(|| test_scripts(workspace, scripts))),
        ),
        (
            !crates.is_empty(),
            ("crates", Box::new(|| test_crates(workspace, crates))),
        ),
        (
            change.documents,
            ("documents", Box::new(|| test_documents(workspace))),
        ),
    ];
    for (_, (name, step)) in steps.into_iter().filter(|(touched, _)| *touched) {
        eprintln!("\n== {name}");
        step().map_err(|failure| Failure::new(format!("{name}: {failure}")))?;
    }
    eprintln!("\nwhat differs from {since} passed its checks");
    for path in &change.beyond {
        eprintln!("only `cargo xtask check` tells what {path} does");
    }
    Ok(())
}

/// Runs the mutations whose text is in the changed scripts, and the cases that notice them, on every engine.
fn test_scripts(workspace: &Workspace, scripts: &BTreeSet<String>) -> Result<(), Failure> {
    let changed: Vec<_> = scripts.iter().map(String::as_str).collect();
    let targets = "-p meshwork-broker --lib --test conformance --test mutations";
    test(workspace, targets, &[(CHANGED, &changed.join(","))])
}

/// Runs the tests of each changed crate. Those of the broker and of the suite include the conformance suite.
fn test_crates(workspace: &Workspace, crates: &BTreeSet<String>) -> Result<(), Failure> {
    for folder in crates {
        let targets = match folder.as_str() {
            "broker" => "-p meshwork-broker --lib --test it --test conformance",
            "conformance" => "-p meshwork-conformance -p meshwork-broker --lib --test conformance",
            "meshwork" => "-p meshwork --features passphrase,sal",
            "xtask" => "-p xtask",
            _ => &format!("-p meshwork-{folder}"),
        };
        test(workspace, targets, &[ENGINES])?;
    }
    Ok(())
}

/// Runs the commands in the documents.
fn test_documents(workspace: &Workspace) -> Result<(), Failure> {
    test(workspace, "-p meshwork-cli --test it examples", &[])
}

fn test(workspace: &Workspace, targets: &str, environment: &[(&str, &str)]) -> Result<(), Failure> {
    let cargo: Vec<String> = targets.split(' ').map(str::to_owned).collect();
    let selection = Selection {
        cargo: &cargo,
        environment,
        ..Selection::default()
    };
    suite::test(workspace, &selection)
}
