//! The `Host` check. A web page that has its own name resolved to this address (DNS rebinding) names that name here, so
//! only names of this server pass.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use axum::http::header::HOST;
use axum::http::request::Parts;
use axum::http::{StatusCode, Version};

use super::Refusal;

/// The longest host name in bytes, as DNS has it.
const MAX_HOST: usize = 253;
/// The port that an HTTP URL need not give.
const HTTP_PORT: u16 = 80;
/// The port that an HTTPS URL need not give.
const HTTPS_PORT: u16 = 443;

/// A host and an optional port, as in `Host`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    pub(super) host: Host,
    pub(super) port: Option<u16>,
}

/// An address, or a name in small letters without the dot that may end it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Host {
    Address(IpAddr),
    Name(String),
}

impl FromStr for Authority {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || {
            "give a host, as api.example.org, 192.0.2.1 or [2001:db8::1], and a port after a colon if only one is meant".to_owned()
        };
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']').ok_or_else(bad)?;
                let address: Ipv6Addr = host.parse().map_err(|_| bad())?;
                (Host::Address(IpAddr::V6(address).to_canonical()), port)
            }
            None => {
                let at = text.find(':').unwrap_or(text.len());
                (Host::named(&text[..at]).ok_or_else(bad)?, &text[at..])
            }
        };
        let port = match port.strip_prefix(':') {
            // An empty port is the default one.
            Some("") => None,
            Some(digits) if digits.bytes().all(|it| it.is_ascii_digit()) => {
                Some(digits.parse().map_err(|_| bad())?)
            }
            None if port.is_empty() => None,
            _ => return Err(bad()),
        };
        Ok(Self { host, port })
    }
}

impl std::fmt::Display for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.host {
            Host::Address(IpAddr::V6(address)) => write!(f, "[{address}]")?,
            Host::Address(address) => write!(f, "{address}")?,
            Host::Name(name) => f.write_str(name)?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

impl Host {
    fn named(text: &str) -> Option<Self> {
        let name = text.strip_suffix('.').unwrap_or(text);
        if let Ok(address) = name.parse() {
            return Some(Self::Address(address));
        }
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let sound = !name.is_empty() && name.len() <= MAX_HOST && name.bytes().all(fits);
        sound.then(|| Self::Name(name.to_ascii_lowercase()))
    }

