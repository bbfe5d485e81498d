//! The long programs, built with optimization: `fuzz`, `scale`, `bench`, `chaos`, `legacy`, `bananas`, `actions` and
//! `simulate` of `crates/fuzz` and `crates/scenarios`. Programs that measure use the profile of releases.

use std::env;
use std::process::Command;
use std::time::Duration;

use crate::process::{self, Failure};
use crate::tools;
use crate::workspace::Workspace;

/// Time limit: ten times the longest planned run.
const LIMIT: Duration = Duration::from_secs(6 * 3600);

/// Variable with the command that the scenarios run.
const BINARY: &str = "MESHWORK_BIN";

pub(crate) fn run(workspace: &Workspace, binary: &str, rest: &[String]) -> Result<(), Failure> {
    let tools = tools::prepare(workspace, true, false);
    let profile = match binary {
        "bench" | "scale" => "dist",
        _ => "release",
    };
    if matches!(binary, "chaos" | "legacy" | "bananas") {
        let mut build = workspace.cargo(&["build", "--profile", profile, "--bin", "meshwork"]);
        process::run(&mut build, LIMIT)?;
    }
    if binary == "bench" && rest.iter().any(|word| word == "--peers") {
        eprintln!("building the programs of other job queues, in the folder peers");
        process::run(&mut of_peers(workspace, "build"), LIMIT)?;
    }
    let mut command = workspace.cargo(&["run", "--profile", profile, "--package"]);
    let package = match binary {
        "fuzz" => "meshwork-fuzz",
        _ => "meshwork-scenarios",
    };
    command.args([package, "--bin", binary, "--"]).args(rest);
    command.envs(tools.variables());
    // It may be another build, or a script that starts one of several.
    if env::var_os(BINARY).is_none() {
        let built = workspace.built().with_file_name(profile);
        command.env(BINARY, built.join("meshwork"));
    }
    command.env("MESHWORK_PEERS", workspace.target("peers").join("release"));
    process::run(&mut command, LIMIT)
}

/// Returns a call of cargo in the folder `peers`, which is a workspace of its own: the programs of other job queues.
pub(crate) fn of_peers(workspace: &Workspace, verb: &str) -> Command {
    let mut command = workspace.cargo(&[verb, "--release", "--locked"]);
    command.args(["--manifest-path", "peers/Cargo.toml", "--target-dir"]);
    command.arg(workspace.target("peers"));
    command
}
