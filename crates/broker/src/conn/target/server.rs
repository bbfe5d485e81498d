//! URLs of servers: one, several behind Sentinel, or the nodes of a cluster.

use std::fmt;
use std::io;
use std::time::Duration;

use redis::io::tcp::TcpSettings;
use redis::io::tcp::socket2::{SockRef, TcpKeepalive};
use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisConnectionInfo};
use tokio::net::TcpStream;

use super::{TargetError, TlsFiles};
use crate::WaitReplicas;

/// A server, or several that have the same data.
#[derive(Clone)]
pub struct Server {
    pub(crate) kind: Kind,
    /// The server, the sentinels, or nodes of the cluster; at least one.
    pub(crate) nodes: Vec<ConnectionAddr>,
    pub(crate) login: RedisConnectionInfo,
    pub(crate) tls: TlsFiles,
    pub(crate) acknowledge: Option<WaitReplicas>,
}

/// Security of the connection to a server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Security {
    /// True if the connection does not leave this host.
    pub(crate) local: bool,
    /// True if a password is required.
    pub(crate) password: bool,
    /// True if it uses TLS.
    pub(crate) encrypted: bool,
}

/// The method to find the server that has the data.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    /// The server in the URL has it.
    Single,
    /// Sentinels know it.
    Sentinel {
        /// Name of the service at the sentinels.
        service: String,
        /// Login of the sentinels.
        login: RedisConnectionInfo,
    },
    /// Any node of a cluster knows it.
    Cluster,
}

/// A scheme, its kind, and the equivalent scheme of the `redis` crate for one node.
const SCHEMES: [(&str, Shape, &str); 15] = [
    ("redis", Shape::Single, "redis"),
    ("valkey", Shape::Single, "redis"),
    ("rediss", Shape::Single, "rediss"),
    ("valkeys", Shape::Single, "rediss"),
    ("unix", Shape::Socket, "unix"),
    ("redis+unix", Shape::Socket, "unix"),
    ("valkey+unix", Shape::Socket, "unix"),
    ("redis+sentinel", Shape::Sentinel, "redis"),
    ("redis-sentinel", Shape::Sentinel, "redis"),
    ("rediss+sentinel", Shape::Sentinel, "rediss"),
    ("rediss-sentinel", Shape::Sentinel, "rediss"),
    ("redis+cluster", Shape::Cluster, "redis"),
    ("redis-cluster", Shape::Cluster, "redis"),
    ("rediss+cluster", Shape::Cluster, "rediss"),
    ("rediss-cluster", Shape::Cluster, "rediss"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Single,
    Socket,
    Sentinel,
    Cluster,
}

/// Default port of sentinels.
const SENTINEL_PORT: u16 = 26379;

/// Default timeout for confirmations of replicas.
const WAIT_TIMEOUT: Duration = Duration::from_secs(1);

/// Idle time after which keepalive probes begin, and the interval between them.
const ALIVE_AFTER: Duration = Duration::from_secs(10);
const ALIVE_AGAIN: Duration = Duration::from_secs(5);
/// Time without confirmation of sent data after which the connection counts as broken.
#[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
const UNHEARD: Duration = Duration::from_secs(30);

/// The parts of a URL.
struct Parts<'a> {
    /// The login with its `@`, or empty.
    login: &'a str,
    hosts: Vec<&'a str>,
    /// The path without the slash.
    path: &'a str,
    /// The rest with its `?` or `#`, or empty.
    rest: &'a str,
}

impl<'a> Parts<'a> {
    fn of(text: &'a str) -> Self {
        let (before, rest) = text.split_at(text.find(['?', '#']).unwrap_or(text.len()));
        let (authority, path) = before.split_once('/').unwrap_or((before, ""));
        let hosts_at = authority.rfind('@').map_or(0, |at| at + 1);
        let (login, hosts) = authority.split_at(hosts_at);
        Self {
            login,
            hosts: hosts.split(',').collect(),
            path: path.trim_end_matches('/'),
            rest,
        }
    }

    /// Parses one node with the `redis` crate.
    fn node(&self, scheme: &str, host: &str, db: &str) -> Result<ConnectionInfo, TargetError> {
        let Self { login, rest, .. } = self;
        read(&format!("{scheme}://{login}{host}/{db}{rest}"))
    }
}

fn read(url: &str) -> Result<ConnectionInfo, TargetError> {
    url.into_connection_info()
        .map_err(|e| TargetError::Url(e.detail().unwrap_or("it cannot be read").to_owned()))
}

