//! Packages of other languages: clients of Redis for the examples of docs/any-language.md, and those that generate, build
//! and test the clients of the API.

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

/// Packages of Python, installed below `target` from pinned requirements.
pub(super) struct PythonPackages {
    /// Folder below [`PINNED`] with `requirements.txt`, and below the tools.
    folder: &'static str,
    /// A file of the packages.
    file: &'static str,
}

/// Packages of npm, installed below `target` by a lock file.
pub(super) struct NpmPackages {
    folder: &'static str,
    file: &'static str,
}

/// The client of the Python example.
pub(super) const REDIS_PY: PythonPackages = PythonPackages {
    folder: "",
    file: "redis/__init__.py",
};
/// The package with which a plain client signs a message.
pub(super) const CRYPTOGRAPHY: PythonPackages = PythonPackages {
    folder: "crypto",
    file: "cryptography/__init__.py",
};
/// The client of the JavaScript example.
pub(super) const IOREDIS: NpmPackages = NpmPackages {
    folder: "",
    file: "ioredis/package.json",
};
/// The client of the Model Context Protocol, for the tests of the server for agents.
pub(super) const MCP_SDK: NpmPackages = NpmPackages {
    folder: "",
    file: "@modelcontextprotocol/sdk/package.json",
};
/// The same for Python, with a validator of schemas.
pub(super) const MCP_PYTHON: PythonPackages = PythonPackages {
    folder: "agents",
    file: "mcp/__init__.py",
};
/// The installer of dependencies of Python scripts.
pub(super) const UV: PythonPackages = PythonPackages {
    folder: "uv",
    file: "bin/uv",
};
/// Packages to generate, build and test the clients of the API.
pub(super) const PYTHON_SDK: PythonPackages = PythonPackages {
    folder: "sdk",
    file: "httpx/__init__.py",
};
pub(super) const TYPESCRIPT_SDK: NpmPackages = NpmPackages {
    folder: "sdk",
    file: "typescript/package.json",
};
/// Packages beside which tasks run.
pub(super) const TASKS_PYTHON: PythonPackages = PythonPackages {
    folder: "tasks",
    file: "celery/__init__.py",
};
pub(super) const TASKS_NODE: NpmPackages = NpmPackages {
    folder: "tasks",
    file: "bullmq/package.json",
};

/// Schemathesis, and published generators of clients.
pub(super) const SCHEMATHESIS: PythonPackages = PythonPackages {
    folder: "documents",
    file: "schemathesis/__init__.py",
};

/// Packages that drive Chromium, and check the pages of the dashboard.
pub(super) const BROWSER_SDK: NpmPackages = NpmPackages {
    folder: "browser",
    file: "puppeteer-core/package.json",
};

impl PythonPackages {
    pub(super) fn find_or_install(
        &self,
        workspace: &Workspace,
        python: Option<&Path>,
        install: bool,
    ) -> Result<Found, Failure> {
        let folder = workspace
            .target("tools/clients")
            .join(self.folder)
            .join("python");
        downloaded(&folder.join(self.file), install, || {
            let python = python.ok_or_else(|| Failure::new("it needs python3"))?;
            let pip = || {
                let mut command = Command::new(python);
                command.args(["-m", "pip"]);
                command
            };
            if ask(pip().arg("--version"), QUESTION).is_err() {
                package_manager::install("pip")?;
            }
            let pinned = workspace.root.join(PINNED).join(self.folder);
            let mut command = pip();
            command
                .args(["install", "--quiet", "--no-deps", "--require-hashes", "-r"])
                .arg(pinned.join("requirements.txt"))
                .arg("--target")
                .arg(&folder);
            ask(&mut command, INSTALLATION).map(|_| ())
        })
    }
}

impl NpmPackages {
    pub(super) fn find_or_install(
        &self,
        workspace: &Workspace,
        install: bool,
    ) -> Result<Found, Failure> {
        let folder = workspace.target("tools/clients").join(self.folder);
        let program = folder.join("node_modules").join(self.file);
        downloaded(&program, install, || {
            for (program, package) in [("node", "nodejs"), ("npm", "npm")] {
                if in_path(program).is_none() {
                    package_manager::install(package)?;
                }
            }
            let pinned = workspace.root.join(PINNED).join(self.folder);
            let copy = |name: &str| {
                let copied = fs::copy(pinned.join(name), folder.join(name));
                copied.map_err(|error| Failure::new(error.to_string()))
            };
            fs::create_dir_all(&folder).map_err(|error| Failure::new(error.to_string()))?;
            copy("package.json")?;
            copy("package-lock.json")?;
            let mut command = Command::new("npm");
            command.args(["ci", "--silent", "--ignore-scripts"]);
            ask(command.current_dir(&folder), INSTALLATION).map(|_| ())
        })
    }
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
