//! The long programs, built with optimization: `fuzz`, `scale`, `bench`, `chaos`, `legacy`, `bananas` and `actions`
//! of `crates/fuzz` and `crates/scenarios`. Programs that measure use the profile of releases.

use std::time::Duration;

use crate::process::{self, Failure};
use crate::tools;
use crate::workspace::Workspace;

/// Time limit: ten times the longest planned run.
const LIMIT: Duration = Duration::from_secs(6 * 3600);

pub(crate) fn run(workspace: &Workspace, binary: &str, rest: &[String]) -> Result<(), Failure> {
    let tools = tools::prepare(workspace, true);
    let profile = match binary {
        "bench" | "scale" => "dist",
        _ => "release",
    };
    if matches!(binary, "chaos" | "legacy" | "bananas") {
        let mut build = workspace.cargo(&["build", "--profile", profile, "--bin", "meshwork"]);
        process::run(&mut build, LIMIT)?;
    }
    let mut command = workspace.cargo(&["run", "--profile", profile, "--package"]);
    let package = match binary {
        "fuzz" => "meshwork-fuzz",
        _ => "meshwork-scenarios",
    };
    command.args([package, "--bin", binary, "--"]).args(rest);
    command.envs(tools.variables());
    command.env(
        "MESHWORK_BIN",
        workspace.built().with_file_name(profile).join("meshwork"),
    );
    process::run(&mut command, LIMIT)
}
