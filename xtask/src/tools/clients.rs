//! Clients of Redis in other languages, for the examples of docs/any-language.md.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Found, INSTALLATION, QUESTION, in_path, package_manager};
use crate::process::{Failure, ask};
use crate::workspace::Workspace;

/// Versions and checksums of the clients.
const PINNED: &str = "xtask/clients";

/// A client that the system's package manager installs with its language.
pub(super) struct Packaged {
    program: &'static str,
    packages: &'static [&'static str],
    /// The folder with a folder of the client, and a file of the client below that.
    library: (&'static str, &'static str),
}

pub(super) const PHPREDIS: Packaged = Packaged {
    program: "php",
    packages: &["php-cli", "php-redis"],
    library: ("/usr/lib/php", "redis.so"),
};

pub(super) const REDIGO: Packaged = Packaged {
    program: "go",
    packages: &["golang-go", "golang-github-gomodule-redigo-dev"],
    library: ("/usr/share/gocode/src/github.com", "redigo/redis/doc.go"),
};

impl Packaged {
    fn find(&self) -> Option<PathBuf> {
        in_path(self.program)?;
        let (folder, file) = self.library;
        let folders = fs::read_dir(folder).ok()?.flatten();
        let mut files = folders.map(|entry| entry.path().join(file));
        files.find(|path| path.is_file())
    }

    pub(super) fn find_or_install(&self, install: bool) -> Result<Found, Failure> {
        if let Some(path) = self.find() {
            let note = "found".to_owned();
            return Ok(Found { path, note });
        }
        if !install {
            return Err(Failure::new("not installed"));
        }
        for package in self.packages {
            package_manager::install(package)?;
        }
        let note = format!("installed as {}", self.packages.join(", "));
        let path = self.find();
        let path = path.ok_or_else(|| Failure::new("installed, but not found"))?;
        Ok(Found { path, note })
    }
}

/// redis-cli, which comes with redis-server or in a package of its own.
pub(super) fn redis_cli(install: bool) -> Result<Found, Failure> {
    let found = |note: &str| {
        let note = note.to_owned();
        in_path("redis-cli").map(|path| Found { path, note })
    };
    if let Some(found) = found("found") {
        return Ok(found);
    }
    if !install {
        return Err(Failure::new("not in PATH"));
    }
    let note = package_manager::install("redis-tools")?;
    found(&note).ok_or_else(|| Failure::new("installed, but not into PATH"))
}

pub(super) fn redis_py(
    workspace: &Workspace,
    python: Option<&Path>,
    install: bool,
) -> Result<Found, Failure> {
    let folder = workspace.target("tools/clients/python");
    downloaded(&folder.join("redis/__init__.py"), install, || {
        let python = python.ok_or_else(|| Failure::new("it needs python3"))?;
        let pip = || {
            let mut command = Command::new(python);
            command.args(["-m", "pip"]);
            command
        };
        if ask(pip().arg("--version"), QUESTION).is_err() {
            package_manager::install("pip")?;
        }
        let mut command = pip();
        command
            .args(["install", "--quiet", "--no-deps", "--require-hashes", "-r"])
            .arg(workspace.root.join(PINNED).join("requirements.txt"))
            .arg("--target")
            .arg(&folder);
        ask(&mut command, INSTALLATION).map(|_| ())
    })
}

/// A package for Node; all of them are installed together.
pub(super) fn node(workspace: &Workspace, name: &str, install: bool) -> Result<Found, Failure> {
    let folder = workspace.target("tools/clients");
    let program = folder.join("node_modules").join(name).join("package.json");
    downloaded(&program, install, || {
        for (program, package) in [("node", "nodejs"), ("npm", "npm")] {
            if in_path(program).is_none() {
                package_manager::install(package)?;
            }
        }
        let copy = |name: &str| {
            let from = workspace.root.join(PINNED).join(name);
            fs::copy(from, folder.join(name)).map_err(|error| Failure::new(error.to_string()))
        };
        fs::create_dir_all(&folder).map_err(|error| Failure::new(error.to_string()))?;
        copy("package.json")?;
        copy("package-lock.json")?;
        let mut command = Command::new("npm");
        command.args(["ci", "--silent", "--ignore-scripts"]);
        ask(command.current_dir(&folder), INSTALLATION).map(|_| ())
    })
}

fn downloaded(
    path: &Path,
    install: bool,
    download: impl FnOnce() -> Result<(), Failure>,
) -> Result<Found, Failure> {
    let found = |note: &str| Found {
        path: path.to_owned(),
        note: note.to_owned(),
    };
    if path.is_file() {
        return Ok(found("downloaded earlier"));
    }
    if !install {
        return Err(Failure::new("not installed"));
    }
    download()?;
    match path.is_file() {
        true => Ok(found(&format!("downloaded, see {PINNED}"))),
        false => Err(Failure::new("downloaded, but not found")),
    }
}
