//! The programs that tests need, where they are found, and what happens when they are not.
//!
//! Nothing is installed here: that is `cargo xtask test`, which hands over what it found through
//! the variables below.

use std::env;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::thread;

/// The file to which skipped tests are added, a line each; set by `cargo xtask test`, which lists
/// them at its end.
const SKIPPED_TESTS: &str = "MESHWORK_SKIPPED_TESTS";

/// A program that is not part of this repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tool {
    /// redis-server, 7.0 or newer.
    Redis,
    /// valkey-server.
    Valkey,
    /// A Python 3 interpreter.
    Python,
    /// The library libfaketime, which gives a process a clock that is wrong.
    Faketime,
}

impl Tool {
    /// The name of the program in `PATH`.
    #[must_use]
    pub fn program(self) -> &'static str {
        match self {
            Self::Redis => "redis-server",
            Self::Valkey => "valkey-server",
            Self::Python => "python3",
            Self::Faketime => "libfaketime.so.1",
        }
    }

    /// The variable that names the program's path and goes before `PATH`.
    #[must_use]
    pub fn variable(self) -> &'static str {
        match self {
            Self::Redis => "MESHWORK_TEST_REDIS_SERVER",
            Self::Valkey => "MESHWORK_TEST_VALKEY_SERVER",
            Self::Python => "MESHWORK_TEST_PYTHON",
            Self::Faketime => "MESHWORK_TEST_FAKETIME",
        }
    }
}

/// Where the program is, or `None`. Reports nothing.
#[must_use]
pub fn find(tool: Tool) -> Option<PathBuf> {
    if let Some(named) = env::var_os(tool.variable()).filter(|path| !path.is_empty()) {
        return Some(PathBuf::from(named)).filter(|path| path.is_file());
    }
    env::split_paths(&env::var_os("PATH")?)
        .map(|folder| folder.join(tool.program()))
        .find(|path| path.is_file())
        .or_else(|| unpacked(tool))
        .or_else(|| library(tool))
}

/// A library stands in no `PATH`.
fn library(tool: Tool) -> Option<PathBuf> {
    if tool != Tool::Faketime {
        return None;
    }
    let folders = std::fs::read_dir("/usr/lib").ok()?.flatten();
    let inside = |folder: std::fs::DirEntry| folder.path().join("faketime").join(tool.program());
    folders.map(inside).find(|path| path.is_file())
}

/// The copy that an earlier `cargo xtask test` unpacked, so that a plain `cargo test` finds it.
fn unpacked(tool: Tool) -> Option<PathBuf> {
    if tool != Tool::Valkey {
        return None;
    }
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2)?;
    Some(workspace.join("target/tools/valkey/valkey-server")).filter(|path| path.is_file())
}

/// Where the program is; `None` means that the calling test has been reported as skipped and
/// should return. For `#[test]` functions, whose thread carries the test's name.
///
/// # Panics
/// In CI (`CI=true`), where every test has to run.
#[must_use]
#[track_caller]
pub fn need(tool: Tool) -> Option<PathBuf> {
    let caller = Location::caller();
    match thread::current().name() {
        Some(name) if name != "main" => need_for(name, tool),
        _ => need_for(
            &format!("the test at {}:{}", caller.file(), caller.line()),
            tool,
        ),
    }
}

/// As [`need`], for a harness of its own, where threads carry no test's name.
///
/// # Panics
/// In CI (`CI=true`), where every test has to run.
#[must_use]
pub fn need_for(test: &str, tool: Tool) -> Option<PathBuf> {
    let found = find(tool);
    if found.is_none() {
        let program = tool.program();
        assert!(
            !in_ci(),
            "{test} needs {program}, which is neither in PATH nor {}",
            tool.variable()
        );
        report_skipped(&format!("skipped: {test}: no {program}\n"));
    }
    found
}

/// Whether root runs the test; else it is reported as skipped, also in CI, and should return.
#[must_use]
pub fn need_root(test: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        report_skipped(&format!("skipped: {test}: not root\n"));
    }
    is_root
}

fn in_ci() -> bool {
    env::var("CI").is_ok_and(|value| value == "true" || value == "1")
}

/// One write to each place, so that lines of tests that run side by side stay whole. The handle
/// of stderr is used because what the print macros write is swallowed for tests that pass.
pub(crate) fn report_skipped(line: &str) {
    io::stderr()
        .write_all(line.as_bytes())
        .expect("stderr can be written");
    if let Some(path) = env::var_os(SKIPPED_TESTS) {
        OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .and_then(|mut file| file.write_all(line.as_bytes()))
            .expect("the list of skipped tests can be written");
    }
}
