//! Origin of a message. Contexts of one actor count separately, so a key alone is ambiguous in other contexts.

use std::fmt;
use std::str::FromStr;

use meshwork_model::context::NodeId;
use meshwork_model::envelope::{Body, Nonce};
use meshwork_model::keys::context::{ContextId, MessageKey};
use meshwork_model::mesh::SentFrom;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bytes of a nonce, in hexadecimal digits.
const NONCE: usize = 32;

/// A context of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Site {
    /// The node.
    pub node: NodeId,
    /// The context there.
    pub context: ContextId,
}

/// Origin of a message, the same in each delivery.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    /// Node of the sender.
    pub node: NodeId,
    /// Context of the sender.
    pub context: ContextId,
    /// Key in that context.
    pub message: MessageKey,
    /// Nonce, which distinguishes messages with the same key; 32 hexadecimal digits.
    pub nonce: String,
}

/// Error for a text that is no origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write NODE/CONTEXT/CALLER:ID/NONCE")]
pub struct InvalidOrigin;

impl Origin {
    /// Returns the context that sent the message.
    #[must_use]
    pub const fn site(&self) -> Site {
        Site {
            node: self.node,
            context: self.context,
        }
    }

    /// Returns the origin of a message of `node`.
    pub(crate) fn sent_from(node: NodeId, from: &SentFrom) -> Self {
        Self {
            node,
            context: from.context,
            message: from.message,
            nonce: from.nonce.to_string(),
        }
    }

    /// Returns the message at its sender; `None` if the nonce has another form.
    pub(crate) fn at_sender(&self) -> Option<SentFrom> {
        Some(SentFrom {
            context: self.context,
            message: self.message,
            nonce: Nonce::from_text(&self.nonce)?,
        })
    }

    /// Returns the origin that an envelope was signed for.
    pub(crate) fn signed(body: &Body) -> Self {
        Self {
            node: body.src.node,
            context: body.src.context,
            message: body.id,
            nonce: body.nonce.to_string(),
        }
    }
}

/// Returns whether a text is a nonce.
pub(crate) fn is_nonce(text: &str) -> bool {
    text.len() == NONCE && text.bytes().all(|c| c.is_ascii_hexdigit())
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers = self.message.numbers();
        write!(f, "{}/{}/{numbers}/{}", self.node, self.context, self.nonce)
    }
}

impl Serialize for Origin {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Origin {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl FromStr for Origin {
    type Err = InvalidOrigin;

    fn from_str(text: &str) -> Result<Self, InvalidOrigin> {
        let parts: Vec<_> = text.split('/').collect();
        let [node, context, message, nonce] = parts[..] else {
            return Err(InvalidOrigin);
        };
        if !is_nonce(nonce) {
            return Err(InvalidOrigin);
        }
        Ok(Self {
            node: node.parse().map_err(|_| InvalidOrigin)?,
            context: context.parse().map_err(|_| InvalidOrigin)?,
            message: MessageKey::of_numbers(message).map_err(|_| InvalidOrigin)?,
            nonce: nonce.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_comes_back() {
        let text = format!("{}/7/12:101/{}", "ab".repeat(32), "0f".repeat(16));
        let origin: Origin = text.parse().unwrap();
        assert_eq!(origin.to_string(), text);
        assert_eq!(origin.message, MessageKey::new(12, 101));
        for bad in [
            "",
            "a/b/c/d",
            &text[1..],
            &format!("{text}0"),
            &format!("{text}/"),
        ] {
            assert_eq!(bad.parse::<Origin>(), Err(InvalidOrigin), "{bad}");
        }
    }
}
