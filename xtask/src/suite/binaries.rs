//! The test programs that cargo built, and their commands.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::{FEATURES, WORKSPACE};
use crate::process::Failure;
use crate::workspace::Workspace;

/// A program with tests: a test binary, or cargo with the tests of the documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Program {
    /// Package and target, as `meshwork-broker::conformance`.
    pub(super) name: String,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// A test binary.
    Binary(Binary),
    Documentation,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Binary {
    path: PathBuf,
    /// The folder of its package, in which cargo also starts it.
    folder: PathBuf,
    /// True if it has a custom harness, which itself prints its slowest tests.
    own_harness: bool,
}

/// Arguments with which the standard harness prints the duration of each test. It accepts them only with the
/// variable, because their output may change.
const TIMES: [&str; 2] = ["-Zunstable-options", "--report-time"];
const UNSTABLE: (&str, &str) = ("RUSTC_BOOTSTRAP", "1");

impl Program {
    /// Reads one line of `cargo test --no-run --message-format=json`; `None` if it is not a test binary.
    pub(super) fn read(line: &str) -> Result<Option<Self>, Failure> {
        let message: Value = match serde_json::from_str(line) {
            Ok(message) => message,
            // A build script may print anything.
            Err(_) => return Ok(None),
        };
        let is_test =
            message["reason"] == "compiler-artifact" && message["profile"]["test"] == true;
        let Some(binary) = message["executable"].as_str().filter(|_| is_test) else {
            return Ok(None);
        };
        let unreadable = || Failure::new(format!("cargo names a test without a package: {line}"));
        let manifest = message["manifest_path"].as_str().ok_or_else(unreadable)?;
        let folder = Path::new(manifest).parent().ok_or_else(unreadable)?;
        let package = folder.file_name().unwrap_or_default().to_string_lossy();
        let target = message["target"]["name"].as_str().ok_or_else(unreadable)?;
        Ok(Some(Self {
            name: format!("{package}::{target}"),
            kind: Kind::Binary(Binary {
                path: binary.into(),
                own_harness: has_own_harness(Path::new(manifest), target)?,
                folder: folder.to_owned(),
            }),
        }))
    }

    /// Returns the tests in the documentation of all crates.
    pub(super) fn documentation() -> Self {
        Self {
            name: "documentation".to_owned(),
            kind: Kind::Documentation,
        }
    }

    /// Returns the command for all of its tests.
    pub(super) fn command(&self, workspace: &Workspace) -> Command {
        match &self.kind {
            Kind::Binary(binary) => {
                let mut command = binary.command();
                if !binary.own_harness {
                    command.args(TIMES).env(UNSTABLE.0, UNSTABLE.1);
                }
                command
            }
            Kind::Documentation => {
                let mut command = workspace.cargo(&["test", "--doc", "--no-fail-fast"]);
                command.args(WORKSPACE).args(FEATURES);
                command
            }
        }
    }

    /// Returns the command for one test; `None` if it cannot be run alone.
    pub(super) fn command_for(&self, test: &str) -> Option<Command> {
        let Kind::Binary(binary) = &self.kind else {
            return None;
        };
        let mut command = binary.command();
        command.args(["--exact", test]);
        Some(command)
    }
}

impl Binary {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.current_dir(&self.folder);
        command.env("CARGO_MANIFEST_DIR", &self.folder);
        command
    }
}

/// Returns whether a manifest has `harness = false` for a test.
fn has_own_harness(manifest: &Path, test: &str) -> Result<bool, Failure> {
    let text = fs::read_to_string(manifest)
        .map_err(|error| Failure::new(format!("{}: {error}", manifest.display())))?;
    let name = format!("name = \"{test}\"");
    let says = |part: &str, line: &str| part.lines().any(|it| it.trim() == line);
    let mut parts = text.split("\n[");
    Ok(parts.any(|part| {
        part.starts_with("[test]]") && says(part, &name) && says(part, "harness = false")
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(workspace: &Workspace, package: &str, target: &str) -> String {
        let manifest = workspace
            .root
            .join("crates")
            .join(package)
            .join("Cargo.toml");
        format!(
            r#"{{"reason":"compiler-artifact","manifest_path":"{}","target":{{"name":"{target}"}},
            "profile":{{"test":true}},"executable":"/w/target/{target}-1"}}"#,
            manifest.display()
        )
    }

    #[test]
    fn only_test_binaries_are_programs() {
        let workspace = Workspace::find().unwrap();
        let line = line(&workspace, "broker", "conformance");
        let program = Program::read(&line).unwrap().expect("it is one");
        assert_eq!(program.name, "broker::conformance");
        for other in [
            r#"{"reason":"build-finished","success":true}"#,
            r#"{"reason":"compiler-artifact","profile":{"test":false},"executable":"/w/target/meshwork"}"#,
            r#"{"reason":"compiler-artifact","profile":{"test":true},"executable":null}"#,
            "warning: no JSON",
        ] {
            assert_eq!(Program::read(other).unwrap(), None, "{other}");
        }
    }

    fn words(command: &Command) -> Vec<&str> {
        command
            .get_args()
            .filter_map(|word| word.to_str())
            .collect()
    }

    #[test]
    fn only_the_usual_harness_is_asked_for_times() {
        let workspace = Workspace::find().unwrap();
        for (target, expected) in [("it", TIMES.as_slice()), ("mutations", &[])] {
            let program = Program::read(&line(&workspace, "broker", target)).unwrap();
            let command = program.expect("it is one").command(&workspace);
            assert_eq!(words(&command), expected, "{target}");
        }
    }

    #[test]
    fn one_test_is_started_by_its_whole_name() {
        let workspace = Workspace::find().unwrap();
        let program = Program::read(&line(&workspace, "broker", "conformance")).unwrap();
        let command = program.expect("it is one").command_for("redis::claim::one");
        assert_eq!(words(&command.unwrap()), ["--exact", "redis::claim::one"]);
        assert!(Program::documentation().command_for("one").is_none());
    }
}