impl Server {
    pub(super) fn parse(url: &str, tls: TlsFiles) -> Result<Self, TargetError> {
        let (scheme, text) = url
            .split_once("://")
            .ok_or_else(|| TargetError::Url("it has no scheme".to_owned()))?;
        let known = SCHEMES.iter().find(|known| known.0 == scheme);
        let (_, shape, base) =
            known.ok_or_else(|| TargetError::Url(format!("`{scheme}` is not its scheme")))?;
        if *base != "rediss" && tls != TlsFiles::default() {
            return Err(TargetError::TlsWithoutUrl);
        }
        let parts = Parts::of(text);
        let options = Options::of(parts.rest)?;
        let shape = match shape {
            Shape::Single if parts.hosts.len() > 1 => Shape::Cluster,
            shape => *shape,
        };
        let (kind, infos) = match shape {
            Shape::Socket => (Kind::Single, vec![read(&format!("{base}://{text}"))?]),
            Shape::Single => {
                let one = parts.node(base, parts.hosts[0], parts.path)?;
                (Kind::Single, vec![one])
            }
            Shape::Sentinel => sentinel(&parts, base, &options)?,
            Shape::Cluster => {
                if !matches!(parts.path, "" | "0") {
                    let only = "a cluster has only database 0".to_owned();
                    return Err(TargetError::Url(only));
                }
                let nodes = parts.hosts.iter().map(|host| parts.node(base, host, ""));
                (Kind::Cluster, nodes.collect::<Result<_, _>>()?)
            }
        };
        Ok(Self {
            kind,
            login: infos[0].redis_settings().clone(),
            nodes: infos.iter().map(|info| info.addr().clone()).collect(),
            tls,
            acknowledge: options.acknowledge()?,
        })
    }

    /// Returns the server as text, without secrets.
    pub(crate) fn place(&self) -> String {
        let nodes: Vec<_> = self.nodes.iter().map(ToString::to_string).collect();
        let nodes = nodes.join(",");
        match &self.kind {
            Kind::Single => nodes,
            Kind::Sentinel { service, .. } => format!("`{service}` of the sentinels {nodes}"),
            Kind::Cluster => format!("the cluster at {nodes}"),
        }
    }

    /// Returns the security of the connection.
    pub(crate) fn security(&self) -> Security {
        let local = |node: &ConnectionAddr| match node {
            ConnectionAddr::Tcp(host, _) | ConnectionAddr::TcpTls { host, .. } => {
                let ip = host.parse::<std::net::IpAddr>();
                host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
            }
            _ => true,
        };
        Security {
            local: self.nodes.iter().all(local),
            password: self.login.password().is_some(),
            encrypted: matches!(self.nodes[0], ConnectionAddr::TcpTls { .. }),
        }
    }

    /// Returns the settings of every connection: small requests are sent at once, and a vanished host is noticed,
    /// even by blocked commands.
    pub(crate) fn tcp() -> TcpSettings {
        let settings = TcpSettings::default()
            .set_nodelay(true)
            .set_keepalive(keepalive());
        #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
        let settings = settings.set_user_timeout(UNHEARD);
        settings
    }

    /// Applies the same settings to a socket that the redis crate did not create.
    pub(crate) fn prepare(socket: &TcpStream) -> io::Result<()> {
        socket.set_nodelay(true)?;
        let socket = SockRef::from(socket);
        socket.set_tcp_keepalive(&keepalive())?;
        #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
        socket.set_tcp_user_timeout(Some(UNHEARD))?;
        Ok(())
    }
}

fn keepalive() -> TcpKeepalive {
    TcpKeepalive::new()
        .with_time(ALIVE_AFTER)
        .with_interval(ALIVE_AGAIN)
}

fn sentinel(
    parts: &Parts<'_>,
    base: &str,
    options: &Options,
) -> Result<(Kind, Vec<ConnectionInfo>), TargetError> {
    let (service, db) = parts.path.split_once('/').unwrap_or((parts.path, ""));
    if service.is_empty() {
        let missing = "it does not name the service of the sentinels";
        return Err(TargetError::Url(missing.to_owned()));
    }
    let with_port = |host: &str| {
        let after_brackets = host.rsplit(']').next().unwrap_or(host);
        if after_brackets.contains(':') {
            host.to_owned()
        } else {
            format!("{host}:{SENTINEL_PORT}")
        }
    };
    let infos = parts
        .hosts
        .iter()
        .map(|h| parts.node(base, &with_port(h), db));
    let mut login = RedisConnectionInfo::default();
    if let Some(name) = &options.sentinel_username {
        login = login.set_username(name);
    }
    if let Some(password) = &options.sentinel_password {
        login = login.set_password(password);
    }
    let service = service.to_owned();
    let kind = Kind::Sentinel { service, login };
    Ok((kind, infos.collect::<Result<_, _>>()?))
}

/// Names of Meshwork's own options in the URL's query.
const OWN: [&str; 4] = [
    "wait_replicas",
    "wait_timeout_ms",
    "sentinel_username",
    "sentinel_password",
];
/// Options that the redis crate reads.
const OF_REDIS: [&str; 6] = ["db", "user", "username", "pass", "password", "protocol"];

