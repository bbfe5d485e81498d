//! The test programs: built once, run side by side, and each failed test run once more alone.

use std::process::Command;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use super::account::Account;
use super::binaries::Program;
use super::{BUILD, FEATURES, Selection, Surroundings, TESTS, WORKSPACE, pool, print, quick};
use crate::process::{self, Failure};
use crate::workspace::Workspace;

/// Greatest number of failed tests that are run again: more do not fail by chance.
const AGAIN: usize = 10;

/// Number of programs that are named as the slowest.
const SLOWEST: usize = 8;

/// Variable with which libtest limits concurrent tests in a program.
const THREADS: &str = "RUST_TEST_THREADS";

/// Extent of a run of the tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// The tests of a few minutes.
    Quick,
    /// Every test of the workspace.
    All,
}

impl Extent {
    /// Returns the extent; `None` if arguments select the tests.
    pub(super) fn of(selection: &Selection<'_>) -> Option<Self> {
        if !(selection.cargo.is_empty() && selection.binaries.is_empty()) {
            return None;
        }
        Some(match selection.all {
            true => Self::All,
            false => Self::Quick,
        })
    }

    /// Returns the arguments of each call of `cargo test` that builds programs.
    fn scopes(self) -> Vec<Vec<&'static str>> {
        match self {
            Self::Quick => vec![quick::SCOPE.to_vec()],
            Self::All => vec![
                [WORKSPACE.as_slice(), &FEATURES].concat(),
                vec!["-p", "xtask"],
            ],
        }
    }
}

/// Returns whether all passed, with those that passed only alone, and the time of the build.
pub(super) fn test(
    workspace: &Workspace,
    surroundings: &Surroundings<'_>,
    extent: Extent,
    account: &mut Account,
) -> Result<(bool, Option<Duration>), Failure> {
    let started = Instant::now();
    let mut programs = build(workspace, extent)?;
    let built = started.elapsed();
    eprintln!("building the tests took {}", process::in_minutes(built));
    if extent == Extent::All {
        programs.push(Program::documentation());
    }
    let cores = available_parallelism().map_or(2, usize::from);
    let command = |program: &Program| {
        let mut command = program.command(workspace);
        surroundings.put_into(&mut command);
        if extent == Extent::Quick {
            quick::restrict(&program.name, &mut command);
        }
        if std::env::var_os(THREADS).is_none() {
            command.env(THREADS, (2 * cores).to_string());
        }
        command
    };
    let (all, started) = (programs.len(), Instant::now());
    let (mut failed, mut times, mut whole) = (Vec::new(), Vec::new(), true);
    eprintln!("running the tests of {all} programs, {} at once", cores + 1);
    pool::run(programs, cores + 1, started + TESTS, command, |ended| {
        let pool::Ended {
            task,
            lines,
            passed,
            took,
        } = ended;
        times.push((took, task.name.clone()));
        eprintln!(
            "{} of {all}: {} took {} s",
            times.len(),
            task.name,
            took.as_secs()
        );
        let mut own = Account::default();
        for line in lines {
            print(&line);
            own.add(&line);
        }
        let passed = passed.unwrap_or_else(|failure| {
            eprintln!("xtask: {failure}");
            false
        });
        let tests = own.failed();
        // A program that crashed has no closing line, and possibly unknown tests.
        whole &= passed || (!tests.is_empty() && own.is_closed());
        account.add_program(&task.name, own, passed);
        failed.extend(tests.into_iter().map(|test| (task.clone(), test)));
    });
    say_slowest(times);
    again(surroundings, failed, account);
    Ok((whole && account.failed().is_empty(), Some(built)))
}

fn build(workspace: &Workspace, extent: Extent) -> Result<Vec<Program>, Failure> {
    let mut programs = Vec::new();
    for scope in extent.scopes() {
        eprintln!("building the tests: {}", scope.join(" "));
        programs.extend(build_scope(workspace, &scope)?);
    }
    Ok(programs)
}

fn build_scope(workspace: &Workspace, scope: &[&str]) -> Result<Vec<Program>, Failure> {
    let mut command = workspace.cargo(&["test", "--no-run"]);
    command
        .args(scope)
        .arg("--message-format=json-render-diagnostics");
    let mut programs = Vec::new();
    let mut unreadable = None;
    let built = process::watch(&mut command, BUILD, |line| match Program::read(line) {
        Ok(program) => programs.extend(program),
        Err(failure) => unreadable = Some(failure),
    })?;
    if let Some(failure) = unreadable {
        return Err(failure);
    }
    match built {
        true => Ok(programs),
        false => Err(Failure::new("the tests do not build")),
    }
}

fn say_slowest(mut times: Vec<(Duration, String)>) {
    times.sort_unstable_by(|one, other| other.cmp(one));
    for (took, name) in times.iter().take(SLOWEST) {
        eprintln!("slow: {name} took {} s", took.as_secs());
    }
}

/// Runs each failed test once more alone. One that passes then is flaky, which is a bug too, but must not hide other
/// results.
fn again(surroundings: &Surroundings<'_>, failed: Vec<(Program, String)>, account: &mut Account) {
    if failed.len() > AGAIN {
        return;
    }
    for (program, test) in failed {
        let Some(mut command) = program.command_for(&test) else {
            continue;
        };
        surroundings.put_into(&mut command);
        if passes(&mut command) {
            account.add_flaky(&program.name, &test);
        }
    }
}

/// Returns whether a test passed. A filter without matches succeeds too, so the count decides.
fn passes(command: &mut Command) -> bool {
    let mut ran = false;
    let passed = process::watch(command, TESTS, |line| {
        print(line);
        ran |= line.starts_with("test result: ok. 1 passed");
    });
    passed.unwrap_or_default() && ran
}
