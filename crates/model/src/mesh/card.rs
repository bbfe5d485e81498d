//! The card of a node: its keys, signed by itself. Who trusts a card trusts the node.

use data_encoding::BASE64;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::actor_key::{KeyBytes, PublicKey, SecretKey};
use crate::context::NodeId;
use crate::envelope::{SKEW, pae};

/// Greatest length of a card, in bytes.
pub const MAX_CARD: usize = 4096;
/// Greatest time between creation and expiry, in seconds: two years.
pub const MAX_CARD_LIFE: u64 = 2 * 365 * 24 * 3600;
/// Type of the signed bytes.
const TYPE: &str = "application/vnd.meshwork.card.v1+json";
/// Version of the format.
const VERSION: u32 = 1;
/// Greatest number of signatures: of this key, and of the one before.
const MAX_SIGNATURES: usize = 2;

/// Keys of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Card {
    /// The node.
    pub node: NodeId,
    /// Key that signs its frames.
    pub key: PublicKey,
    /// Key of its Mycelium daemon.
    pub daemon: KeyBytes,
    /// Time of creation, in seconds since 1970.
    pub created_at: u64,
    /// Expiry, in seconds since 1970; at most [`MAX_CARD_LIFE`] after its creation.
    pub expires_at: u64,
}

/// The reason why a card was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CardFault {
    /// The text is no card.
    #[error("it is no card of a node: {0}")]
    Malformed(&'static str),
    /// The node's own signature does not match.
    #[error("the card was changed: its signature does not match")]
    Tampered,
    /// The card has expired.
    #[error("the card expired at {at} (seconds since 1970): ask for a new one")]
    Expired {
        /// Time of the expiry.
        at: u64,
    },
    /// The time of creation is in the future.
    #[error(
        "the card is from the future: created at {at} (seconds since 1970). Check the clocks of both nodes"
    )]
    FromTheFuture {
        /// Time of creation.
        at: u64,
    },
    /// The node is known with another key, which did not sign this card.
    #[error(
        "node {node} is known with another key, and this card is not signed by that key: revoke the node first if you \
         trust the new key"
    )]
    OtherKey {
        /// The node.
        node: NodeId,
    },
    /// The card is older than the known one.
    #[error("the card is older than the known one of node {node}")]
    Older {
        /// The node.
        node: NodeId,
    },
}

#[derive(Serialize, Deserialize)]
struct Stored {
    v: u32,
    node: String,
    key: String,
    daemon: String,
    created_at: u64,
    expires_at: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'a> {
    payload_type: &'a str,
    payload: String,
    signatures: Vec<WrittenSignature>,
}

#[derive(Serialize)]
struct WrittenSignature {
    keyid: String,
    sig: String,
}

/// A card whose own signature was verified, and the bytes for the check of another one.
#[derive(Debug)]
struct Opened {
    card: Card,
    signed: Vec<u8>,
    signatures: Vec<[u8; 64]>,
}

impl Card {
    /// Writes the card, signed by the node's key, and by the one before if the node has a new key.
    #[must_use]
    pub fn seal(&self, key: &SecretKey, before: Option<&SecretKey>) -> String {
        let stored = Stored {
            v: VERSION,
            node: self.node.to_string(),
            key: self.key.to_string(),
            daemon: self.daemon.to_string(),
            created_at: self.created_at,
            expires_at: self.expires_at,
        };
        // Strings and numbers always serialize.
        let body = serde_json::to_vec(&stored).unwrap_or_default();
        let signed = pae(TYPE, &body);
        let signature = |key: &SecretKey| WrittenSignature {
            keyid: key.public().key_id(),
            sig: BASE64.encode(&key.sign(&signed)),
        };
        let written = Written {
            payload_type: TYPE,
            payload: BASE64.encode(&body),
            signatures: std::iter::once(key).chain(before).map(signature).collect(),
        };
        serde_json::to_string(&written).unwrap_or_default()
    }

    /// Reads a card at `now` (seconds since 1970). `known` is the trusted card of the same node, if there is one: a new
    /// key has to be signed by the known one.
    ///
    /// # Errors
    /// The first check that fails.
    pub fn open(
        text: &[u8],
        now: u64,
        known: impl FnOnce(NodeId) -> Option<Self>,
    ) -> Result<Self, CardFault> {
        let Opened {
            card,
            signed,
            signatures,
        } = read(text)?;
        let life = card.expires_at.checked_sub(card.created_at);
        if life.is_none_or(|life| life > MAX_CARD_LIFE) {
            return Err(CardFault::Malformed(
                "it expires before its creation, or more than two years after",
            ));
        }
        if card.created_at > now.saturating_add(SKEW) {
            return Err(CardFault::FromTheFuture {
                at: card.created_at,
            });
        }
        if card.expires_at < now {
            return Err(CardFault::Expired {
                at: card.expires_at,
            });
        }
        let node = card.node;
        match known(node) {
            Some(known) if card.created_at < known.created_at => Err(CardFault::Older { node }),
            Some(known)
                if known.key != card.key
                    && !signatures
                        .iter()
                        .any(|one| known.key.verifies(&signed, one)) =>
            {
                Err(CardFault::OtherKey { node })
            }
            _ => Ok(card),
        }
    }
}

impl Card {
    /// Reads a card that was trusted before. Its own signature is verified, and its time is not.
    ///
    /// # Errors
    /// The card has another form, or was changed.
    pub fn stored(text: &[u8]) -> Result<Self, CardFault> {
        read(text).map(|opened| opened.card)
    }
}

