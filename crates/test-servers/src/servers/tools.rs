//! Programs that tests need: their paths, and the consequences of missing ones.
//!
//! Nothing is installed here: `cargo xtask test` does that, and passes the paths through the variables below.

use std::env;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::thread;

/// The file to which skipped tests are appended, a line each; set by `cargo xtask test`, which lists them at its end.
const SKIPPED_TESTS: &str = "MESHWORK_SKIPPED_TESTS";

/// A program that is not part of this repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tool {
    /// redis-server, 7.0 or newer.
    Redis,
    /// valkey-server.
    Valkey,
    /// A Python 3 interpreter.
    Python,
    /// The library libfaketime, which gives a process a wrong clock.
    Faketime,
    /// redis-cli, of any version.
    RedisCli,
    /// The client redis-py.
    RedisPy,
    /// The package cryptography for Python.
    Cryptography,
    /// uv, which installs packages for Python scripts.
    Uv,
    /// The client ioredis for Node.
    Ioredis,
    /// The client of the Model Context Protocol for Node.
    McpSdk,
    /// The client of the Model Context Protocol for Python, with the validator jsonschema.
    McpPython,
    /// The client redigo for Go.
    Redigo,
    /// The client phpredis.
    PhpRedis,
    /// The packages that `clients/python` is built with and needs.
    PythonSdk,
    /// The packages that `clients/typescript` is built with.
    TypescriptSdk,
    /// Packages beside which tasks in Python run: pytest, Celery, drivers of databases, frameworks.
    TasksPython,
    /// The same for Node: BullMQ, drivers, frameworks, vitest.
    TasksNode,
    /// Schemathesis, and generators of clients from the documents of the API, which are beside it.
    Schemathesis,
    /// The browser Chromium.
    Chromium,
    /// The packages that drive Chromium and check pages.
    BrowserSdk,
    /// PostgreSQL, with initdb beside it.
    Postgres,
    /// PgBouncer, a pooler of connections to PostgreSQL.
    PgBouncer,
    /// nginx.
    Nginx,
    /// rsync, which scripts find in `PATH`.
    Rsync,
    /// curl, which scripts find in `PATH`.
    Curl,
}

impl Tool {
    /// Returns the name of the program in `PATH`.
    #[must_use]
    pub fn program(self) -> &'static str {
        match self {
            Self::Redis => "redis-server",
            Self::Valkey => "valkey-server",
            Self::Python => "python3",
            Self::Faketime => "libfaketime.so.1",
            Self::RedisCli => "redis-cli",
            Self::RedisPy => "redis/__init__.py",
            Self::Cryptography => "cryptography/__init__.py",
            Self::Uv => "bin/uv",
            Self::Ioredis => "ioredis/package.json",
            Self::McpSdk => "@modelcontextprotocol/sdk/package.json",
            Self::McpPython => "mcp/__init__.py",
            Self::Redigo => "redigo/redis/doc.go",
            Self::PhpRedis => "redis.so",
            Self::PythonSdk => "httpx/__init__.py",
            Self::TypescriptSdk => "typescript/package.json",
            Self::TasksPython => "celery/__init__.py",
            Self::TasksNode => "bullmq/package.json",
            Self::Schemathesis => "schemathesis/__init__.py",
            Self::Chromium => "chromium",
            Self::BrowserSdk => "puppeteer-core/package.json",
            Self::Postgres => "postgres",
            Self::PgBouncer => "pgbouncer",
            Self::Nginx => "nginx",
            Self::Rsync => "rsync",
            Self::Curl => "curl",
        }
    }

    /// Returns the variable with the program's path, which overrides `PATH`.
    #[must_use]
    pub fn variable(self) -> &'static str {
        match self {
            Self::Redis => "MESHWORK_TEST_REDIS_SERVER",
            Self::Valkey => "MESHWORK_TEST_VALKEY_SERVER",
            Self::Python => "MESHWORK_TEST_PYTHON",
            Self::Faketime => "MESHWORK_TEST_FAKETIME",
            Self::RedisCli => "MESHWORK_TEST_REDIS_CLI",
            Self::RedisPy => "MESHWORK_TEST_REDIS_PY",
            Self::Cryptography => "MESHWORK_TEST_CRYPTOGRAPHY",
            Self::Uv => "MESHWORK_TEST_UV",
            Self::Ioredis => "MESHWORK_TEST_IOREDIS",
            Self::McpSdk => "MESHWORK_TEST_MCP_SDK",
            Self::McpPython => "MESHWORK_TEST_MCP_PYTHON",
            Self::Redigo => "MESHWORK_TEST_REDIGO",
            Self::PhpRedis => "MESHWORK_TEST_PHPREDIS",
            Self::PythonSdk => "MESHWORK_TEST_PYTHON_SDK",
            Self::TypescriptSdk => "MESHWORK_TEST_TYPESCRIPT_SDK",
            Self::TasksPython => "MESHWORK_TEST_TASKS_PYTHON",
            Self::TasksNode => "MESHWORK_TEST_TASKS_NODE",
            Self::Schemathesis => "MESHWORK_TEST_SCHEMATHESIS",
            Self::Chromium => "MESHWORK_TEST_CHROMIUM",
            Self::BrowserSdk => "MESHWORK_TEST_BROWSER_SDK",
            Self::Postgres => "MESHWORK_TEST_POSTGRES",
            Self::PgBouncer => "MESHWORK_TEST_PGBOUNCER",
            Self::Nginx => "MESHWORK_TEST_NGINX",
            Self::Rsync => "MESHWORK_TEST_RSYNC",
            Self::Curl => "MESHWORK_TEST_CURL",
        }
    }
}

