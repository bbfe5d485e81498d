//! The `Origin` check. A web page of another host that sends requests here (CSRF) gives its own origin, so only pages of
//! this server and those that the operator allows pass.

use std::str::FromStr;

use axum::http::header::ORIGIN;
use axum::http::{HeaderMap, HeaderValue, StatusCode};

use super::Refusal;
use super::host::{Authority, default_port};

/// Header by which browsers say where a request comes from. No script can set it.
pub(crate) const FETCH_SITE: &str = "sec-fetch-site";

/// The origin of a web page; its port is always known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    scheme: String,
    authority: Authority,
}

impl FromStr for Origin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || {
            "give an origin as browsers write it: https://app.example.org, with a port if it has one".to_owned()
        };
        let (scheme, authority) = text.split_once("://").ok_or_else(bad)?;
        let scheme = scheme.to_ascii_lowercase();
        let mut authority: Authority = authority.parse().map_err(|_| bad())?;
        authority.port = authority.port.or(default_port(&scheme));
        authority.port.ok_or_else(bad)?;
        Ok(Self { scheme, authority })
    }
}

impl Origin {
    /// Returns true for a page that this host served.
    fn is_of(&self, host: &Authority) -> bool {
        let port = host.port.or(default_port(&self.scheme));
        self.authority.host == host.host && self.authority.port == port
    }
}

/// Returns the origin of a page of another host that is `allowed` and may read the response, or `None` for a page of the
/// host that the request names and for a client that is no page.
///
/// # Errors
/// If the request gives another origin, or two.
pub(super) fn check(
    allowed: &[Origin],
    headers: &HeaderMap,
    host: Option<&Authority>,
) -> Result<Option<HeaderValue>, Refusal> {
    let mut values = headers.get_all(ORIGIN).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let (site, second) = (headers.get(FETCH_SITE), values.next());
    // A page that sends no referrer hides its origin too, but its browser says that it is one of this host.
    if value == "null" && second.is_none() && site.is_some_and(|site| site == "same-origin") {
        return Ok(None);
    }
    let origin = value.to_str().ok().and_then(|it| it.parse::<Origin>().ok());
    let origin = origin
        .filter(|_| second.is_none())
        .ok_or_else(not_allowed)?;
    match host.is_some_and(|host| origin.is_of(host)) {
        true => Ok(None),
        false if allowed.contains(&origin) => Ok(Some(value.clone())),
        false => Err(not_allowed()),
    }
}

fn not_allowed() -> Refusal {
    let message =
        "web pages of this origin may not call: start the server with --allow-origin to let them";
    Refusal::new(StatusCode::FORBIDDEN, "ORIGIN_NOT_ALLOWED", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hidden_origin_is_of_the_host_if_the_browser_says_so() {
        let host = "localhost:8080".parse().unwrap();
        let passes = |origin: &str, site: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            headers.insert(ORIGIN, origin.parse().unwrap());
            if let Some(site) = site {
                headers.insert(FETCH_SITE, HeaderValue::from_static(site));
            }
            check(&[], &headers, Some(&host)).is_ok()
        };
        assert!(passes("null", Some("same-origin")));
        for site in [None, Some("none"), Some("same-site"), Some("cross-site")] {
            assert!(!passes("null", site), "{site:?}");
        }
        assert!(!passes("http://evil.example", Some("same-origin")));
    }

    #[test]
    fn an_origin_is_of_the_host_or_is_not() {
        let is_of = |origin: &str, host: &str| {
            let origin = origin.parse::<Origin>();
            origin.is_ok_and(|origin| origin.is_of(&host.parse().unwrap()))
        };
        for (origin, host) in [
            ("http://localhost:8080", "localhost:8080"),
            ("https://api.example", "api.example"),
            ("http://api.example", "api.example:80"),
            ("HTTPS://Api.Example:443", "api.example."),
            ("http://[::1]:8080", "[0::1]:8080"),
        ] {
            assert!(is_of(origin, host), "{origin} {host}");
        }
        for (origin, host) in [
            ("http://localhost:8081", "localhost:8080"),
            ("https://localhost:8080", "localhost"),
            ("http://api.example", "api.example:443"),
            ("null", "localhost"),
            ("localhost:8080", "localhost:8080"),
            ("http://localhost:8080/", "localhost:8080"),
            ("file://", "localhost"),
        ] {
            assert!(!is_of(origin, host), "{origin} {host}");
        }
    }
}
