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
const TESTS: Duration = Duration::from_secs(75 * 60);

/// What nothing turns on by itself, so that every test is there. Whoever names packages names features too.
pub(crate) const FEATURES: [&str; 2] = ["--features", "meshwork-cli/otlp"];

/// `cargo` is for cargo, `binaries` for the test binaries.
pub(crate) fn test(
    workspace: &Workspace,
    no_install: bool,
    cargo: &[String],
    binaries: &[String],
) -> Result<(), Failure> {
    let tools = tools::prepare(workspace, !no_install);
    let scope = scope(cargo);
    told_step("building the tests", || {
        let mut command = workspace.cargo(&["test", "--no-run"]);
        process::run(command.args(&scope).args(cargo), BUILD)
    })?;
    let skipped = workspace.target("skipped-tests");
    fs::create_dir_all(workspace.root.join("target"))
        .and_then(|()| fs::write(&skipped, ""))
        .map_err(|error| Failure::new(format!("{}: {error}", skipped.display())))?;
    let mut command = workspace.cargo(&["test", "--no-fail-fast"]);
    command.args(scope).args(cargo).arg("--").args(binaries);
    command.envs(tools.variables());
    command.env("MESHWORK_SKIPPED_TESTS", &skipped);
    if cargo.is_empty() {
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
        let failed = account.failed().join(", ");
        return Err(Failure::new(format!("the tests failed: {failed}")));
    }
    if in_ci() && account.any_skipped() {
        return Err(Failure::new(
            "in CI every test has to run, and some were skipped",
        ));
    }
    Ok(())
}

/// The whole workspace with all that is in it, unless packages are named.
fn scope(cargo: &[String]) -> Vec<&'static str> {
    let named = ["-p", "--package", "--workspace", "--all"];
    if cargo
        .iter()
        .any(|word| named.iter().any(|name| word.starts_with(name)))
    {
        return Vec::new();
    }
    [&["--workspace"], FEATURES.as_slice()].concat()
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
