//! Values that several records contain: nodes, addresses and log entries.

use std::fmt;
use std::str::FromStr;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::limits;
use super::words::LogLevel;
use crate::actor_key::hex;

/// Prefix of every address on the overlay network.
const MYCELIUM: &str = "mycelium:";

/// A text that is not an address of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidAddress {
    /// The text is not an address.
    #[error("write mycelium: and the node's public key, 64 hexadecimal digits")]
    Address,
    /// The text is not the key of a node.
    #[error("write the node's public key, 64 hexadecimal digits")]
    Node,
}

/// A node of the overlay network: its public key there, as 64 hexadecimal digits. Keys of actors are different ones.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub [u8; 32]);

impl FromStr for NodeId {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Self, InvalidAddress> {
        hex(text).map(Self).ok_or(InvalidAddress::Node)
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&HEXLOWER.encode(&self.0))
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeId({self})")
    }
}

/// Address of an actor or a runner: `mycelium:{node}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address(pub NodeId);

impl FromStr for Address {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Self, InvalidAddress> {
        let node = text
            .strip_prefix(MYCELIUM)
            .and_then(|node| node.parse().ok());
        node.map(Self).ok_or(InvalidAddress::Address)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{MYCELIUM}{}", self.0)
    }
}

macro_rules! as_text {
    ($type:ident) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                super::reader::read_word(from)
            }
        }
    };
}

as_text!(NodeId);
as_text!(Address);

/// A log entry of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Log {
    /// Time of the entry, in seconds since 1970.
    #[serde(default)]
    pub at: u32,
    /// Level of the entry. Unknown words count as `info`.
    #[serde(default = "info", deserialize_with = "level")]
    pub level: LogLevel,
    /// Text of the entry.
    pub text: String,
}

fn info() -> LogLevel {
    LogLevel::Info
}

fn level<'de, D: Deserializer<'de>>(from: D) -> Result<LogLevel, D::Error> {
    let text = String::deserialize(from)?;
    Ok(text.parse().unwrap_or(LogLevel::Info))
}

impl Log {
    /// Returns an entry. A text over [`limits::MAX_LOG_TEXT`] bytes is cut.
    #[must_use]
    pub fn new(at: u32, level: LogLevel, text: impl Into<String>) -> Self {
        let mut text = text.into();
        text.truncate(text.floor_char_boundary(limits::MAX_LOG_TEXT));
        Self { at, level, text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_its_network() {
        let node = "ab".repeat(32);
        let text = format!("mycelium:{node}");
        let address: Address = text.parse().unwrap();
        assert_eq!(address.to_string(), text);
        assert_eq!(address.0.to_string(), node);
        for bad in ["", "mycelium:", &node, &format!("tcp:{node}"), &text[..72]] {
            assert_eq!(
                bad.parse::<Address>(),
                Err(InvalidAddress::Address),
                "{bad}"
            );
        }
        let json = serde_json::to_string(&[address]).unwrap();
        assert_eq!(json, format!("[\"{text}\"]"));
        assert_eq!(
            serde_json::from_str::<Vec<Address>>(&json).unwrap(),
            [address]
        );
    }

    #[test]
    fn an_entry_of_a_log_is_an_object() {
        let log = Log::new(5, LogLevel::Warn, "late");
        let json = serde_json::to_string(&log).unwrap();
        assert_eq!(json, r#"{"at":5,"level":"warn","text":"late"}"#);
        assert_eq!(serde_json::from_str::<Log>(&json).unwrap(), log);
        let other: Log = serde_json::from_str(r#"{"level":"LOUD","text":"x","by":1}"#).unwrap();
        assert_eq!(other, Log::new(0, LogLevel::Info, "x"));
        let long = Log::new(0, LogLevel::Info, "ä".repeat(limits::MAX_LOG_TEXT));
        assert_eq!(long.text.len(), limits::MAX_LOG_TEXT);
    }
}