    fn is_loopback(&self) -> bool {
        match self {
            Self::Address(address) => address.is_loopback(),
            Self::Name(name) => name == "localhost",
        }
    }
}

/// The port that a URL of this scheme need not give.
pub(super) fn default_port(scheme: &str) -> Option<u16> {
    match scheme {
        "http" => Some(HTTP_PORT),
        "https" => Some(HTTPS_PORT),
        _ => None,
    }
}

/// Returns the host that a request names, or `None` for one that needs none and names none.
///
/// A loopback name and the address `local` that the client connected to pass with the port that is listened on; the hosts
/// in `allowed` pass too. A request in HTTP/1.0 may name no host, if `optional`: a probe of a load balancer is one.
///
/// # Errors
/// If the request names no host, two, or one that is not allowed.
pub(super) fn check(
    allowed: &[Authority],
    head: &Parts,
    local: SocketAddr,
    optional: bool,
) -> Result<Option<Authority>, Refusal> {
    let given = header(head)?;
    if given.is_none() && head.version != Version::HTTP_10 {
        return Err(bad_host());
    }
    // A target in its absolute form names the host too.
    let target = head.uri.authority().map(|it| it.as_str());
    let mut named = None;
    for text in [given, target].into_iter().flatten() {
        let authority: Authority = text.parse().map_err(|_| bad_host())?;
        if !is_own(&authority, local) && !is_among(&authority, allowed) {
            return Err(not_allowed(&authority));
        }
        named = Some(authority);
    }
    match named {
        None if !optional => Err(bad_host()),
        named => Ok(named),
    }
}

fn is_own(named: &Authority, local: SocketAddr) -> bool {
    let address = Host::Address(local.ip().to_canonical());
    let is_local = named.host.is_loopback() || named.host == address;
    is_local && named.port.unwrap_or(HTTP_PORT) == local.port()
}

fn is_among(named: &Authority, allowed: &[Authority]) -> bool {
    let defaults = [Some(HTTP_PORT), Some(HTTPS_PORT)];
    allowed.iter().any(|it| {
        let same_port =
            it.port == named.port || named.port.is_none() && defaults.contains(&it.port);
        it.host == named.host && (it.port.is_none() || same_port)
    })
}

/// The value of the `Host` header, if it is there; it may be there once.
fn header(head: &Parts) -> Result<Option<&str>, Refusal> {
    let mut values = head.headers.get_all(HOST).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let value = value.to_str().ok().filter(|_| values.next().is_none());
    value.map(Some).ok_or_else(bad_host)
}

fn bad_host() -> Refusal {
    let message = "the Host header is missing, repeated or invalid: send one, as host: NAME:PORT";
    Refusal::new(StatusCode::BAD_REQUEST, "BAD_HOST", message)
}

fn not_allowed(host: &Authority) -> Refusal {
    let message = format!(
        "the host {host} is not allowed: ask for the address that the server listens on, or start it with --allow-host {host}"
    );
    Refusal::new(StatusCode::FORBIDDEN, "HOST_NOT_ALLOWED", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(host: &str, local: &str, allowed: &[&str]) -> bool {
        let allowed: Vec<_> = allowed.iter().map(|it| it.parse().unwrap()).collect();
        let host = host.parse::<Authority>();
        host.is_ok_and(|host| is_own(&host, local.parse().unwrap()) || is_among(&host, &allowed))
    }

    #[test]
    fn an_own_name_has_the_port_that_is_listened_on() {
        for host in [
            "localhost:8080",
            "LOCALHOST.:8080",
            "127.0.0.1:8080",
            "127.0.0.1.:8080",
            "127.9.9.9:8080",
            "[::1]:8080",
            "[0:0::1]:8080",
            "[::ffff:127.0.0.1]:8080",
        ] {
            assert!(passes(host, "127.0.0.1:8080", &[]), "{host}");
        }
        for host in [
            "localhost",
            "localhost:80",
            "localhost:08081",
            "a.localhost:8080",
            "localhost..:8080",
            "2130706433:8080",
            "0x7f.1:8080",
            "10.0.0.1:8080",
            "::1:8080",
            "[::1:8080",
            "[::1]8080",
            "[localhost]:8080",
            "localhost:8080:8080",
            "localhost:+8080",
            "user@localhost:8080",
            "localhost:8080/",
            " localhost:8080",
            "",
            ".",
            ":8080",
        ] {
            assert!(!passes(host, "127.0.0.1:8080", &[]), "{host}");
        }
        assert!(
            passes("localhost", "127.0.0.1:80", &[]) && passes("localhost:", "127.0.0.1:80", &[])
        );
        // The address that was connected to, also where the server listens on all.
        assert!(passes("10.0.0.1:8080", "10.0.0.1:8080", &[]));
        assert!(passes("10.0.0.1:8080", "[::ffff:10.0.0.1]:8080", &[]));
        assert!(passes("[2001:db8::1]:8080", "[2001:db8::1]:8080", &[]));
        assert!(!passes("10.0.0.2:8080", "10.0.0.1:8080", &[]));
    }

    #[test]
    fn an_allowed_host_has_any_port_or_its_own() {
        let local = "127.0.0.1:8080";
        for host in ["api.example", "API.EXAMPLE.", "api.example:1"] {
            assert!(passes(host, local, &["Api.Example"]), "{host}");
        }
        assert!(!passes("x.api.example", local, &["api.example"]));
        assert!(passes("api.example:444", local, &["api.example:444"]));
        assert!(!passes("api.example:445", local, &["api.example:444"]));
        assert!(!passes("api.example", local, &["api.example:444"]));
        assert!(passes("api.example", local, &["api.example:443"]));
    }
}
