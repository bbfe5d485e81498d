//! `cargo xtask check`: all that CI does, the cheap steps first. Every step runs, also after one that failed, so
//! that one run tells everything.

use std::time::Duration;

use crate::process::{self, Failure, ask};
use crate::workspace::Workspace;
use crate::{suite, tidy};

/// A step builds everything again with another tool, on a small and busy machine.
const LIMIT: Duration = Duration::from_secs(60 * 60);

/// A link to something private is a link for whoever works here.
const RUSTDOCFLAGS: &str = "-D warnings -A rustdoc::private_intra_doc_links";

/// A name, and what fails or not.
type Step<'a> = (&'a str, &'a dyn Fn() -> Result<(), Failure>);

pub(crate) fn check(workspace: &Workspace) -> Result<(), Failure> {
    let steps: [Step<'_>; 6] = [
        ("fmt", &|| cargo(workspace, "fmt --all --check")),
        ("tidy", &|| tidy::tidy(workspace)),
        ("deny", &|| licences(workspace)),
        ("clippy", &|| lints(workspace)),
        ("doc", &|| documents(workspace)),
        ("test", &|| suite::test(workspace, false, &[], &[])),
    ];
    let mut failed = Vec::new();
    for (name, step) in steps {
        eprintln!("\n== {name}");
        if let Err(failure) = step() {
            eprintln!("xtask: {name}: {failure}");
            failed.push(format!("{name}: {failure}"));
        }
    }
    if failed.is_empty() {
        eprintln!("\nall checks passed");
        return Ok(());
    }
    Err(Failure::new(format!("failed: {}", failed.join("; "))))
}

fn cargo(workspace: &Workspace, words: &str) -> Result<(), Failure> {
    let words: Vec<&str> = words.split(' ').collect();
    process::run(&mut workspace.cargo(&words), LIMIT)
}

/// All with the features that the tests were built with; and the command as most build it, without them.
fn lints(workspace: &Workspace) -> Result<(), Failure> {
    let mut all = workspace.cargo(&["clippy", "--workspace", "--all-targets"]);
    all.args(suite::FEATURES).args(["--", "-D", "warnings"]);
    process::run(&mut all, LIMIT)?;
    cargo(workspace, "clippy -p meshwork-cli -- -D warnings")
}

/// Private items too, so that their links are checked. The command by itself, since its pages and those of the library
/// of the same name overwrite each other; of the same packages, so that nothing is built for one of the two alone.
fn documents(workspace: &Workspace) -> Result<(), Failure> {
    for targets in ["--bins", "--lib"] {
        let mut command = workspace.cargo(&["doc", "--workspace", "--no-deps"]);
        command.args(["--document-private-items", targets]);
        command.args(suite::FEATURES);
        process::run(command.env("RUSTDOCFLAGS", RUSTDOCFLAGS), LIMIT)?;
    }
    Ok(())
}

/// Advisories are left out: they change without a change of ours.
fn licences(workspace: &Workspace) -> Result<(), Failure> {
    if ask(&mut workspace.cargo(&["deny", "--version"]), LIMIT).is_err() {
        eprintln!("cargo-deny is not installed: licences and bans are not checked");
        return Ok(());
    }
    cargo(workspace, "deny check licenses bans sources")
}
