//! An actor: an identity that sends and answers messages and owns contexts. The public key identifies an actor
//! everywhere, the number only on this node.

use serde::Serialize;

use super::reader::{Fields, RecordError, count_fault, fields_of, first_fault, some_word, word};
use super::value::Address;
use super::{FieldFault, field, limits};
use crate::actor_key::PublicKey;
use crate::api_key::Scope;
use crate::keys::context::ActorId;

/// The record `actor:{id}`, in database 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Actor {
    /// The number on this node: the one in the key.
    pub id: ActorId,
    /// Public key, which identifies the actor.
    #[serde(serialize_with = "word")]
    pub pubkey: PublicKey,
    /// Addresses of the actor, at most [`limits::MAX_ADDRESSES`].
    pub address: Vec<Address>,
    /// Seconds since 1970.
    pub created_at: u32,
    /// Seconds since 1970.
    pub updated_at: u32,
    /// Time of the revocation of the keys, in seconds since 1970.
    #[serde(rename = "mw_revoked_at", skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<u32>,
    /// Previous key of the actor.
    #[serde(
        rename = "mw_old_pubkey",
        serialize_with = "some_word",
        skip_serializing_if = "Option::is_none"
    )]
    pub old_pubkey: Option<PublicKey>,
    /// Time until which the previous key is valid, in seconds since 1970.
    #[serde(rename = "mw_old_until", skip_serializing_if = "Option::is_none")]
    pub old_until: Option<u32>,
    /// Scope of the actor outside of contexts, if somebody has granted one.
    #[serde(rename = "mw_node_scope", skip_serializing_if = "Option::is_none")]
    pub node_scope: Option<Scope>,
}

impl Actor {
    /// Returns an actor without an address.
    #[must_use]
    pub fn new(id: ActorId, pubkey: PublicKey, now: u32) -> Self {
        Self {
            id,
            pubkey,
            address: Vec::new(),
            created_at: now,
            updated_at: now,
            revoked_at: None,
            old_pubkey: None,
            old_until: None,
            node_scope: None,
        }
    }

    /// Reads the fields of the hash.
    ///
    /// # Errors
    /// The first field that cannot be read. The key has no default: nobody can be verified without one.
    pub fn from_fields(
        id: ActorId,
        fields: impl IntoIterator<Item = (String, Vec<u8>)>,
    ) -> Result<Self, RecordError> {
        let mut fields = Fields::new(format_args!("actor:{id}"), fields);
        let pubkey = fields.parsed(field::PUBKEY)?;
        let actor = Self {
            id,
            pubkey: pubkey.ok_or_else(|| fields.fault(field::PUBKEY, FieldFault::Missing))?,
            address: fields.list(field::ADDRESS, "array of addresses (mycelium:KEY)")?,
            created_at: fields.seconds(field::CREATED_AT),
            updated_at: fields.seconds(field::UPDATED_AT),
            // An unreadable field must not undo a revocation.
            revoked_at: fields.number(field::REVOKED_AT)?,
            old_pubkey: fields.parsed(field::OLD_PUBKEY)?,
            old_until: fields.number(field::OLD_UNTIL)?,
            node_scope: fields.parsed(field::NODE_SCOPE)?,
        };
        actor.check()?;
        Ok(actor)
    }

    /// The fields of the hash.
    #[must_use]
    pub fn to_fields(&self) -> Vec<(String, String)> {
        fields_of(self)
    }

    /// Checks the limits.
    ///
    /// # Errors
    /// The first field that is over its limit.
    pub fn check(&self) -> Result<(), RecordError> {
        let addresses = count_fault(&self.address, limits::MAX_ADDRESSES);
        first_fault(
            format_args!("actor:{}", self.id),
            [(field::ADDRESS, addresses)],
        )
    }

    /// Replaces the key. The previous one stays valid for [`limits::OLD_KEY_FOR`] seconds.
    pub fn rotate(&mut self, pubkey: PublicKey, now: u32) {
        self.old_pubkey = Some(std::mem::replace(&mut self.pubkey, pubkey));
        self.old_until = Some(now.saturating_add(limits::OLD_KEY_FOR));
        self.updated_at = now;
    }

    /// Revokes the actor's keys at once.
    pub fn revoke(&mut self, now: u32) {
        self.revoked_at.get_or_insert(now);
        self.updated_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::tests::{bytes, key, pairs};

    #[test]
    fn the_fields_of_the_catalogue() {
        let text = key(1).public().to_string();
        let node = "cd".repeat(32);
        let addresses = format!(r#"["mycelium:{node}"]"#);
        let record = [
            ("id", "12"),
            ("pubkey", text.as_str()),
            ("address", &addresses),
            ("created_at", "1700000000"),
            ("updated_at", "1700000001"),
        ];
        let actor = Actor::from_fields(ActorId(12), bytes(&record)).unwrap();
        assert_eq!(actor.pubkey, key(1).public());
        assert_eq!(actor.address[0].0.to_string(), node);
        assert_eq!(actor.to_fields(), pairs(&record));
    }

    #[test]
    fn a_key_is_needed() {
        let read = |record: &[(&str, &str)]| {
            let error = Actor::from_fields(ActorId(12), bytes(record)).unwrap_err();
            error.to_string()
        };
        assert_eq!(read(&[]), "actor:12: the field `pubkey` is missing");
        let said = read(&[("pubkey", "zz")]);
        assert!(said.contains(r#"`pubkey` is "zz""#), "{said}");
        let key = key(1).public().to_string();
        let said = read(&[("pubkey", &key), ("address", "fe80::1")]);
        assert!(
            said.contains("`address` is no JSON array of addresses"),
            "{said}"
        );
        // An unreadable revocation must not be ignored.
        let said = read(&[("pubkey", &key), ("mw_revoked_at", "yesterday")]);
        assert!(said.contains("mw_revoked_at"), "{said}");
        let many = format!("[{}]", vec![format!("\"mycelium:{key}\""); 17].join(","));
        let said = read(&[("pubkey", &key), ("address", &many)]);
        assert!(said.contains("has 17 items: at most 16"), "{said}");
    }

    #[test]
    fn rotated_and_revoked_keys_come_back() {
        let mut actor = Actor::new(ActorId(1), key(1).public(), 100);
        actor.rotate(key(2).public(), 200);
        actor.revoke(300);
        actor.revoke(400);
        actor.node_scope = Some(Scope::User);
        assert_eq!(actor.old_until, Some(200 + limits::OLD_KEY_FOR));
        assert_eq!(actor.revoked_at, Some(300), "the first time counts");
        let fields = actor.to_fields().into_iter();
        let fields = fields.map(|(name, value)| (name, value.into_bytes()));
        assert_eq!(Actor::from_fields(ActorId(1), fields), Ok(actor));
    }
}
