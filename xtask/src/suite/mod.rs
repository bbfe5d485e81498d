//! `cargo xtask test`: runs every test of the workspace, and counts them.

mod account;
mod binaries;
mod pool;
mod programs;
mod quick;

use std::fs;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use account::Account;
use programs::Extent;

use crate::process::{self, Failure};
use crate::tools::{self, Tools};
use crate::workspace::{Workspace, in_ci};

/// Timeout of a clean build, on a small and busy machine.
const BUILD: Duration = Duration::from_secs(60 * 60);

/// Time limit of all tests, on two cores.
const TESTS: Duration = Duration::from_secs(75 * 60);

/// Features that no other crate enables, so that every test exists. A call that names packages must name its features
/// too.
pub(crate) const FEATURES: [&str; 2] = ["--features", "meshwork-cli/otlp"];

/// All packages but this one: its own dependencies would enable features for all others, which are then built once more.
const WORKSPACE: [&str; 3] = ["--workspace", "--exclude", "xtask"];

/// The environment of the tests.
struct Surroundings<'a> {
    tools: Tools,
    /// The file in which tests that cannot run here record their names.
    skipped: PathBuf,
    /// The built command, if it is built with the tests.
    command: Option<PathBuf>,
    /// Further variables.
    environment: &'a [(&'a str, &'a str)],
}

impl<'a> Surroundings<'a> {
    fn lay_out(
        workspace: &Workspace,
        tools: Tools,
        whole: bool,
        environment: &'a [(&'a str, &'a str)],
    ) -> Result<Self, Failure> {
        let skipped = workspace.target("skipped-tests");
        fs::create_dir_all(workspace.root.join("target"))
            .and_then(|()| fs::write(&skipped, ""))
            .map_err(|error| Failure::new(format!("{}: {error}", skipped.display())))?;
        Ok(Self {
            tools,
            skipped,
            command: whole.then(|| workspace.built().join("meshwork")),
            environment,
        })
    }

    fn put_into(&self, command: &mut Command) {
        command.envs(self.tools.variables());
        command.envs(self.environment.iter().copied());
        command.env("MESHWORK_SKIPPED_TESTS", &self.skipped);
        if let Some(meshwork) = &self.command {
            command.env("MESHWORK_BIN", meshwork);
        }
    }
}

/// The tests to run. Without arguments for cargo and for the binaries, those of a few minutes or all run, several binaries
/// at once.
#[derive(Default)]
pub(crate) struct Selection<'a> {
    /// True to skip tests whose programs are missing.
    pub(crate) no_install: bool,
    /// True for every test of the workspace.
    pub(crate) all: bool,
    /// Arguments for cargo.
    pub(crate) cargo: &'a [String],
    /// Arguments for the test binaries.
    pub(crate) binaries: &'a [String],
    /// Variables of the tests.
    pub(crate) environment: &'a [(&'a str, &'a str)],
}

/// Runs the tests.
pub(crate) fn test(workspace: &Workspace, selection: &Selection<'_>) -> Result<(), Failure> {
    let extent = Extent::of(selection);
    let quick = extent == Some(Extent::Quick);
    let tools = tools::prepare(workspace, !selection.no_install, quick);
    let built = extent.is_some();
    let surroundings = Surroundings::lay_out(workspace, tools, built, selection.environment)?;
    let mut account = Account::default();
    let started = Instant::now();
    let (passed, built) = match extent {
        Some(extent) => programs::test(workspace, &surroundings, extent, &mut account)?,
        None => {
            let passed = some(workspace, &surroundings, selection, &mut account)?;
            (passed, None)
        }
    };
    account.add_skipped(&read(&surroundings.skipped)?);
    eprintln!("\n{account}\n{}", times(started.elapsed(), built));
    if quick {
        eprintln!("`cargo xtask test --all` runs every test");
    }
    verdict(passed, in_ci() && !quick, &account)
}

/// Returns the time of a run; apart from it that of the build, if it is known.
fn times(whole: Duration, built: Option<Duration>) -> String {
    let said = process::in_minutes;
    match built {
        Some(built) => {
            let tested = whole.saturating_sub(built);
            format!("building took {}, testing {}", said(built), said(tested))
        }
        None => format!("building and testing took {}", said(whole)),
    }
}

/// Runs the tests that the arguments for cargo and for the binaries select.
fn some(
    workspace: &Workspace,
    surroundings: &Surroundings<'_>,
    selection: &Selection<'_>,
    account: &mut Account,
) -> Result<bool, Failure> {
    let mut command = workspace.cargo(&["test", "--no-fail-fast"]);
    command
        .args(scope(selection.cargo))
        .args(selection.cargo)
        .arg("--")
        .args(selection.binaries);
    surroundings.put_into(&mut command);
    eprintln!("running the tests: {}", process::in_words(&command));
    process::watch(&mut command, BUILD + TESTS, |line| {
        print(line);
        account.add(line);
    })
}

/// Prints a line. The reader of stdout may exit; the tests continue.
fn print(line: &str) {
    writeln!(stdout(), "{line}").ok();
}

fn verdict(passed: bool, whole: bool, account: &Account) -> Result<(), Failure> {
    if !passed {
        let failed = account.failed().join(", ");
        return Err(Failure::new(format!("the tests failed: {failed}")));
    }
    if whole && account.any_skipped() {
        return Err(Failure::new(
            "in CI every test has to run, and some were skipped",
        ));
    }
    Ok(())
}

/// Returns the workspace without this package, with all features, unless packages are named.
fn scope(cargo: &[String]) -> Vec<&'static str> {
    let named = ["-p", "--package", "--workspace", "--all"];
    if cargo
        .iter()
        .any(|word| named.iter().any(|name| word.starts_with(name)))
    {
        return Vec::new();
    }
    [WORKSPACE.as_slice(), &FEATURES].concat()
}

fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}