/// Reads a card and verifies its own signature.
fn read(text: &[u8]) -> Result<Opened, CardFault> {
    use CardFault::Malformed;
    if text.len() > MAX_CARD {
        return Err(Malformed("it is too long"));
    }
    let json: Value = serde_json::from_slice(text).map_err(|_| Malformed("it is no JSON"))?;
    if json["payloadType"].as_str() != Some(TYPE) {
        return Err(Malformed("it is of another type"));
    }
    let base64 = |value: &Value| {
        let text = value.as_str()?;
        BASE64.decode(text.as_bytes()).ok()
    };
    let body = base64(&json["payload"]).ok_or(Malformed("it lacks `payload`"))?;
    let list = json["signatures"].as_array();
    let list = list.filter(|list| (1..=MAX_SIGNATURES).contains(&list.len()));
    let list = list.ok_or(Malformed("it has no signature, or too many"))?;
    let signatures = list.iter().map(|one| base64(&one["sig"])?.try_into().ok());
    let signatures: Option<Vec<[u8; 64]>> = signatures.collect();
    let signatures = signatures.ok_or(Malformed("a signature is no base64 of 64 bytes"))?;
    let signed = pae(TYPE, &body);
    let stored: Stored =
        serde_json::from_slice(&body).map_err(|_| Malformed("a field is missing or wrong"))?;
    if stored.v != VERSION {
        return Err(Malformed("it is of another version"));
    }
    let key: PublicKey = stored
        .key
        .parse()
        .map_err(|_| Malformed("its key is wrong"))?;
    if !signatures.iter().any(|one| key.verifies(&signed, one)) {
        return Err(CardFault::Tampered);
    }
    let card = Card {
        node: stored
            .node
            .parse()
            .map_err(|_| Malformed("its node is wrong"))?,
        key,
        daemon: stored
            .daemon
            .parse()
            .map_err(|_| Malformed("its daemon is wrong"))?,
        created_at: stored.created_at,
        expires_at: stored.expires_at,
    };
    Ok(Opened {
        card,
        signed,
        signatures,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000;

    fn secret(seed: u8) -> SecretKey {
        SecretKey::from_seed(&[seed; 32])
    }

    fn card(key: &SecretKey, created_at: u64) -> Card {
        Card {
            node: NodeId([7; 32]),
            key: key.public(),
            daemon: KeyBytes([9; 32]),
            created_at,
            expires_at: created_at + 1000,
        }
    }

    #[test]
    fn a_card_is_read_as_it_was_written() {
        let made = card(&secret(1), NOW);
        let text = made.seal(&secret(1), None);
        assert_eq!(Card::open(text.as_bytes(), NOW, |_| None), Ok(made.clone()));
        assert_eq!(
            Card::open(text.as_bytes(), NOW, |_| Some(made.clone())),
            Ok(made)
        );
    }

    #[test]
    fn another_key_needs_the_signature_of_the_known_one() {
        let known = card(&secret(1), NOW);
        let renewed = card(&secret(2), NOW + 1);
        let open = |text: String| Card::open(text.as_bytes(), NOW + 1, |_| Some(known.clone()));
        let node = known.node;
        assert_eq!(
            open(renewed.seal(&secret(2), None)),
            Err(CardFault::OtherKey { node })
        );
        assert_eq!(
            open(renewed.seal(&secret(2), Some(&secret(3)))),
            Err(CardFault::OtherKey { node })
        );
        assert_eq!(
            open(renewed.seal(&secret(2), Some(&secret(1)))),
            Ok(renewed)
        );
        let old = card(&secret(1), NOW - 1);
        assert_eq!(
            open(old.seal(&secret(1), None)),
            Err(CardFault::Older { node })
        );
    }

    #[test]
    fn time_and_signature_are_checked() {
        let made = card(&secret(1), NOW);
        let text = made.seal(&secret(1), None);
        let open = |text: &str, now| Card::open(text.as_bytes(), now, |_| None);
        assert!(matches!(
            open(&text, NOW + 1001),
            Err(CardFault::Expired { .. })
        ));
        assert!(matches!(
            open(&text, NOW - SKEW - 1),
            Err(CardFault::FromTheFuture { .. })
        ));
        assert_eq!(
            open(&made.seal(&secret(2), None), NOW),
            Err(CardFault::Tampered)
        );
        let long = Card {
            expires_at: NOW + MAX_CARD_LIFE + 1,
            ..made
        };
        assert!(matches!(
            open(&long.seal(&secret(1), None), NOW),
            Err(CardFault::Malformed(_))
        ));
        for bad in [
            "",
            "{}",
            "[]",
            &text[1..],
            &text.replace("card.v1", "card.v2"),
        ] {
            assert!(
                matches!(open(bad, NOW), Err(CardFault::Malformed(_))),
                "{bad}"
            );
        }
    }

    #[test]
    fn no_changed_byte_is_accepted() {
        let text = card(&secret(1), NOW).seal(&secret(1), None);
        let known = Card::open(text.as_bytes(), NOW, |_| None).unwrap();
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            // The id of the key is a hint: its change changes nothing.
            let read = Card::open(&bytes, NOW, |_| None);
            assert!(
                read.is_err() || read == Ok(known.clone()),
                "byte {at}: {read:?}"
            );
        }
    }
}
