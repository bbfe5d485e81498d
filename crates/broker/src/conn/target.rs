//! Where the data is: what `REDIS_URL` and its like may say. No connection is made here.

use std::fmt;
use std::path::PathBuf;

use redis::{ClientTlsConfig, ConnectionInfo, IntoConnectionInfo, TlsCertificates};

/// Where the data is.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Target {
    /// A Redis or Valkey server.
    Server(Box<Server>),
    /// A data directory with the embedded engine.
    Directory(PathBuf),
}

/// One server.
#[derive(Clone)]
pub struct Server {
    info: ConnectionInfo,
    tls: TlsFiles,
}

/// PEM files for a `rediss` connection, as redis-cli's `--cacert`, `--cert` and `--key`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// Who signs the server's certificate, where it is none of the system's authorities.
    pub ca: Option<PathBuf>,
    /// The client's certificate.
    pub cert: Option<PathBuf>,
    /// The key of the client's certificate.
    pub key: Option<PathBuf>,
}

/// Why a target cannot be used. No message repeats the URL: it may hold a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// Not a URL of a server.
    #[error(
        "the Redis URL is not valid: {0}; write redis://[user:password@]host[:port][/database], \
         rediss://… for TLS, or unix:///path/to/socket[?db=database]"
    )]
    Url(String),
    /// A kind of server that this version does not know how to follow.
    #[error("{0} is not supported yet: give the URL of a single server, redis://host:port")]
    Unsupported(&'static str),
    /// TLS files with a URL that does not use TLS.
    #[error("certificates were given, but the URL does not ask for TLS: begin it with rediss://")]
    TlsWithoutUrl,
    /// Half of a client certificate.
    #[error("a client certificate needs both its file and its key: the {0} is missing")]
    HalfCertificate(&'static str),
    /// A PEM file that cannot be read.
    #[error("cannot read the {what} {path}: {reason}", path = path.display())]
    Pem {
        /// Which file.
        what: &'static str,
        /// Its path.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
}

const SCHEMES: [&str; 5] = ["redis", "rediss", "unix", "redis+unix", "valkey"];

impl Target {
    /// Reads a URL.
    ///
    /// # Errors
    /// If it names no server that can be used.
    pub fn parse(url: &str, tls: TlsFiles) -> Result<Self, TargetError> {
        let (scheme, rest) = url
            .split_once("://")
            .ok_or_else(|| TargetError::Url("it has no scheme".to_owned()))?;
        if scheme.contains("sentinel") {
            return Err(TargetError::Unsupported("Sentinel"));
        }
        if scheme.contains("cluster") || rest.split(['/', '?']).next().is_some_and(has_many_hosts) {
            return Err(TargetError::Unsupported("Redis Cluster"));
        }
        if !SCHEMES.contains(&scheme) {
            return Err(TargetError::Url(format!("`{scheme}` is not its scheme")));
        }
        let with_tls = scheme == "rediss";
        if !with_tls && tls != TlsFiles::default() {
            return Err(TargetError::TlsWithoutUrl);
        }
        let info = url
            .into_connection_info()
            .map_err(|e| TargetError::Url(e.detail().unwrap_or("it cannot be read").to_owned()))?;
        let tcp = info.tcp_settings().clone().set_nodelay(true);
        let info = info.set_tcp_settings(tcp);
        Ok(Self::Server(Box::new(Server { info, tls })))
    }

    /// The target in words for people, without secrets.
    #[must_use]
    pub fn place(&self) -> String {
        match self {
            Self::Server(server) => server.info.addr().to_string(),
            Self::Directory(path) => format!("the data directory {}", path.display()),
        }
    }
}

fn has_many_hosts(authority: &str) -> bool {
    authority
        .rsplit('@')
        .next()
        .is_some_and(|hosts| hosts.contains(','))
}

impl Server {
    /// A client for the server, its certificates read.
    pub(crate) fn client(&self) -> Result<redis::Client, TargetError> {
        // The redis crate leaves the choice of cryptography open and panics where nobody made it. A choice
        // that the program made stands.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let invalid = |e: redis::RedisError| TargetError::Url(e.to_string());
        if self.tls == TlsFiles::default() {
            return redis::Client::open(self.info.clone()).map_err(invalid);
        }
        let client_tls = match (&self.tls.cert, &self.tls.key) {
            (Some(cert), Some(key)) => Some(ClientTlsConfig {
                client_cert: pem("client certificate", cert)?,
                client_key: pem("client key", key)?,
            }),
            (None, None) => None,
            (Some(_), None) => return Err(TargetError::HalfCertificate("key")),
            (None, Some(_)) => return Err(TargetError::HalfCertificate("certificate")),
        };
        let root_cert = self
            .tls
            .ca
            .as_ref()
            .map(|path| pem("CA certificate", path))
            .transpose()?;
        let certificates = TlsCertificates {
            client_tls,
            root_cert,
        };
        redis::Client::build_with_tls(self.info.clone(), certificates)
            .map_err(|e| TargetError::Url(format!("its certificates cannot be used ({e})")))
    }
}

fn pem(what: &'static str, path: &PathBuf) -> Result<Vec<u8>, TargetError> {
    std::fs::read(path).map_err(|e| TargetError::Pem {
        what,
        path: path.clone(),
        reason: e.to_string(),
    })
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Server")
            .field(&self.info.addr().to_string())
            .finish()
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
        ] {
            let target = parse(url).unwrap();
            assert!(
                !format!("{target:?} {}", target.place()).contains("secret"),
                "{url}"
            );
        }
    }

    #[test]
    fn what_is_not_supported_yet_says_so() {
        for url in ["redis+sentinel://h:26379/main", "redis-sentinel://h/main"] {
            assert_eq!(
                parse(url).unwrap_err(),
                TargetError::Unsupported("Sentinel")
            );
        }
        for url in ["redis+cluster://h:7000", "redis://u:p@h1:7000,h2:7001/0"] {
            assert_eq!(
                parse(url).unwrap_err(),
                TargetError::Unsupported("Redis Cluster")
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
        ] {
            let said = parse(url).unwrap_err().to_string();
            assert!(
                said.contains("redis://") && !said.contains("secret"),
                "{url}: {said}"
            );
        }
    }

    #[test]
    fn certificates_need_tls_and_each_other() {
        let tls = TlsFiles {
            cert: Some("c.pem".into()),
            ..TlsFiles::default()
        };
        assert_eq!(
            Target::parse("redis://h", tls.clone()).unwrap_err(),
            TargetError::TlsWithoutUrl
        );
        let Ok(Target::Server(server)) = Target::parse("rediss://h", tls) else {
            panic!("a server was named");
        };
        assert_eq!(
            server.client().unwrap_err(),
            TargetError::HalfCertificate("key")
        );
    }
}
