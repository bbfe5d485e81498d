//! What a test asks of its server, and the command line that says so.

use std::path::Path;

use super::server::RealServer;
use super::tls::TlsFiles;
use super::tools::{Tool, need, need_for};

/// A server to be started. Without options: no password, no TLS, nothing on disk, 16 databases.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    pub(super) tool: Tool,
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    pub(super) tls: bool,
    append_only: bool,
    databases: u32,
    args: Vec<String>,
}

impl ServerOptions {
    pub(super) fn new(tool: Tool) -> Self {
        Self {
            tool,
            user: None,
            password: None,
            tls: false,
            append_only: false,
            databases: 16,
            args: Vec::new(),
        }
    }

    /// Asks for a password of the default user.
    #[must_use]
    pub fn password(mut self, password: &str) -> Self {
        self.user = None;
        self.password = Some(password.to_owned());
        self
    }

    /// Makes an ACL user who may do everything, and turns the default user off.
    #[must_use]
    pub fn acl_user(mut self, user: &str, password: &str) -> Self {
        self.user = Some(user.to_owned());
        self.password = Some(password.to_owned());
        self
    }

    /// TLS only, with an authority of its own, and clients must show a certificate of it:
    /// [`RealServer::tls_files`]. The Valkey of the test tools is built without TLS.
    #[must_use]
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// Keeps an append-only file, written before each reply, so that [`RealServer::restart`] and
    /// [`RealServer::start_again`] find every acknowledged write.
    #[must_use]
    pub fn append_only(mut self) -> Self {
        self.append_only = true;
        self
    }

    /// `maxmemory-policy`, as `allkeys-lru`.
    #[must_use]
    pub fn max_memory_policy(self, policy: &str) -> Self {
        self.args(&["--maxmemory-policy", policy])
    }

    /// The number of databases.
    #[must_use]
    pub fn databases(mut self, databases: u32) -> Self {
        self.databases = databases;
        self
    }

    /// More of the server's own command line.
    #[must_use]
    pub fn args(mut self, args: &[&str]) -> Self {
        self.args.extend(args.iter().map(|arg| (*arg).to_owned()));
        self
    }

    /// Starts the server and returns when it takes connections. `None`: this machine lacks it,
    /// and the calling `#[test]` has been reported as skipped.
    ///
    /// # Panics
    /// When the server says no, with its words; in CI, when there is none.
    #[must_use]
    #[track_caller]
    pub fn start(self) -> Option<RealServer> {
        let program = need(self.tool)?;
        Some(RealServer::start(&program, self))
    }

    /// As [`Self::start`], for a harness of its own, where threads carry no test's name.
    ///
    /// # Panics
    /// As [`Self::start`].
    #[must_use]
    pub fn start_for(self, test: &str) -> Option<RealServer> {
        let program = need_for(test, self.tool)?;
        Some(RealServer::start(&program, self))
    }

    pub(super) fn command_line(
        &self,
        port: u16,
        dir: &Path,
        tls: Option<&TlsFiles>,
    ) -> Vec<String> {
        let dir = dir.display();
        let mut line = words(&format!(
            "--bind 127.0.0.1 --unixsocketperm 600 --daemonize no --enable-debug-command local \
             --databases {}",
            self.databases
        ));
        let mut set = |name: &str, value: String| line.extend([format!("--{name}"), value]);
        set("dir", dir.to_string());
        set("unixsocket", format!("{dir}/s"));
        set("logfile", String::new());
        set("save", String::new());
        if self.append_only {
            set("appendonly", "yes".to_owned());
            set("appendfsync", "always".to_owned());
        }
        if let Some(tls) = tls {
            set("port", "0".to_owned());
            set("tls-port", port.to_string());
            set("tls-cert-file", tls.server_cert.display().to_string());
            set("tls-key-file", tls.server_key.display().to_string());
            set("tls-ca-cert-file", tls.ca.display().to_string());
            set("tls-auth-clients", "yes".to_owned());
        } else {
            set("port", port.to_string());
        }
        match (&self.user, &self.password) {
            (Some(user), Some(password)) => {
                line.extend(words("--user default off --user"));
                line.extend([user.clone(), "on".to_owned(), format!(">{password}")]);
                line.extend(words("~* &* +@all"));
            }
            (None, Some(password)) => set("requirepass", password.clone()),
            _ => {}
        }
        line.extend(self.args.iter().cloned());
        line
    }
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}
