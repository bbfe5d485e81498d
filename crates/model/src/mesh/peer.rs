//! Names of other nodes on this node.

use std::fmt;
use std::str::FromStr;

/// Greatest length of a name, in bytes.
const MAX_NAME: usize = 32;

/// Name of another node on this node, as in `bob/8`: `a` to `z`, digits, `-` and `_`, with a letter first.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PeerName(String);

/// Error for a text that is no name of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write a letter, then letters, digits, - or _, at most 32 in all, in small letters")]
pub struct InvalidPeerName;

impl PeerName {
    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PeerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for PeerName {
    type Err = InvalidPeerName;

    fn from_str(text: &str) -> Result<Self, InvalidPeerName> {
        let fits = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, b'-' | b'_');
        let first = text.bytes().next().is_some_and(|c| c.is_ascii_lowercase());
        match first && text.len() <= MAX_NAME && text.bytes().all(fits) {
            true => Ok(Self(text.to_owned())),
            false => Err(InvalidPeerName),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_no_number_and_has_no_slash() {
        assert_eq!("bob-2".parse::<PeerName>().unwrap().as_str(), "bob-2");
        for bad in ["", "8", "Bob", "a/8", "a b", &"a".repeat(33)] {
            assert_eq!(bad.parse::<PeerName>(), Err(InvalidPeerName), "{bad}");
        }
    }
}
