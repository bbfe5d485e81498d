//! External programs for the tests, which are found or installed, with a line about each.

mod chromium;
mod clients;
mod faketime;
mod package_manager;
mod plain;
mod python;
mod redis;
mod valkey;

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::process::{Failure, ask};
use crate::workspace::{Workspace, in_ci};

/// Timeout for the version of a program.
const QUESTION: Duration = Duration::from_secs(60);

/// Timeout of a package manager or a download.
const INSTALLATION: Duration = Duration::from_secs(600);

/// The programs that were found.
#[derive(Default)]
pub(crate) struct Tools {
    python: Option<PathBuf>,
    redis: Option<PathBuf>,
    valkey: Option<PathBuf>,
    faketime: Option<PathBuf>,
}

impl Tools {
    /// Returns the variables of the tests for these programs; the names are also in `test-servers::servers::tools`.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        [
            ("MESHWORK_TEST_PYTHON", &self.python),
            ("MESHWORK_TEST_REDIS_SERVER", &self.redis),
            ("MESHWORK_TEST_VALKEY_SERVER", &self.valkey),
            ("MESHWORK_TEST_FAKETIME", &self.faketime),
        ]
        .into_iter()
        .filter_map(|(name, path)| Some((name, path.as_deref()?)))
    }
}

/// Finds or installs each tool, and prints a line about it. With `few`, only Python and Redis are installed.
pub(crate) fn prepare(workspace: &Workspace, install: bool, few: bool) -> Tools {
    let python = report("python3", python::find_or_install(install));
    let redis = report("redis-server", redis::find_or_install(install));
    let install = install && !few;
    let valkey = report(
        "valkey-server",
        valkey::find_or_install(workspace, python.as_deref(), install),
    );
    // The tests look for these where they are installed.
    report("redis-cli", clients::redis_cli(install));
    report(
        "redis-py",
        clients::REDIS_PY.find_or_install(workspace, python.as_deref(), install),
    );
    report(
        "cryptography",
        clients::CRYPTOGRAPHY.find_or_install(workspace, python.as_deref(), install),
    );
    report(
        "uv",
        clients::UV.find_or_install(workspace, python.as_deref(), install),
    );
    report(
        "ioredis",
        clients::IOREDIS.find_or_install(workspace, install),
    );
    report(
        "@modelcontextprotocol/sdk",
        clients::MCP_SDK.find_or_install(workspace, install),
    );
    report(
        "mcp for Python",
        clients::MCP_PYTHON.find_or_install(workspace, python.as_deref(), install),
    );
    report(
        "Schemathesis and generators of clients",
        clients::SCHEMATHESIS.find_or_install(workspace, python.as_deref(), install),
    );
    report("chromium", chromium::find_or_install(install));
    report(
        "puppeteer-core",
        clients::BROWSER_SDK.find_or_install(workspace, install),
    );
    for (name, tool) in [
        ("rsync", plain::RSYNC),
        ("curl", plain::CURL),
        ("nginx", plain::NGINX),
        ("PostgreSQL", plain::POSTGRES),
        ("PgBouncer", plain::PGBOUNCER),
    ] {
        report(name, tool.find_or_install(install));
    }
    report("redigo", clients::REDIGO.find_or_install(install));
    report("phpredis", clients::PHPREDIS.find_or_install(install));
    let of_python = clients::PYTHON_SDK.find_or_install(workspace, python.as_deref(), install);
    report("packages of clients/python", of_python);
    let of_node = clients::TYPESCRIPT_SDK.find_or_install(workspace, install);
    report("packages of clients/typescript", of_node);
    let of_python = clients::TASKS_PYTHON.find_or_install(workspace, python.as_deref(), install);
    report("packages beside tasks in Python", of_python);
    let of_node = clients::TASKS_NODE.find_or_install(workspace, install);
    report("packages beside tasks in Node", of_node);
    Tools {
        python,
        redis,
        valkey,
        faketime: report("libfaketime", faketime::find_or_install(install)),
    }
}

/// A program and a description of its origin.
struct Found {
    path: PathBuf,
    note: String,
}

fn report(program: &str, outcome: Result<Found, Failure>) -> Option<PathBuf> {
    match outcome {
        Ok(found) => {
            eprintln!("{program}: {} ({})", found.path.display(), found.note);
            Some(found.path)
        }
        Err(failure) => {
            let then = if in_ci() {
                "fail"
            } else {
                "are skipped by name"
            };
            eprintln!("{program}: none: {failure}. Tests that need it {then}.");
            None
        }
    }
}

/// Returns the path that a variable names, else the first in `PATH`.
fn look(program: &str, variable: &str) -> Option<PathBuf> {
    let named = env::var_os(variable).filter(|value| !value.is_empty());
    named.map(PathBuf::from).or_else(|| in_path(program))
}

fn in_path(program: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?)
        .map(|dir| dir.join(program))
        .find(|path| path.is_file())
}

/// Returns the first line of `program --version`.
fn version(program: &Path) -> Result<String, Failure> {
    let said = ask(Command::new(program).arg("--version"), QUESTION)?;
    Ok(said.lines().next().unwrap_or_default().to_owned())
}

/// Returns major and minor number in `… v=7.0.15 …`.
fn server_version(line: &str) -> Option<(u32, u32)> {
    let (_, rest) = line.split_once("v=")?;
    let mut numbers = rest.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_tells_its_version() {
        let line = "Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64";
        assert_eq!(server_version(line), Some((7, 0)));
        assert_eq!(server_version("Valkey server v=9.1.2 sha=0"), Some((9, 1)));
        assert_eq!(server_version("no server"), None);
    }
}
