//! Names of other nodes on this node, and targets of messages.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::keys::context::{ContextId, InvalidId};

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

/// Context that a message goes to: on this node, or on another one by its name, as `8` or `bob/8`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MessageTarget {
    /// Name of the node. Default: this node.
    pub node: Option<PeerName>,
    /// The context there.
    pub context: ContextId,
}

/// Error for a text that is no target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTarget {
    /// The name of the node.
    #[error(transparent)]
    Node(#[from] InvalidPeerName),
    /// The number of the context.
    #[error(transparent)]
    Context(#[from] InvalidId),
}

impl fmt::Display for MessageTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.node {
            Some(node) => write!(f, "{node}/{}", self.context),
            None => write!(f, "{}", self.context),
        }
    }
}

impl FromStr for MessageTarget {
    type Err = InvalidTarget;

    fn from_str(text: &str) -> Result<Self, InvalidTarget> {
        let (node, context) = match text.split_once('/') {
            Some((node, context)) => (Some(node.parse()?), context),
            None => (None, text),
        };
        let context = context.parse()?;
        Ok(Self { node, context })
    }
}

impl Serialize for MessageTarget {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.node {
            Some(_) => to.collect_str(self),
            None => to.serialize_u32(self.context.get()),
        }
    }
}

impl<'de> Deserialize<'de> for MessageTarget {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(u32),
            Text(String),
        }
        let text = match Written::deserialize(from)? {
            Written::Number(number) => number.to_string(),
            Written::Text(text) => text,
        };
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_context_here_or_on_a_named_node() {
        for (json, text) in [("8", "8"), (r#""bob/8""#, "bob/8")] {
            let target: MessageTarget = serde_json::from_str(json).unwrap();
            assert_eq!(target.to_string(), text);
            assert_eq!(text.parse::<MessageTarget>().unwrap(), target);
            assert_eq!(serde_json::to_string(&target).unwrap(), json);
        }
        for bad in ["", "0", "bob", "bob/", "Bob/8", "bob/8/9"] {
            assert!(bad.parse::<MessageTarget>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_name_is_no_number_and_has_no_slash() {
        assert_eq!("bob-2".parse::<PeerName>().unwrap().as_str(), "bob-2");
        for bad in ["", "8", "Bob", "a/8", "a b", &"a".repeat(33)] {
            assert_eq!(bad.parse::<PeerName>(), Err(InvalidPeerName), "{bad}");
        }
    }
}
