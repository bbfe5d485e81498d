//! Implementations of Bananas' clients. Their records differ in the order of fields, in blanks and in escapes, and
//! they push jobs to different lists.

use std::fmt::Write as _;
use std::str::FromStr;

use crate::keys::bananas::BananasKeys;
use crate::name::RoutingKey;
use crate::route::Priority;

/// The client implementation whose format Meshwork writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ClientVariant {
    /// The current client in Go (005d22f): jobs of the route `default` are pushed to plain lists.
    #[default]
    Go,
    /// The client in Go with routing (53fa752): all jobs are pushed to routed lists.
    GoRouted,
    /// The client in TypeScript: all jobs are pushed to plain lists.
    TypeScript,
    /// The client in Python: all jobs are pushed to plain lists.
    Python,
}

/// An unknown client implementation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no make of Bananas: go, go-routed, typescript or python")]
pub struct UnknownVariant(String);

impl ClientVariant {
    /// All implementations.
    pub const ALL: [Self; 4] = [Self::Go, Self::GoRouted, Self::TypeScript, Self::Python];

    /// Name of the implementation.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Go => "go",
            Self::GoRouted => "go-routed",
            Self::TypeScript => "typescript",
            Self::Python => "python",
        }
    }

    /// Returns the list to which this implementation pushes a job.
    #[must_use]
    pub fn list(self, keys: &BananasKeys, route: &RoutingKey, priority: Priority) -> String {
        match self {
            Self::Go if route.is_default() => keys.plain(priority),
            Self::Go | Self::GoRouted => keys.routed(route, priority),
            Self::TypeScript | Self::Python => keys.plain(priority),
        }
    }

    /// Returns whether fields without a value are written too, and the route last.
    pub(super) const fn writes_all(self) -> bool {
        matches!(self, Self::TypeScript | Self::Python)
    }

    /// Returns the blank after a colon or a comma.
    pub(super) const fn blank(self) -> &'static str {
        match self {
            Self::Python => " ",
            _ => "",
        }
    }

    /// Rewrites blanks and escapes of a JSON text in the format of this implementation. All other bytes stay.
    pub(super) fn spell(self, json: &str) -> String {
        let mut out = String::with_capacity(json.len());
        let (mut within, mut escaped) = (false, false);
        for c in json.chars() {
            match c {
                _ if escaped => {
                    escaped = false;
                    out.push(c);
                }
                '"' => {
                    within = !within;
                    out.push(c);
                }
                '\\' => {
                    escaped = true;
                    out.push(c);
                }
                _ if within => self.spell_char(c, &mut out),
                ',' | ':' => {
                    out.push(c);
                    out.push_str(self.blank());
                }
                _ if c.is_ascii_whitespace() => {}
                _ => out.push(c),
            }
        }
        out
    }

    fn spell_char(self, c: char, out: &mut String) {
        let escape = match self {
            Self::Go | Self::GoRouted => matches!(c, '<' | '>' | '&' | '\u{2028}' | '\u{2029}'),
            Self::TypeScript => false,
            Self::Python => !c.is_ascii(),
        };
        if !escape {
            return out.push(c);
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
}

impl FromStr for ClientVariant {
    type Err = UnknownVariant;

    fn from_str(text: &str) -> Result<Self, UnknownVariant> {
        let found = Self::ALL.into_iter().find(|peer| peer.as_str() == text);
        found.ok_or_else(|| UnknownVariant(text.to_owned()))
    }
}

impl std::fmt::Display for ClientVariant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_make_has_its_own_spelling() {
        let json = "{ \"a<\" : [1,\"ü😀\\n\\\"\", 1.50],\n\"b\":{}}";
        let spelt = ClientVariant::ALL.map(|peer| peer.spell(json));
        assert_eq!(spelt[0], "{\"a\\u003c\":[1,\"ü😀\\n\\\"\",1.50],\"b\":{}}");
        assert_eq!(spelt[1], spelt[0]);
        assert_eq!(spelt[2], "{\"a<\":[1,\"ü😀\\n\\\"\",1.50],\"b\":{}}");
        assert_eq!(
            spelt[3],
            "{\"a<\": [1, \"\\u00fc\\ud83d\\ude00\\n\\\"\", 1.50], \"b\": {}}"
        );
    }

    #[test]
    fn each_make_pushes_to_its_own_list() {
        let keys = BananasKeys::default();
        let list = |peer: ClientVariant, route: &str| {
            peer.list(&keys, &route.parse().unwrap(), Priority::Normal)
        };
        assert_eq!(list(ClientVariant::Go, "default"), "bananas:queue:normal");
        assert_eq!(
            list(ClientVariant::Go, "gpu"),
            "bananas:route:gpu:queue:normal"
        );
        let routed = list(ClientVariant::GoRouted, "default");
        assert_eq!(routed, "bananas:route:default:queue:normal");
        assert_eq!(list(ClientVariant::Python, "gpu"), "bananas:queue:normal");
        assert_eq!(
            list(ClientVariant::TypeScript, "default"),
            "bananas:queue:normal"
        );
    }

    #[test]
    fn makes_are_read_by_their_names() {
        for peer in ClientVariant::ALL {
            assert_eq!(peer.to_string().parse(), Ok(peer));
        }
        let error = "rust".parse::<ClientVariant>().unwrap_err().to_string();
        assert!(error.contains("rust") && error.contains("go-routed"));
    }
}
