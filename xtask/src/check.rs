//! `cargo xtask check`: all that CI does. Every step runs, also after one that failed, so that
//! one run tells everything.

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
    let steps: [Step<'_>; 7] = [
        ("test", &|| suite::test(workspace, false, &[], &[])),
        ("fmt", &|| cargo(workspace, "fmt --all --check")),
        ("clippy", &|| {
            cargo(workspace, "clippy --workspace --all-targets -- -D warnings")
        }),
        ("otlp", &|| feature(workspace)),
        ("doc", &|| documents(workspace)),
        ("tidy", &|| tidy::tidy(workspace)),
        ("deny", &|| licences(workspace)),
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

/// The feature of the command that nothing else turns on. Its test is built with what the other tests have built,
/// but for what depends on the feature.
fn feature(workspace: &Workspace) -> Result<(), Failure> {
    cargo(
        workspace,
        "clippy -p meshwork-cli --features otlp --all-targets -- -D warnings",
    )?;
    let test = "--workspace --features meshwork-cli/otlp --test otlp";
    let test: Vec<_> = test.split(' ').map(str::to_owned).collect();
    suite::test(workspace, false, &test, &[])
}

/// Private items too, so that their links are checked. The command first, since its pages and those of the library of the same name overwrite each
/// other.
fn documents(workspace: &Workspace) -> Result<(), Failure> {
    for packages in [
        ["-p", "meshwork-cli"].as_slice(),
        &["--workspace", "--exclude=meshwork-cli"],
    ] {
        let mut command = workspace.cargo(&["doc", "--no-deps", "--document-private-items"]);
        process::run(
            command.args(packages).env("RUSTDOCFLAGS", RUSTDOCFLAGS),
            LIMIT,
        )?;
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