/// Meshwork's own options in the URL's query.
#[derive(Default)]
struct Options {
    sentinel_username: Option<String>,
    sentinel_password: Option<String>,
    wait_replicas: Option<String>,
    wait_timeout_ms: Option<String>,
}

impl Options {
    fn of(rest: &str) -> Result<Self, TargetError> {
        let mut options = Self::default();
        // Only the part after the host is needed.
        let url = redis::parse_redis_url(&format!("redis://h/{rest}"))
            .ok_or_else(|| TargetError::Url("its options cannot be read".to_owned()))?;
        for (name, value) in url.query_pairs() {
            let place = match &*name {
                "sentinel_username" => &mut options.sentinel_username,
                "sentinel_password" => &mut options.sentinel_password,
                "wait_replicas" => &mut options.wait_replicas,
                "wait_timeout_ms" => &mut options.wait_timeout_ms,
                name if OF_REDIS.contains(&name) => continue,
                // One that is ignored may be a typing error of one that protects data.
                name => {
                    let own = OWN.join(", ");
                    let what = format!("its option {name} is not known; there are {own}");
                    return Err(TargetError::Url(what));
                }
            };
            *place = Some(value.into_owned());
        }
        Ok(options)
    }

    fn acknowledge(&self) -> Result<Option<WaitReplicas>, TargetError> {
        let number = |name: &str, text: &Option<String>| match text {
            Some(text) => text.parse::<u32>().map(Some).map_err(|_| {
                TargetError::Url(format!("its option {name} is `{text}`, which is no number"))
            }),
            None => Ok(None),
        };
        let timeout = number("wait_timeout_ms", &self.wait_timeout_ms)?;
        if timeout == Some(0) {
            let forever = "its option wait_timeout_ms is 0, which would wait for ever";
            return Err(TargetError::Url(forever.to_owned()));
        }
        let replicas = number("wait_replicas", &self.wait_replicas)?.unwrap_or(0);
        let timeout = timeout.map_or(WAIT_TIMEOUT, |ms| Duration::from_millis(ms.into()));
        Ok((replicas > 0).then_some(WaitReplicas { replicas, timeout }))
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Server").field(&self.place()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Server {
        Server::parse(url, TlsFiles::default()).unwrap()
    }

    #[test]
    fn sentinels_and_their_service() {
        let url = "redis+sentinel://ann:secret@h1:26380,h2,[::1]:7/main/3\
                   ?sentinel_username=sue&sentinel_password=p%40ss";
        let server = parse(url);
        let place = "`main` of the sentinels h1:26380,h2:26379,::1:7";
        assert_eq!(server.place(), place);
        assert_eq!(server.login.db(), 3);
        assert_eq!(server.login.username(), Some("ann"));
        assert_eq!(server.login.password(), Some("secret"));
        let Kind::Sentinel { login, .. } = &server.kind else {
            panic!("{server:?}");
        };
        assert_eq!(login.username(), Some("sue"));
        assert_eq!(login.password(), Some("p@ss"));
        assert_eq!(login.db(), 0);
        assert!(!format!("{server:?}").contains("ss"), "{server:?}");
    }

    #[test]
    fn nodes_of_a_cluster() {
        for url in [
            "redis+cluster://u:p@h1:7000,h2",
            "redis://u:p@h1:7000,h2/0",
            "rediss+cluster://u:p@h1:7000,h2",
        ] {
            let server = parse(url);
            assert!(matches!(server.kind, Kind::Cluster));
            assert_eq!(server.place(), "the cluster at h1:7000,h2:6379");
            assert_eq!(server.login.password(), Some("p"));
            let tls = matches!(server.nodes[1], ConnectionAddr::TcpTls { .. });
            assert_eq!(tls, url.starts_with("rediss"));
        }
    }

    #[test]
    fn a_host_that_is_gone_is_noticed() {
        let settings = Server::tcp();
        assert!(settings.nodelay() && settings.keepalive().is_some());
        #[cfg(target_os = "linux")]
        assert!(settings.user_timeout() > Some(ALIVE_AFTER + ALIVE_AGAIN));
    }

    #[test]
    fn replicas_that_must_confirm() {
        let parsed = |rest: &str| parse(&format!("redis://h/1{rest}")).acknowledge;
        assert_eq!(parsed(""), None);
        assert_eq!(parsed("?wait_timeout_ms=20"), None);
        let one = parsed("?wait_replicas=1&wait_timeout_ms=250").unwrap();
        assert_eq!((one.replicas, one.timeout.as_millis()), (1, 250));
        assert_eq!(parsed("?wait_replicas=2").unwrap().timeout, WAIT_TIMEOUT);
    }
}
