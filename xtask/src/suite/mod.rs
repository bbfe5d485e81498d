//! `cargo xtask test`: every test of the workspace, and an honest account of them.

mod account;

use std::fs;
use std::io::{Write, stdout};
use std::path::Path;
use std::time::{Duration, Instant};

use account::Account;

use crate::process::{self, Failure};
use crate::tools;
use crate::workspace::{Workspace, in_ci};

/// A clean build of everything, on a small and busy machine.
const BUILD: Duration = Duration::from_secs(60 * 60);

/// Every test has to fit into this, on two cores.
const TESTS: Duration = Duration::from_secs(15 * 60);

pub(crate) fn test(
    workspace: &Workspace,
    no_install: bool,
    rest: &[String],
) -> Result<(), Failure> {
    let tools = tools::prepare(workspace, !no_install);
    let arguments = arguments(rest);
    let (build, _) = split(&arguments);
    told_step("building the tests", || {
        let mut command = workspace.cargo(&["test", "--no-run"]);
        process::run(command.args(build), BUILD)
    })?;
    let skipped = workspace.target("skipped-tests");
    fs::create_dir_all(workspace.root.join("target"))
        .and_then(|()| fs::write(&skipped, ""))
        .map_err(|error| Failure::new(format!("{}: {error}", skipped.display())))?;
    let mut command = workspace.cargo(&["test"]);
    command.args(&arguments);
    command.envs(tools.variables());
    command.env("MESHWORK_SKIPPED_TESTS", &skipped);
    if rest.is_empty() {
        // Built just now with all the rest; otherwise who needs it builds it.
        command.env("MESHWORK_BIN", workspace.built().join("meshwork"));
    }
    let mut account = Account::default();
    let started = Instant::now();
    eprintln!("running the tests: {}", process::in_words(&command));
    let passed = process::watch(&mut command, TESTS, |line| {
        // Whoever reads our stdout may go away; the tests go on.
        writeln!(stdout(), "{line}").ok();
        account.add(line);
    })?;
    account.add_skipped(&read(&skipped)?);
    eprintln!(
        "\n{account}\nthe tests took {} s",
        started.elapsed().as_secs()
    );
    verdict(passed, &account)
}

fn verdict(passed: bool, account: &Account) -> Result<(), Failure> {
    if !passed {
        return Err(Failure::new("the tests failed"));
    }
    if in_ci() && account.any_skipped() {
        return Err(Failure::new(
            "in CI every test has to run, and some were skipped",
        ));
    }
    Ok(())
}

/// The whole workspace, unless packages are named.
fn arguments(rest: &[String]) -> Vec<String> {
    let names_packages = rest.iter().take_while(|word| *word != "--").any(|word| {
        word.starts_with("-p") || word.starts_with("--package") || word == "--workspace"
    });
    let scope: &[&str] = if names_packages {
        &[]
    } else {
        &["--workspace"]
    };
    scope
        .iter()
        .chain(&["--no-fail-fast"])
        .map(|word| (*word).to_owned())
        .chain(rest.iter().cloned())
        .collect()
}

/// What is for cargo, and what is for the test binaries.
fn split(arguments: &[String]) -> (&[String], &[String]) {
    let at = arguments
        .iter()
        .position(|word| word == "--")
        .unwrap_or(arguments.len());
    arguments.split_at(at)
}

fn told_step(what: &str, step: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
    eprintln!("{what}");
    let started = Instant::now();
    step()?;
    eprintln!("{what}: done in {} s", started.elapsed().as_secs());
    Ok(())
}

fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}
