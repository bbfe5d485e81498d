//! A running server: its addresses, and actions on it.

use std::net::TcpListener;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use tempfile::TempDir;

use super::guard::{Guard, StartError};
use super::options::ServerOptions;
use super::tls::TlsFiles;
use super::tools::{Tool, need, need_for};

/// Range of ports, below that of outgoing connections, which could otherwise take the port of a server that is about
/// to start again.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// Number of tries, because another process can take a port between the check and the server's start.
pub(super) const PORT_ATTEMPTS: usize = 8;

/// A redis-server or valkey-server of one test, killed when dropped.
pub struct RealServer {
    options: ServerOptions,
    program: PathBuf,
    port: u16,
    tls: Option<TlsFiles>,
    guard: Option<Guard>,
    /// Directory of the server. The guard removes it as well, even if the test is killed.
    dir: TempDir,
}

impl RealServer {
    /// Returns a redis-server without options.
    #[must_use]
    pub fn redis() -> ServerOptions {
        ServerOptions::new(Tool::Redis)
    }

    /// Returns a valkey-server without options.
    #[must_use]
    pub fn valkey() -> ServerOptions {
        ServerOptions::new(Tool::Valkey)
    }

    pub(super) fn start(program: &Path, options: ServerOptions) -> Self {
        // A short name, because the address of a socket has about 100 bytes.
        let dir = tempfile::Builder::new()
            .prefix("mw-")
            .tempdir()
            .expect("a temporary directory");
        let tls = options.tls.then(|| match &options.self_signed {
            Some(certificate) => TlsFiles::self_signed(dir.path(), certificate),
            None => TlsFiles::make(dir.path()),
        });
        let mut attempts = PORT_ATTEMPTS;
        let (port, guard) = loop {
            attempts -= 1;
            let port = free_port();
            let line = options.command_line(port, dir.path(), tls.as_ref());
            match Guard::start(program, &line, dir.path()) {
                Ok(guard) => break (port, guard),
                Err(error) if attempts > 0 && port_was_taken(&error) => {}
                Err(error) => panic!("{}: {error}", program.display()),
            }
        };
        Self {
            options,
            program: program.to_owned(),
            port,
            tls,
            guard: Some(guard),
            dir,
        }
    }

    /// Returns the URL of database 0, with user and password: `redis://…` or, with TLS, `rediss://…`.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_of(0)
    }

    /// Returns the URL of a database, with user and password.
    #[must_use]
    pub fn url_of(&self, database: u32) -> String {
        let scheme = if self.tls.is_some() {
            "rediss"
        } else {
            "redis"
        };
        let login = self.login();
        format!("{scheme}://{login}127.0.0.1:{}/{database}", self.port)
    }

    /// Returns user and password for a URL, with the `@`.
    pub(super) fn login(&self) -> String {
        match (&self.options.user, &self.options.password) {
            (_, None) => String::new(),
            (user, Some(password)) => {
                format!(
                    "{}:{}@",
                    encoded(user.as_deref().unwrap_or("")),
                    encoded(password)
                )
            }
        }
    }

    /// Returns the URL of database 0 without user and password.
    #[must_use]
    pub fn url_without_login(&self) -> String {
        let scheme = if self.tls.is_some() {
            "rediss"
        } else {
            "redis"
        };
        format!("{scheme}://127.0.0.1:{}/0", self.port)
    }

    /// Sends a command over a separate connection, in database 0.
    ///
    /// # Errors
    /// The server refuses the command, or does not answer.
    pub fn say<T: redis::FromRedisValue>(&self, words: &[&str]) -> redis::RedisResult<T> {
        let mut connection = redis::Client::open(self.url())?.get_connection()?;
        let mut cmd = redis::Cmd::new();
        cmd.arg(words).query(&mut connection)
    }

    /// Returns one line of `INFO`.
    #[must_use]
    pub fn info(&self, name: &str) -> Option<String> {
        let info: String = self.say(&["INFO"]).ok()?;
        let value = |line: &str| {
            line.strip_prefix(name)?
                .strip_prefix(':')
                .map(str::to_owned)
        };
        info.lines().find_map(value)
    }

    /// Returns `127.0.0.1:port`.
    pub(super) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Returns the port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the path of the Unix socket, which always exists.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("s")
    }

    /// Returns the server's directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Returns the files that a client needs for TLS; `None` without [`ServerOptions::tls`].
    #[must_use]
    pub fn tls_files(&self) -> Option<&TlsFiles> {
        self.tls.as_ref()
    }

    /// Returns the process id of the server.
    ///
    /// # Panics
    /// The server has been killed.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.running().pid()
    }

    /// Suspends the process: connections stay open, and nothing is answered.
    ///
    /// # Panics
    /// The server has been killed.
    pub fn pause(&self) {
        self.running().signal(Signal::STOP);
    }

    /// Resumes the process after [`Self::pause`].
    ///
    /// # Panics
    /// The server has been killed.
    pub fn resume(&self) {
        self.running().signal(Signal::CONT);
    }

    /// `kill -9`; returns when the process is gone.
    ///
    /// # Panics
    /// The server has been killed before.
    pub fn kill9(&mut self) {
        self.end(Signal::KILL);
    }

    /// Starts the server on the same port and directory after [`Self::kill9`].
    ///
    /// # Panics
    /// The server still runs, or does not start.
    pub fn start_again(&mut self) {
        assert!(self.guard.is_none(), "the server still runs");
        let line = self
            .options
            .command_line(self.port, self.dir.path(), self.tls.as_ref());
        match Guard::start(&self.program, &line, self.dir.path()) {
            Ok(guard) => self.guard = Some(guard),
            Err(error) => panic!("{}: {error}", self.program.display()),
        }
    }

    /// Stops the server with SIGTERM, and starts it on the same port and directory.
    ///
    /// # Panics
    /// The server has been killed, or does not start.
    pub fn restart(&mut self) {
        self.end(Signal::TERM);
        self.start_again();
    }

    fn end(&mut self, signal: Signal) {
        let mut guard = self.guard.take().expect("the server runs");
        guard.signal(signal);
        guard.wait_for_death();
        guard.end_and_keep_files();
    }

    fn running(&self) -> &Guard {
        self.guard.as_ref().expect("the server runs")
    }
}

impl ServerOptions {
    /// Starts the server and returns when it accepts connections. Returns `None` if this machine lacks the server; the
    /// calling `#[test]` has then been reported as skipped.
    ///
    /// # Panics
    /// The server does not start, with its output; in CI, there is none.
    #[must_use]
    #[track_caller]
    pub fn start(self) -> Option<RealServer> {
        let program = need(self.tool)?;
        Some(RealServer::start(&program, self))
    }

    /// Does the same as [`Self::start`] for custom harnesses, whose threads do not have a test's name.
    ///
    /// # Panics
    /// As [`Self::start`].
    #[must_use]
    pub fn start_for(self, test: &str) -> Option<RealServer> {
        let program = need_for(test, self.tool)?;
        Some(RealServer::start(&program, self))
    }
}

fn port_was_taken(error: &StartError) -> bool {
    error.output.contains("Address already in use")
}

/// Returns a free port on loopback, which no outgoing connection takes.
#[must_use]
pub fn free_port() -> u16 {
    let mut random = rand::rng();
    loop {
        let port = rand::RngExt::random_range(&mut random, PORTS);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Percent-encodes the login part of a URL.
fn encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}
