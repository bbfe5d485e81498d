//! The packages for Node.js: one with the code, and one with the native module and the command for this platform.

use std::env::{self, consts::ARCH};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{INSTALL, Parts, Place, expect, failed, mistakes};
use crate::process::{self, Failure, ask};

/// Checks types.
const TYPESCRIPT: &str = "typescript@>=5.9 <8";
/// Folder of the package with the code.
const PACKAGE: &str = "packages/node";
/// Programs that install the package, from `examples/app`.
const TRIALS: [&str; 2] = ["trial.mjs", "trial.cjs"];
/// Files beside them.
const TASKS: [&str; 3] = ["tasks.mjs", "tasks.cjs", "typed.mts"];
/// Licences of the project.
const LICENSES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

/// Builds the packages, and tries them in an empty folder.
pub(super) fn build(
    place: &Place<'_>,
    parts: &Parts,
    interpreters: &[PathBuf],
) -> Result<Vec<PathBuf>, Failure> {
    let (version, processor) = (version(&parts.command)?, processor()?);
    let files = place.empty("npm")?;
    let code = code(place, &version)?;
    let platform = platform(place, &version, processor, parts)?;
    let tarballs = [pack(&code, &files)?, pack(&platform, &files)?];
    let trial = trial(place, &tarballs)?;
    for interpreter in interpreters {
        try_packages(place, &trial, interpreter)?;
    }
    check_types(place, &trial)?;
    Ok(tarballs.into())
}

/// Returns the version of the command.
fn version(command: &Path) -> Result<String, Failure> {
    let said = ask(Command::new(command).arg("--version"), INSTALL)?;
    let version = said.strip_prefix("meshwork ");
    let version = version.ok_or_else(|| Failure::new(format!("the command said {said:?}")))?;
    Ok(version.to_owned())
}

/// Returns the name of this processor in Node.js.
fn processor() -> Result<&'static str, Failure> {
    match ARCH {
        "x86_64" => Ok("x64"),
        "aarch64" => Ok("arm64"),
        other => Err(Failure::new(format!(
            "there is no package of Node.js for {other}"
        ))),
    }
}

/// Fills the folder of the package with the code.
fn code(place: &Place<'_>, version: &str) -> Result<PathBuf, Failure> {
    let folder = place.empty("meshwork")?;
    for file in fs::read_dir(place.source(PACKAGE)).map_err(failed)? {
        let file = file.map_err(failed)?;
        if file.file_type().map_err(failed)?.is_file() {
            fs::copy(file.path(), folder.join(file.file_name())).map_err(failed)?;
        }
    }
    license(place, &folder)?;
    let about = fs::read_to_string(folder.join("package.json")).map_err(failed)?;
    match about.contains(&format!("\"version\": \"{version}\"")) {
        true => Ok(folder),
        false => Err(Failure::new(format!(
            "{PACKAGE}/package.json has another version than the command, {version}"
        ))),
    }
}

/// Fills the folder of the package of this platform.
fn platform(
    place: &Place<'_>,
    version: &str,
    processor: &str,
    parts: &Parts,
) -> Result<PathBuf, Failure> {
    let name = format!("meshwork-linux-{processor}-gnu");
    let folder = place.empty(&name)?;
    for part in [&parts.command, &parts.module] {
        let file = part.file_name().unwrap_or_default();
        fs::copy(part, folder.join(file)).map_err(failed)?;
    }
    license(place, &folder)?;
    let about = format!(
        r#"{{
  "name": "{name}",
  "version": "{version}",
  "description": "The native module and the command of the package meshwork for Linux ({processor}, glibc)",
  "license": "MIT OR Apache-2.0",
  "repository": {{ "type": "git", "url": "https://github.com/meshwork/meshwork" }},
  "os": ["linux"],
  "cpu": ["{processor}"],
  "libc": ["glibc"]
}}
"#
    );
    fs::write(folder.join("package.json"), about).map_err(failed)?;
    Ok(folder)
}

fn license(place: &Place<'_>, folder: &Path) -> Result<(), Failure> {
    for file in LICENSES {
        fs::copy(place.source(file), folder.join(file)).map_err(failed)?;
    }
    Ok(())
}

/// Packs a folder, and returns the tarball.
fn pack(folder: &Path, files: &Path) -> Result<PathBuf, Failure> {
    let mut npm = Command::new("npm");
    npm.args(["pack", "--silent", "--pack-destination"]);
    let name = ask(npm.arg(files).current_dir(folder), INSTALL)?;
    Ok(files.join(name))
}

/// Installs the packages into an empty folder with the programs that try them.
fn trial(place: &Place<'_>, tarballs: &[PathBuf]) -> Result<PathBuf, Failure> {
    let folder = place.empty("trial-node")?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--silent", "--no-save", "--prefix", "."]);
    npm.args(tarballs).arg(TYPESCRIPT).current_dir(&folder);
    process::run(&mut npm, INSTALL)?;
    for file in TRIALS.iter().chain(&TASKS) {
        let example = place.source("examples/app").join(file);
        fs::copy(example, folder.join(file)).map_err(failed)?;
    }
    Ok(folder)
}

/// Runs the programs without a server, each with a worker that starts the same interpreter.
fn try_packages(place: &Place<'_>, trial: &Path, interpreter: &Path) -> Result<(), Failure> {
    let path = env::var_os("PATH").unwrap_or_default();
    let first = interpreter.parent().filter(|it| !it.as_os_str().is_empty());
    let first = first.map(Path::to_owned);
    let path = env::join_paths(first.into_iter().chain(env::split_paths(&path)));
    let path = path.map_err(|error| Failure::new(error.to_string()))?;
    for program in TRIALS {
        let mut node = Command::new(interpreter);
        node.arg(program).current_dir(trial).env("PATH", &path);
        node.env_remove("REDIS_URL");
        node.env("MESHWORK_DATA", place.empty("data")?);
        let said = ask(&mut node, INSTALL)?;
        let who = format!("{program} with {}", interpreter.display());
        expect(&who, &said, "sent Hello to ada@example.org")?;
    }
    Ok(())
}

/// Checks the types of a program and of one with planted mistakes against the installed package.
fn check_types(place: &Place<'_>, trial: &Path) -> Result<(), Failure> {
    let check = |file: &str| {
        let mut tsc = Command::new(trial.join("node_modules/.bin/tsc"));
        tsc.args(["--strict", "--noEmit", "--pretty", "false"]);
        tsc.args(["--module", "nodenext", "--target", "es2022"]);
        tsc.arg(file).current_dir(trial);
        tsc
    };
    process::run(&mut check("typed.mts"), INSTALL)?;
    let mistakes = place.source(PACKAGE).join("tests/mistakes.ts");
    fs::copy(&mistakes, trial.join("mistakes.ts")).map_err(failed)?;
    mistakes::find(&mut check("mistakes.ts"), &mistakes)
}
