//! Trusted proxies, and the address of a client behind them: the rightmost one in `Forwarded` (RFC 7239) or
//! `X-Forwarded-For` that is not of a trusted proxy. What stands left of it may be invented.

use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::header::FORWARDED;
use ipnet::IpNet;

/// The header that most proxies set.
const X_FORWARDED_FOR: &str = "x-forwarded-for";

/// A network of proxies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network(IpNet);

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = "give a network or an address, as 10.0.0.0/8, 192.0.2.7 or 2001:db8::/32";
        let host = || text.parse::<IpAddr>().ok().map(IpNet::from);
        let network = text.parse().ok().or_else(host);
        network.map(Self).ok_or_else(|| bad.to_owned())
    }
}

/// Networks whose proxies are believed.
#[derive(Debug, Clone)]
pub struct Proxies(Option<Arc<[Network]>>);

/// Addresses of a header, from the client on; `None` for what names no address.
type Hops = Vec<Option<IpAddr>>;

impl Proxies {
    /// Trusts nobody.
    pub const NONE: Self = Self(None);

    /// Trusts these networks.
    #[must_use]
    pub fn new(networks: Vec<Network>) -> Self {
        Self((!networks.is_empty()).then(|| networks.into()))
    }

    /// Returns true for an address of a trusted proxy.
    pub(super) fn trusts(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let mut networks = self.0.iter().flat_map(|networks| networks.iter());
        networks.any(|Network(network)| network.contains(&address))
    }

    /// Returns the client of a request that came from the trusted proxy `peer`. Without a header it is the proxy, and with
    /// two that disagree too: a proxy sets one of them, and passes the other one on as a client has sent it.
    pub(super) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let client = |hops: Option<Hops>| Some(self.rightmost(peer, &hops?));
        let forwarded = client(hops(headers, FORWARDED.as_str(), forwarded));
        let plain = client(hops(headers, X_FORWARDED_FOR, plain));
        match (forwarded, plain) {
            (Some(one), Some(other)) if one != other => peer,
            (one, other) => one.or(other).unwrap_or(peer),
        }
    }

    /// The last address from the right up to the first that is not trusted. The rest is unknown after what is no address.
    fn rightmost(&self, peer: IpAddr, hops: &Hops) -> IpAddr {
        let mut last = peer;
        for hop in hops.iter().rev() {
            let Some(address) = *hop else { break };
            last = address;
            if !self.trusts(address) {
                break;
            }
        }
        last
    }
}

/// Reads all lines of a header; `None` without any. A line that cannot be read is one unknown hop.
fn hops(headers: &HeaderMap, name: &str, parse: fn(&str) -> Option<Hops>) -> Option<Hops> {
    let mut lines = headers.get_all(name).iter().peekable();
    lines.peek()?;
    let parsed = lines.map(|line| line.to_str().ok().and_then(parse));
    Some(parsed.flat_map(|hops| hops.unwrap_or(vec![None])).collect())
}

/// Reads `X-Forwarded-For`: addresses, some proxies add ports.
#[expect(
    clippy::unnecessary_wraps,
    reason = "any text is a list of addresses and others"
)]
fn plain(line: &str) -> Option<Hops> {
    Some(line.split(',').map(|text| node(text.trim())).collect())
}

/// Reads `Forwarded`: elements with pairs, of which `for` names a hop. `None` if the line breaks the format anywhere, since
/// a quote that a client has left open hides what its proxy has added.
fn forwarded(line: &str) -> Option<Hops> {
    let (mut hops, mut rest) = (Vec::new(), line.trim());
    loop {
        let mut hop = None;
        loop {
            let (name, after) = rest.split_once('=')?;
            let (value, after) = value(after)?;
            match name.trim().to_ascii_lowercase().as_str() {
                "for" if hop.is_none() => hop = Some(node(&value)),
                "by" | "host" | "proto" => {}
                name if !name.is_empty() && name != "for" && is_token(name) => {}
                _ => return None,
            }
            rest = after.trim_start();
            match rest.strip_prefix(';') {
                Some(after) => rest = after,
                None => break,
            }
        }
        hops.push(hop.flatten());
        match rest.strip_prefix(',') {
            Some(after) => rest = after,
            None if rest.is_empty() => return Some(hops),
            None => return None,
        }
    }
}

fn is_token(text: &str) -> bool {
    let is_in = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    text.bytes().all(is_in)
}

/// Splits a value off, in quotes or without them.
fn value(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', ';', ' ', '\t']).unwrap_or(text.len());
        let (value, rest) = text.split_at(end);
        return (!value.contains('"')).then(|| (value.to_owned(), rest));
    };
    let (mut value, mut chars) = (String::new(), quoted.chars());
    loop {
        match chars.next()? {
            '"' => return Some((value, chars.as_str())),
            '\\' => value.push(chars.next()?),
            other => value.push(other),
        }
    }
}

