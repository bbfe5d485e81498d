//! Location of the data, as in `REDIS_URL`. No connections are opened here.

mod server;
mod tls;

use std::path::PathBuf;

pub(crate) use server::Kind;
pub(crate) use server::Security;
pub use server::Server;
pub use tls::TlsFiles;

use crate::WaitReplicas;

/// Location of the data.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Target {
    /// A Redis or Valkey server.
    Server(Box<Server>),
    /// A data directory with the embedded engine.
    Directory(PathBuf),
}

/// The reason why a target cannot be used. Messages never contain the URL, which may have a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// The URL is not valid.
    #[error(
        "the Redis URL is not valid: {0}; write redis://[user:password@]host[:port][/database], \
         rediss://… for TLS, unix:///path/to/socket[?db=database], \
         redis+sentinel://host,host/service[/database] or redis+cluster://host,host"
    )]
    Url(String),
    /// There are TLS files, but the URL does not use TLS.
    #[error("certificates were given, but the URL does not ask for TLS: begin it with rediss://")]
    TlsWithoutUrl,
    /// The certificate or the key of the client is missing.
    #[error("a client certificate needs both its file and its key: the {0} is missing")]
    HalfCertificate(&'static str),
    /// A PEM file cannot be read.
    #[error("cannot read the {what} {path}: {reason}", path = path.display())]
    Pem {
        /// Kind of the file.
        what: &'static str,
        /// Its path.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
}

impl Target {
    /// Parses a URL.
    ///
    /// # Errors
    /// The URL names no usable server.
    pub fn parse(url: &str, tls: TlsFiles) -> Result<Self, TargetError> {
        Ok(Self::Server(Box::new(Server::parse(url, tls)?)))
    }

    /// Returns the URL's rule for replicas.
    pub(crate) fn acknowledge(&self) -> Option<WaitReplicas> {
        match self {
            Self::Server(server) => server.acknowledge,
            Self::Directory(_) => None,
        }
    }

    /// Returns the security of the connection; `None` for a data directory.
    pub(crate) fn security(&self) -> Option<Security> {
        match self {
            Self::Server(server) => Some(server.security()),
            Self::Directory(_) => None,
        }
    }

    /// Returns the target as text, without secrets.
    #[must_use]
    pub fn place(&self) -> String {
        match self {
            Self::Server(server) => server.place(),
            Self::Directory(path) => format!("the data directory {}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<Target, TargetError> {
        Target::parse(url, TlsFiles::default())
    }

    #[test]
    fn the_usual_urls() {
        for url in [
            "redis://localhost",
            "redis://:secret@127.0.0.1:7000/3",
            "rediss://user:secret@example.org:6380",
            "unix:///run/redis.sock?db=2",
            "redis+unix:///run/redis.sock",
            "redis+sentinel://:secret@h1,h2:7/main/2?sentinel_password=secret",
            "rediss+cluster://:secret@h1,h2:7",
        ] {
            let target = parse(url).unwrap();
            assert!(
                !format!("{target:?} {}", target.place()).contains("secret"),
                "{url}"
            );
        }
    }

    #[test]
    fn a_wrong_url_is_named_without_its_password() {
        for url in [
            "localhost:6379",
            "http://:secret@h",
            "redis://:secret@h:port",
            "redis://h/x",
            "redis+sentinel://:secret@h1,h2",
            "redis+sentinel://:secret@h1/main/x",
            "redis+cluster://:secret@h1,h2/1",
            "redis://:secret@h?wait_replicas=all",
            "redis://:secret@h?wait_replica=1",
            "redis://:secret@h/0?bogus=1",
            "unix:///run/redis.sock?bd=2",
            "redis+cluster://:secret@h1,h2?Wait_replicas=1",
            "redis://:secret@h?wait_replicas=1&wait_timeout_ms=0",
        ] {
            let said = parse(url).unwrap_err().to_string();
            assert!(
                said.contains("redis://") && !said.contains("secret"),
                "{url}: {said}"
            );
        }
    }

    #[test]
    fn certificates_need_tls() {
        let tls = TlsFiles {
            ca: Some("ca.pem".into()),
            ..TlsFiles::default()
        };
        for url in ["redis://h", "redis+sentinel://h/main", "unix:///s"] {
            let error = Target::parse(url, tls.clone()).unwrap_err();
            assert_eq!(error, TargetError::TlsWithoutUrl);
        }
        assert!(Target::parse("rediss+cluster://h", tls).is_ok());
    }
}
