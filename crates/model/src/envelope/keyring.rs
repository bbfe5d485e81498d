//! The trusted keys of this node, and their owners.

use std::collections::HashMap;

use super::Refusal;
use super::dsse::{Parts, Signed, pae};
use crate::actor_key::PublicKey;
use crate::context::Actor;
use crate::keys::context::ActorId;

/// Number of characters that an error shows of a key id: the length of a valid one.
const SHOWN: usize = 16;

/// A trusted key and its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedKey {
    /// Owner, by his number on this node.
    pub actor: ActorId,
    /// The key.
    pub key: PublicKey,
    /// Time from which the key is not valid, in seconds since 1970, whatever time an envelope claims.
    pub ends: Option<u32>,
}

/// All trusted keys. Revoked keys remain, so that a refusal can name the reason.
#[derive(Debug, Clone, Default)]
pub struct Keyring {
    by_id: HashMap<String, Vec<TrustedKey>>,
}

impl Keyring {
    /// Returns the keys of these actors.
    pub fn of<'a>(actors: impl IntoIterator<Item = &'a Actor>) -> Self {
        let mut keyring = Self::default();
        for actor in actors {
            keyring.trust(actor);
        }
        keyring
    }

    /// Adds the keys of an actor.
    pub fn trust(&mut self, actor: &Actor) {
        let old = actor.old_pubkey.map(|key| TrustedKey {
            actor: actor.id,
            key,
            // A key that was replaced without an end time is not valid.
            ends: Some(earlier(
                actor.old_until.unwrap_or_default(),
                actor.revoked_at,
            )),
        });
        let current = TrustedKey {
            actor: actor.id,
            key: actor.pubkey,
            ends: actor.revoked_at,
        };
        for key in std::iter::once(current).chain(old) {
            self.by_id.entry(key.key.key_id()).or_default().push(key);
        }
    }

    /// Returns the keys of all signatures, in their order. Every signature must be valid.
    pub(super) fn verify(&self, parts: &Parts, now: u64) -> Result<Vec<&TrustedKey>, Refusal> {
        let message = pae(parts.payload_type.as_str(), &parts.body);
        let signatures = parts.signatures.iter();
        signatures
            .map(|signed| self.signer(signed, &message, now))
            .collect()
    }

    fn signer(&self, signed: &Signed, message: &[u8], now: u64) -> Result<&TrustedKey, Refusal> {
        let keys = self.by_id.get(&signed.key_id);
        let keys = keys.ok_or_else(|| Refusal::UnknownKey {
            key_id: signed.key_id.chars().take(SHOWN).collect(),
        })?;
        let fits = |key: &&TrustedKey| key.key.verifies(message, &signed.signature);
        let key = keys.iter().find(fits).ok_or(Refusal::Tampered)?;
        match key.ends {
            Some(since) if u64::from(since) <= now => Err(Refusal::RevokedKey {
                actor: key.actor,
                since,
            }),
            _ => Ok(key),
        }
    }
}

fn earlier(one: u32, other: Option<u32>) -> u32 {
    other.map_or(one, |other| one.min(other))
}