/// Reads an address with or without a port. `unknown` and invented names (`_hidden`) are none.
fn node(text: &str) -> Option<IpAddr> {
    let host = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.0,
        // An IPv6 address has more colons.
        None if text.matches(':').count() == 1 => text.split_once(':')?.0,
        None => text,
    };
    let address: IpAddr = host.parse().ok()?;
    Some(address.to_canonical())
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};
    use proptest::prelude::*;

    use super::*;

    const PROXY: &str = "10.0.0.1";

    fn client(headers: &[(&'static str, &[u8])]) -> String {
        let networks = ["10.0.0.0/8", "2001:db8:1::/48"].map(|it| it.parse().unwrap());
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let value = HeaderValue::from_bytes(value).unwrap();
            map.append(HeaderName::from_static(name), value);
        }
        let proxies = Proxies::new(networks.to_vec());
        proxies.client(PROXY.parse().unwrap(), &map).to_string()
    }

    #[test]
    fn the_rightmost_address_that_is_not_trusted_is_the_client() {
        for (line, expected) in [
            ("203.0.113.9", "203.0.113.9"),
            ("203.0.113.9:4711", "203.0.113.9"),
            ("2001:db8:2::9", "2001:db8:2::9"),
            ("[2001:db8:2::9]:80", "2001:db8:2::9"),
            ("::ffff:203.0.113.9", "203.0.113.9"),
            // The client has sent the first one.
            ("198.51.100.7, 203.0.113.9", "203.0.113.9"),
            ("198.51.100.7, 203.0.113.9, 10.9.9.9", "203.0.113.9"),
            ("203.0.113.9, 2001:db8:1::7,10.2.3.4", "203.0.113.9"),
            ("no address, 203.0.113.9", "203.0.113.9"),
            // All are proxies, or the rest is unknown.
            ("10.0.0.7, 10.0.0.8", "10.0.0.7"),
            ("no address, 10.0.0.8", "10.0.0.8"),
            ("203.0.113.9, unknown", PROXY),
            ("203.0.113.9,", PROXY),
            ("", PROXY),
            ("203.0.113.999", PROXY),
            ("fe80::1%eth0", PROXY),
        ] {
            assert_eq!(
                client(&[("x-forwarded-for", line.as_bytes())]),
                expected,
                "{line:?}"
            );
        }
        let two: [(_, &[u8]); 2] = [
            ("x-forwarded-for", b"198.51.100.7"),
            ("x-forwarded-for", b"203.0.113.9, 10.0.0.2"),
        ];
        assert_eq!(client(&two), "203.0.113.9");
        assert_eq!(client(&[("x-forwarded-for", b"203.0.113.9, \xff")]), PROXY);
    }

    #[test]
    fn forwarded_is_read_as_the_standard_says() {
        for (line, expected) in [
            ("for=203.0.113.9", "203.0.113.9"),
            (
                "For=\"203.0.113.9:4711\";proto=http;by=10.0.0.1",
                "203.0.113.9",
            ),
            (
                "proto=https; for=\"[2001:db8:2::17]:4711\"",
                "2001:db8:2::17",
            ),
            ("for=198.51.100.7, for=203.0.113.9", "203.0.113.9"),
            (
                "for=203.0.113.9;ext=\"a\\\",b;c\" , for=10.0.0.3",
                "203.0.113.9",
            ),
            ("for=unknown, for=203.0.113.9", "203.0.113.9"),
            ("for=203.0.113.9, for=_hidden, for=10.0.0.2", "10.0.0.2"),
            ("for=203.0.113.9, proto=http", PROXY),
            // A quote that is left open, two names, no pairs.
            ("for=\"198.51.100.7, for=203.0.113.9", PROXY),
            ("for=198.51.100.7\", for=\"203.0.113.9\"", PROXY),
            ("for=203.0.113.9;for=198.51.100.7", PROXY),
            ("203.0.113.9", PROXY),
            ("for=203.0.113.9;", PROXY),
            ("for=203.0.113.9 for=198.51.100.7", PROXY),
            ("", PROXY),
        ] {
            assert_eq!(
                client(&[("forwarded", line.as_bytes())]),
                expected,
                "{line:?}"
            );
        }
    }

    #[test]
    fn a_header_that_the_proxy_does_not_set_changes_nothing_for_others() {
        let both = |forwarded: &'static [u8]| {
            client(&[
                ("forwarded", forwarded),
                ("x-forwarded-for", b"203.0.113.9"),
            ])
        };
        assert_eq!(both(b"for=203.0.113.9"), "203.0.113.9");
        assert_eq!(both(b"for=198.51.100.7"), PROXY);
        assert_eq!(both(b"for=\""), PROXY);
        assert_eq!(client(&[]), PROXY);
    }

    proptest! {
        #[test]
        fn what_stands_left_never_changes_the_client(
            junk in "[ -~]{0,40}", x in any::<bool>(), apart in any::<bool>()
        ) {
            let (name, added) = match x {
                true => ("x-forwarded-for", "203.0.113.9"),
                false => ("forwarded", "for=203.0.113.9"),
            };
            let joined = format!("{junk}, {added}");
            let found = match apart {
                true => client(&[(name, junk.as_bytes()), (name, added.as_bytes())]),
                false => client(&[(name, joined.as_bytes())]),
            };
            prop_assert!(["203.0.113.9", PROXY].contains(&found.as_str()), "{}", found);
            prop_assert!(found != PROXY || (!x && !apart));
        }
    }
}
