//! `cargo xtask packages`: the Python package as a wheel, with the native module and the command, and its trial in an empty
//! environment.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::process::{self, Failure, ask};
use crate::workspace::Workspace;

/// Limit of a build.
const BUILD: Duration = Duration::from_secs(3600);
/// Limit of an installation.
const INSTALL: Duration = Duration::from_secs(600);
/// Builds the wheel.
const MATURIN: &str = "maturin>=1.9,<2";
/// Folder of the Python package.
const PYTHON: &str = "packages/python";

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Build profile: dist is what is shipped, dev the soonest
    #[arg(long, default_value = "dist")]
    profile: String,
}

/// Builds the packages into `target/packages`, and tries each in an empty environment.
pub(crate) fn build(workspace: &Workspace, options: &Options) -> Result<(), Failure> {
    let home = workspace.target("packages");
    let wheel = wheel(workspace, &home, &options.profile)?;
    try_wheel(workspace, &home, &wheel)?;
    let size = fs::metadata(&wheel).map_err(failed)?.len() / 1_000_000;
    eprintln!("{} ({size} MB)", wheel.display());
    Ok(())
}

fn failed(error: std::io::Error) -> Failure {
    Failure::new(error.to_string())
}

/// Builds the wheel, and returns its path.
fn wheel(workspace: &Workspace, home: &Path, profile: &str) -> Result<PathBuf, Failure> {
    let package = [
        "build",
        "--package",
        "meshwork-cli",
        "--bin",
        "meshwork",
        "--profile",
        profile,
    ];
    process::run(&mut workspace.cargo(&package), BUILD)?;
    let built = match profile {
        "dev" => "debug",
        other => other,
    };
    let command = workspace.built().with_file_name(built).join("meshwork");
    // Files in this folder of the wheel become commands.
    let data = workspace.root.join(PYTHON).join("meshwork.data");
    let scripts = data.join("scripts");
    fs::create_dir_all(&scripts).map_err(failed)?;
    fs::copy(command, scripts.join("meshwork")).map_err(failed)?;
    let environment = environment(&home.join("build"))?;
    process::run(
        pip(&environment).args(["install", "--quiet", MATURIN]),
        INSTALL,
    )?;
    let wheels = home.join("wheels");
    // Only the one that is built now is to be found.
    let _ = fs::remove_dir_all(&wheels);
    let mut maturin = Command::new(environment.join("bin/maturin"));
    maturin.args([
        "build",
        "--profile",
        profile,
        "--compatibility",
        "linux",
        "--out",
    ]);
    maturin
        .arg(&wheels)
        .current_dir(workspace.root.join(PYTHON));
    let made = process::run(&mut maturin, BUILD);
    fs::remove_dir_all(data).map_err(failed)?;
    made?;
    let mut files = fs::read_dir(wheels).map_err(failed)?;
    let file = files
        .next()
        .ok_or_else(|| Failure::new("maturin has built no wheel"))?;
    Ok(file.map_err(failed)?.path())
}

/// Creates an empty environment of Python.
fn environment(folder: &Path) -> Result<PathBuf, Failure> {
    let _ = fs::remove_dir_all(folder);
    let mut venv = Command::new("python3");
    venv.args(["-m", "venv"]).arg(folder);
    process::run(&mut venv, INSTALL)?;
    Ok(folder.to_owned())
}

fn pip(environment: &Path) -> Command {
    let mut pip = Command::new(environment.join("bin/python"));
    pip.args(["-m", "pip", "--disable-pip-version-check"]);
    pip
}

/// Installs the wheel alone, and runs a task of `examples/app/shop.py` without a server.
fn try_wheel(workspace: &Workspace, home: &Path, wheel: &Path) -> Result<(), Failure> {
    let environment = environment(&home.join("trial"))?;
    process::run(
        pip(&environment)
            .args(["install", "--quiet", "--no-deps"])
            .arg(wheel),
        INSTALL,
    )?;
    let mut trial = Command::new(environment.join("bin/python"));
    trial.arg(workspace.root.join("examples/app/trial.py"));
    trial.env("MESHWORK_DATA", home.join("data"));
    let said = ask(&mut trial, INSTALL)?;
    match said.trim() {
        "sent Hello to ada@example.org" => Ok(()),
        other => Err(Failure::new(format!(
            "the installed package printed {other:?}"
        ))),
    }
}
