//! The package for Python: a wheel for all versions from 3.9, and its sources.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{BUILD, INSTALL, Place, expect, failed, mistakes};
use crate::process::{self, Failure, ask};
use crate::workspace::without_own_variables;

/// Builds the wheel.
const MATURIN: &str = "maturin>=1.9,<2";
/// Checks types.
const MYPY: &str = "mypy>=1.18,<3";
/// Folder of the package.
const PACKAGE: &str = "packages/python";
/// Folder beside the package whose files in `scripts` become commands of the wheel.
const DATA: &str = "meshwork._native.data";
/// Prints what pip knows of the installed package.
const ABOUT: &str = "\
from importlib.metadata import metadata
about = metadata('meshwork')
files = sorted(about.get_all('License-File') or [])
print('meshwork', about['Version'], about['License-Expression'], *files, 'Tasks in Python' in about.get_payload())";

/// Builds the wheel and the sources, and tries the wheel with each interpreter.
pub(super) fn build(
    place: &Place<'_>,
    command: &Path,
    interpreters: &[PathBuf],
) -> Result<Vec<PathBuf>, Failure> {
    let tools = environment(place, "tools", Path::new("python3"))?;
    let mut install = pip(&tools);
    process::run(install.args(["install", "--quiet", MATURIN, MYPY]), INSTALL)?;
    let files = place.empty("wheels")?;
    maturin(place, &tools, "sdist", &[], &files)?;
    let data = place.source(PACKAGE).join(DATA);
    let scripts = data.join("scripts");
    fs::create_dir_all(&scripts).map_err(failed)?;
    fs::copy(command, scripts.join("meshwork")).map_err(failed)?;
    let profile = ["--profile", place.profile, "--compatibility", "linux"];
    let made = maturin(place, &tools, "build", &profile, &files);
    fs::remove_dir_all(data).map_err(failed)?;
    made?;
    let files = fs::read_dir(files).map_err(failed)?;
    let files: Result<Vec<_>, _> = files.map(|file| file.map(|it| it.path())).collect();
    let files = files.map_err(failed)?;
    let wheel = files
        .iter()
        .find(|it| it.extension().is_some_and(|it| it == "whl"));
    let wheel = wheel.ok_or_else(|| Failure::new("maturin has built no wheel"))?;
    for python in interpreters {
        let trial = try_wheel(place, python, wheel)?;
        check_types(place, &tools, &trial)?;
    }
    Ok(files)
}

/// Lets maturin write a file of the package.
fn maturin(
    place: &Place<'_>,
    tools: &Path,
    verb: &str,
    arguments: &[&str],
    files: &Path,
) -> Result<(), Failure> {
    let mut maturin = Command::new(tools.join("bin/maturin"));
    maturin.arg(verb).args(arguments).arg("--out").arg(files);
    without_own_variables(&mut maturin);
    process::run(maturin.current_dir(place.source(PACKAGE)), BUILD)
}

/// Creates an empty environment of Python.
fn environment(place: &Place<'_>, name: &str, python: &Path) -> Result<PathBuf, Failure> {
    let folder = place.empty(name)?;
    let mut venv = Command::new(python);
    process::run(venv.args(["-m", "venv"]).arg(&folder), INSTALL)?;
    Ok(folder)
}

fn pip(environment: &Path) -> Command {
    let mut pip = Command::new(environment.join("bin/python"));
    pip.args(["-m", "pip", "--disable-pip-version-check"]);
    pip
}

/// Installs the wheel alone, and runs a task of `examples/app/shop.py` without a server. Returns the environment.
fn try_wheel(place: &Place<'_>, python: &Path, wheel: &Path) -> Result<PathBuf, Failure> {
    let trial = environment(place, "trial", python)?;
    let mut install = pip(&trial);
    install.args(["install", "--quiet", "--no-deps"]).arg(wheel);
    process::run(&mut install, INSTALL)?;
    let who = format!("the package for {}", python.display());
    let said = ask(
        Command::new(trial.join("bin/meshwork")).arg("--version"),
        INSTALL,
    )?;
    let version = said.trim();
    let mut about = Command::new(trial.join("bin/python"));
    let about = ask(about.args(["-c", ABOUT]), INSTALL)?;
    let expected = format!("{version} MIT OR Apache-2.0 LICENSE-APACHE LICENSE-MIT True");
    expect(&who, &about, &expected)?;
    let mut program = Command::new(trial.join("bin/python"));
    program.arg(place.source("examples/app/trial.py"));
    program.env("MESHWORK_DATA", place.empty("data")?);
    let said = ask(&mut program, INSTALL)?;
    expect(&who, &said, "sent Hello to ada@example.org")?;
    Ok(trial)
}

/// Checks the types of a program and of one with planted mistakes against the installed package.
fn check_types(place: &Place<'_>, tools: &Path, trial: &Path) -> Result<(), Failure> {
    let check = |file: &Path| {
        let mut mypy = Command::new(tools.join("bin/mypy"));
        mypy.args(["--strict", "--no-error-summary", "--cache-dir", "/dev/null"]);
        mypy.arg("--python-executable")
            .arg(trial.join("bin/python"));
        mypy.arg(file).current_dir(trial);
        mypy
    };
    process::run(&mut check(&place.source("examples/app/shop.py")), INSTALL)?;
    let mistakes = place.source(PACKAGE).join("tests/mistakes.py");
    mistakes::find(&mut check(&mistakes), &mistakes)
}
