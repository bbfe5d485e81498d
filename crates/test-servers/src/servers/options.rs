//! Options of a test's server, and its command line.

use std::fs;
use std::path::Path;

use super::tls::{SelfSigned, TlsFiles};
use super::tools::Tool;

/// A server to be started. Default: no password, no TLS, nothing on disk, 16 databases.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    pub(super) tool: Tool,
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    pub(super) tls: bool,
    pub(super) self_signed: Option<SelfSigned>,
    append_only: bool,
    cluster: bool,
    pub(super) watched: Option<Watched>,
    databases: u32,
    args: Vec<String>,
}

/// The service that a sentinel watches.
#[derive(Clone, Debug)]
pub(super) struct Watched {
    pub(super) service: String,
    pub(super) port: u16,
    /// The password of the servers.
    pub(super) password: Option<String>,
}

/// Time after which a silent node or server counts as gone, in milliseconds: short, for fast tests of failovers, and
/// long enough for a busy machine.
const DOWN_AFTER_MS: u32 = 1000;

/// Distance from a node's port to its port for other nodes.
pub(super) const BUS: u16 = 500;

impl ServerOptions {
    pub(super) fn new(tool: Tool) -> Self {
        Self {
            tool,
            user: None,
            password: None,
            tls: false,
            self_signed: None,
            append_only: false,
            cluster: false,
            watched: None,
            databases: 16,
            args: Vec::new(),
        }
    }

    /// Requires a password of the default user.
    #[must_use]
    pub fn password(mut self, password: &str) -> Self {
        self.user = None;
        self.password = Some(password.to_owned());
        self
    }

    /// Creates an ACL user with all rights, and disables the default user.
    #[must_use]
    pub fn acl_user(mut self, user: &str, password: &str) -> Self {
        self.user = Some(user.to_owned());
        self.password = Some(password.to_owned());
        self
    }

    /// Enables TLS only, with an authority of its own. Clients must present its certificate:
    /// [`super::RealServer::tls_files`]. The Valkey of the test tools is built without TLS.
    #[must_use]
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// Enables TLS only, with such a certificate; clients need none.
    #[must_use]
    pub fn self_signed(mut self, certificate: SelfSigned) -> Self {
        self.tls = true;
        self.self_signed = Some(certificate);
        self
    }

    /// Enables an append-only file, written before each reply, so that [`super::RealServer::restart`] and
    /// [`super::RealServer::start_again`] find every acknowledged write.
    #[must_use]
    pub fn append_only(mut self) -> Self {
        self.append_only = true;
        self
    }

    /// Sets `maxmemory-policy`, as `allkeys-lru`.
    #[must_use]
    pub fn max_memory_policy(self, policy: &str) -> Self {
        self.args(&["--maxmemory-policy", policy])
    }

    /// Makes it a node of a cluster: see [`super::RealCluster`].
    pub(super) fn cluster(mut self) -> Self {
        self.cluster = true;
        self
    }

    /// Makes it a sentinel: see [`super::RealSentinels`].
    pub(super) fn sentinel(mut self, watched: Watched) -> Self {
        self.watched = Some(watched);
        self
    }

    /// Sets the number of databases.
    #[must_use]
    pub fn databases(mut self, databases: u32) -> Self {
        self.databases = databases;
        self
    }

    /// Adds arguments of the server's own command line.
    #[must_use]
    pub fn args(mut self, args: &[&str]) -> Self {
        self.args.extend(args.iter().map(|arg| (*arg).to_owned()));
        self
    }

    /// Returns the command line of a sentinel, whose settings must be in a file, because it changes them itself.
    fn sentinel_line(&self, watched: &Watched, port: u16, dir: &Path) -> Vec<String> {
        let Watched {
            service,
            port: at,
            password,
        } = watched;
        let mut conf = format!(
            "bind 127.0.0.1\nport {port}\ndir {dir}\nlogfile \"\"\n\
             sentinel monitor {service} 127.0.0.1 {at} 2\n\
             sentinel down-after-milliseconds {service} {DOWN_AFTER_MS}\n\
             sentinel failover-timeout {service} {}\n",
            3 * DOWN_AFTER_MS,
            dir = dir.display(),
        );
        if let Some(password) = password {
            conf += &format!("sentinel auth-pass {service} {password}\n");
        }
        if let Some(own) = &self.password {
            conf += &format!("requirepass {own}\nsentinel sentinel-pass {own}\n");
        }
        let path = dir.join("sentinel.conf");
        if !path.exists() {
            fs::write(&path, conf).expect("the server's directory can be written");
        }
        vec![path.display().to_string(), "--sentinel".to_owned()]
    }

    pub(super) fn command_line(
        &self,
        port: u16,
        dir: &Path,
        tls: Option<&TlsFiles>,
    ) -> Vec<String> {
        if let Some(watched) = &self.watched {
            return self.sentinel_line(watched, port, dir);
        }
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
        if self.cluster {
            set("cluster-enabled", "yes".to_owned());
            set("cluster-node-timeout", DOWN_AFTER_MS.to_string());
            // The default is the port plus 10,000, in the range of outgoing connections.
            set("cluster-port", (port + BUS).to_string());
        }
        if let Some(tls) = tls {
            set("port", "0".to_owned());
            set("tls-port", port.to_string());
            set("tls-cert-file", tls.server_cert.display().to_string());
            set("tls-key-file", tls.server_key.display().to_string());
            set("tls-ca-cert-file", tls.ca.display().to_string());
            let asks = if self.self_signed.is_some() {
                "no"
            } else {
                "yes"
            };
            set("tls-auth-clients", asks.to_owned());
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
