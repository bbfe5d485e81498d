//! The test programs that cargo built, and how each is started.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::FEATURES;
use crate::process::Failure;
use crate::workspace::Workspace;

/// A program whose tests are run: a test binary, or cargo with the tests of the documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Program {
    /// Package and target, as `meshwork-broker::conformance`.
    pub(super) name: String,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// The binary, and the folder of its package, in which cargo starts it too.
    Binary(PathBuf, PathBuf),
    Documentation,
}

impl Program {
    /// Reads one line of what `cargo test --no-run --message-format=json` prints; `None` for what is no test binary.
    pub(super) fn read(line: &str) -> Result<Option<Self>, Failure> {
        let message: Value = match serde_json::from_str(line) {
            Ok(message) => message,
            // A build script may print what it likes.
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
            kind: Kind::Binary(binary.into(), folder.to_owned()),
        }))
    }

    /// The tests in the documentation of all crates.
    pub(super) fn documentation() -> Self {
        Self {
            name: "documentation".to_owned(),
            kind: Kind::Documentation,
        }
    }

    /// Starts all of its tests.
    pub(super) fn command(&self, workspace: &Workspace) -> Command {
        match &self.kind {
            Kind::Binary(binary, folder) => {
                let mut command = Command::new(binary);
                command.current_dir(folder);
                command.env("CARGO_MANIFEST_DIR", folder);
                command
            }
            Kind::Documentation => {
                let mut command = workspace.cargo(&["test", "--workspace", "--doc"]);
                command.args(["--no-fail-fast"]).args(FEATURES);
                command
            }
        }
    }

    /// Starts one test; `None` where one cannot be started alone.
    pub(super) fn command_for(&self, workspace: &Workspace, test: &str) -> Option<Command> {
        matches!(self.kind, Kind::Binary(..)).then(|| {
            let mut command = self.command(workspace);
            command.args(["--exact", test]);
            command
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_test_binaries_are_programs() {
        let line = r#"{"reason":"compiler-artifact","manifest_path":"/w/crates/broker/Cargo.toml",
            "target":{"name":"conformance"},"profile":{"test":true},"executable":"/w/target/conformance-1"}"#;
        let program = Program::read(line).unwrap().expect("it is one");
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

    #[test]
    fn one_test_is_started_by_its_whole_name() {
        let workspace = Workspace::find().unwrap();
        let kind = Kind::Binary("/w/target/conformance-1".into(), "/w".into());
        let name = "broker::conformance".to_owned();
        let program = Program { name, kind };
        let command = program
            .command_for(&workspace, "redis::claim::one")
            .unwrap();
        let arguments: Vec<_> = command.get_args().collect();
        assert_eq!(arguments, ["--exact", "redis::claim::one"]);
        let documentation = Program::documentation();
        assert!(documentation.command_for(&workspace, "one").is_none());
    }
}
