//! `cargo xtask check`: all steps of CI, the cheap ones first. Every step runs, even after a failure, so that one run
//! reports everything. [`fast`] checks the parts that a change affects; [`long`] adds steps that take hours.

mod change;
mod fast;
mod features;
mod readme;

use std::time::Duration;

use crate::process::{self, Failure, ask};
use crate::workspace::Workspace;
use crate::{api, long, outside, sizes, suite, tidy};

/// Timeout of a step: it may rebuild everything with another tool, on a small and busy machine.
const LIMIT: Duration = Duration::from_secs(60 * 60);

/// Links to private items are allowed, because these documents are for developers.
const RUSTDOCFLAGS: &str = "-D warnings -A rustdoc::private_intra_doc_links";

/// A name, and the step itself.
type Step<'a> = (&'a str, Box<dyn Fn() -> Result<(), Failure> + 'a>);

/// Programs of the long check, each with its own defaults: fresh seeds, all scenarios.
const LONG: [&str; 7] = [
    "fuzz", "chaos", "legacy", "actions", "bananas", "scale", "bench",
];

/// Selects all engines for the conformance suite; a plain check uses one of each kind.
const ALL_ENGINES: (&str, &str) = ("MESHWORK_ENGINES", "all");

/// The extent of a check.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Extent {
    /// Only what a change touches, by crate and by script, and stop at the first step that fails
    #[arg(long, conflicts_with = "long")]
    fast: bool,
    /// With --fast: what differs from this revision, and files that git does not know yet
    #[arg(
        long,
        value_name = "REVISION",
        default_value = "HEAD",
        requires = "fast"
    )]
    since: String,
    /// All, on all engines, and after it what takes minutes to hours: each feature alone, the commands of README.md in an
    /// empty clone, fuzz, chaos, legacy, actions, bananas, scale, bench
    #[arg(long)]
    long: bool,
}

pub(crate) fn check(workspace: &Workspace, extent: &Extent) -> Result<(), Failure> {
    if extent.fast {
        return fast::check(workspace, &extent.since);
    }
    let tests = suite::Selection {
        all: true,
        environment: if extent.long { &[ALL_ENGINES] } else { &[] },
        ..suite::Selection::default()
    };
    let mut steps: Vec<Step<'_>> = vec![
        ("fmt", Box::new(|| cargo(workspace, "fmt --all --check"))),
        ("tidy", Box::new(|| tidy::tidy(workspace))),
        ("deny", Box::new(|| licences(workspace))),
        ("clippy", Box::new(|| lints(workspace))),
        ("outside", Box::new(|| outside::build(workspace))),
        ("api", Box::new(|| api::check(workspace))),
        ("doc", Box::new(|| documents(workspace))),
        ("test", Box::new(|| suite::test(workspace, &tests))),
        (
            "sizes",
            Box::new(|| sizes::sizes(workspace, &sizes::Options::default())),
        ),
    ];
    if extent.long {
        let long = |program| -> Step<'_> {
            (
                program,
                Box::new(move || long::run(workspace, program, &[])),
            )
        };
        steps.push(("features", Box::new(|| features::check(workspace))));
        steps.push(("readme", Box::new(|| readme::check(workspace))));
        steps.push(("peers", Box::new(|| peers(workspace))));
        steps.extend(LONG.map(long));
    }
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
    Err(Failure::new(format!("failed:\n{}", failed.join("\n"))))
}

fn cargo(workspace: &Workspace, words: &str) -> Result<(), Failure> {
    let words: Vec<&str> = words.split(' ').collect();
    process::run_quoting(&mut workspace.cargo(&words), LIMIT)
}

/// Runs clippy with the features of the tests, and for the command as README's commands build it.
fn lints(workspace: &Workspace) -> Result<(), Failure> {
    let mut all = workspace.cargo(&["clippy", "--workspace", "--all-targets"]);
    all.args(suite::FEATURES).args(["--", "-D", "warnings"]);
    process::run_quoting(&mut all, LIMIT)?;
    cargo(workspace, "clippy -p meshwork-cli -- -D warnings")?;
    let without = "clippy -p meshwork-cli --no-default-features -- -D warnings";
    cargo(workspace, without)
}

/// Checks the programs of other job queues: a workspace of its own, with many dependencies.
fn peers(workspace: &Workspace) -> Result<(), Failure> {
    cargo(workspace, "fmt --manifest-path peers/Cargo.toml --check")?;
    let mut lints = long::of_peers(workspace, "clippy");
    lints.args(["--all-targets", "--", "-D", "warnings"]);
    process::run_quoting(&mut lints, LIMIT)?;
    process::run_quoting(&mut long::of_peers(workspace, "test"), LIMIT)
}

/// Builds the documents with private items, so that their links are checked. The command has its own run, because its
/// pages and those of the library of the same name overwrite each other. Both runs have the same packages, so that
/// nothing is built for only one of them.
fn documents(workspace: &Workspace) -> Result<(), Failure> {
    for targets in ["--bins", "--lib"] {
        let mut command = workspace.cargo(&["doc", "--workspace", "--no-deps"]);
        command.args(["--document-private-items", targets]);
        command.args(suite::FEATURES);
        process::run_quoting(command.env("RUSTDOCFLAGS", RUSTDOCFLAGS), LIMIT)?;
    }
    Ok(())
}

/// Checks licences and bans. Advisories are left out, because they change without a change of this repository.
fn licences(workspace: &Workspace) -> Result<(), Failure> {
    if ask(&mut workspace.cargo(&["deny", "--version"]), LIMIT).is_err() {
        eprintln!("cargo-deny is not installed: licences and bans are not checked");
        return Ok(());
    }
    cargo(workspace, "deny check licenses bans sources")
}
