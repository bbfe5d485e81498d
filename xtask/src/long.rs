//! The long forms of tests, built for release: `fuzz`, `scale`, `bench`, `chaos`, `legacy`, `bananas` and
//! `actions` of the test kit.

use std::time::Duration;

use crate::process::{self, Failure};
use crate::tools;
use crate::workspace::Workspace;

/// Long enough for ten times what the issue of record asks for, and still an end.
const LIMIT: Duration = Duration::from_secs(6 * 3600);

pub(crate) fn run(workspace: &Workspace, binary: &str, rest: &[String]) -> Result<(), Failure> {
    let tools = tools::prepare(workspace, true);
    if matches!(binary, "chaos" | "legacy" | "bananas") {
        let mut build = workspace.cargo(&["build", "--release", "--bin", "meshwork"]);
        process::run(&mut build, LIMIT)?;
    }
    let mut command = workspace.cargo(&["run", "--release", "-p", "meshwork-testkit", "--bin"]);
    command.arg(binary).arg("--").args(rest);
    command.envs(tools.variables());
    command.env(
        "MESHWORK_BIN",
        workspace.built().with_file_name("release").join("meshwork"),
    );
    process::run(&mut command, LIMIT)
}