/// Returns the path of the program, or `None`. Reports nothing.
#[must_use]
pub fn find(tool: Tool) -> Option<PathBuf> {
    if let Some(named) = env::var_os(tool.variable()).filter(|path| !path.is_empty()) {
        return Some(PathBuf::from(named)).filter(|path| path.is_file());
    }
    env::split_paths(&env::var_os("PATH")?)
        .map(|folder| folder.join(tool.program()))
        .find(|path| path.is_file())
        .or_else(|| unpacked(tool))
        .or_else(|| library(tool))
}

/// Finds a library, which is not in `PATH`.
fn library(tool: Tool) -> Option<PathBuf> {
    let (folder, within) = match tool {
        Tool::Faketime => ("/usr/lib", "faketime"),
        // A folder for each version of its interface.
        Tool::PhpRedis => ("/usr/lib/php", ""),
        // A folder for each version.
        Tool::Postgres => ("/usr/lib/postgresql", "bin"),
        // /usr/sbin is in the PATH of root alone.
        Tool::PgBouncer | Tool::Nginx => ("/usr", ""),
        Tool::Redigo => ("/usr/share/gocode/src/github.com", ""),
        _ => return None,
    };
    let folders = std::fs::read_dir(folder).ok()?.flatten();
    let inside = |folder: std::fs::DirEntry| folder.path().join(within).join(tool.program());
    folders.map(inside).find(|path| path.is_file())
}

/// Returns the copy that an earlier `cargo xtask test` unpacked, so that a plain `cargo test` finds it.
fn unpacked(tool: Tool) -> Option<PathBuf> {
    let folder = match tool {
        Tool::Valkey => "valkey",
        Tool::RedisPy => "clients/python",
        Tool::Cryptography => "clients/crypto/python",
        Tool::Uv => "clients/uv/python",
        Tool::Ioredis | Tool::McpSdk => "clients/node_modules",
        Tool::McpPython => "clients/agents/python",
        Tool::PythonSdk => "clients/sdk/python",
        Tool::TypescriptSdk => "clients/sdk/node_modules",
        Tool::TasksPython => "clients/tasks/python",
        Tool::TasksNode => "clients/tasks/node_modules",
        Tool::Schemathesis => "clients/documents/python",
        Tool::BrowserSdk => "clients/browser/node_modules",
        _ => return None,
    };
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2)?;
    let path = workspace.join("target/tools").join(folder);
    Some(path.join(tool.program())).filter(|path| path.is_file())
}

/// Returns the path of the program. `None` means that the calling test has been reported as skipped and should
/// return. For `#[test]` functions, whose thread has the test's name.
///
/// # Panics
/// In CI (`CI=true`), where every test has to run.
#[must_use]
#[track_caller]
pub fn need(tool: Tool) -> Option<PathBuf> {
    let caller = Location::caller();
    match thread::current().name() {
        Some(name) if name != "main" => need_for(name, tool),
        _ => need_for(
            &format!("the test at {}:{}", caller.file(), caller.line()),
            tool,
        ),
    }
}

/// Does the same as [`need`] for custom harnesses, whose threads do not have a test's name.
///
/// # Panics
/// In CI (`CI=true`), where every test has to run.
#[must_use]
pub fn need_for(test: &str, tool: Tool) -> Option<PathBuf> {
    let found = find(tool);
    if found.is_none() {
        let program = tool.program();
        assert!(
            !in_ci(),
            "{test} needs {program}, which is neither in PATH nor {}",
            tool.variable()
        );
        report_skipped(&format!("skipped: {test}: no {program}\n"));
    }
    found
}

/// Returns the path of a program in `PATH` that is no [`Tool`]. Without it the test is reported as skipped, also in CI, and
/// should return.
#[must_use]
pub fn need_program(test: &str, program: &str) -> Option<PathBuf> {
    let folders = env::var_os("PATH")?;
    let found = env::split_paths(&folders)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file());
    if found.is_none() {
        report_skipped(&format!("skipped: {test}: no {program}\n"));
    }
    found
}

/// Returns whether root runs the test; else it is reported as skipped, also in CI, and should return.
#[must_use]
pub fn need_root(test: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        report_skipped(&format!("skipped: {test}: not root\n"));
    }
    is_root
}

fn in_ci() -> bool {
    env::var("CI").is_ok_and(|value| value == "true" || value == "1")
}

/// Reports a skipped test, with one write to each destination, so that lines of concurrent tests stay whole. It
/// writes to stderr itself, because the output of print macros is dropped for tests that pass.
pub(crate) fn report_skipped(line: &str) {
    io::stderr()
        .write_all(line.as_bytes())
        .expect("stderr can be written");
    if let Some(path) = env::var_os(SKIPPED_TESTS) {
        OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .and_then(|mut file| file.write_all(line.as_bytes()))
            .expect("the list of skipped tests can be written");
    }
}
