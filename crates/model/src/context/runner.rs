//! A runner: a worker of a context with a number and, if other nodes reach it, an address.

use serde::{Serialize, Serializer};

use super::reader::{
    Fields, RecordError, count_fault, fields_of, first_fault, length_fault, some_word,
};
use super::value::Address;
use super::{FieldFault, field, limits};
use crate::actor_key::PublicKey;
use crate::keys::context::RunnerId;
use crate::name::ScriptType;

/// The record `runner:{id}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Runner {
    /// Number of the runner, as in its key.
    pub id: RunnerId,
    /// Key with which the runner signs, if it has one.
    #[serde(serialize_with = "some_word", skip_serializing_if = "Option::is_none")]
    pub pubkey: Option<PublicKey>,
    /// Address at which other nodes reach the runner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<Address>,
    /// Topic to which a runner that is not local listens. Default: `runner{id}`.
    pub topic: String,
    /// Types that the runner runs, at most [`limits::MAX_RUNNER_TYPES`], as `python,v`.
    #[serde(rename = "type", serialize_with = "types")]
    pub types: Vec<ScriptType>,
    /// True if the runner claims jobs from the queues of its context. Default: `false`.
    pub local: bool,
    /// Seconds since 1970.
    pub created_at: u32,
    /// Seconds since 1970.
    pub updated_at: u32,
}

fn types<S: Serializer>(types: &[ScriptType], to: S) -> Result<S::Ok, S::Error> {
    let types: Vec<_> = types.iter().map(ScriptType::as_str).collect();
    to.serialize_str(&types.join(","))
}

impl Runner {
    /// Reads the fields of the hash.
    ///
    /// # Errors
    /// The first field that cannot be read.
    pub fn from_fields(
        id: RunnerId,
        fields: impl IntoIterator<Item = (String, Vec<u8>)>,
    ) -> Result<Self, RecordError> {
        let mut fields = Fields::new(format_args!("runner:{id}"), fields);
        let types = fields.text(field::TYPE)?.unwrap_or_default();
        let named = types
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty());
        let types: Result<_, _> = named.map(|name| name.to_lowercase().parse()).collect();
        let types: Vec<ScriptType> = types.map_err(|error: crate::name::NameError| {
            let (shown, wanted) = (String::new(), error.to_string());
            fields.fault(field::TYPE, FieldFault::Word { shown, wanted })
        })?;
        let topic = fields.text(field::TOPIC)?;
        let runner = Self {
            id,
            pubkey: fields.parsed(field::PUBKEY)?,
            address: fields.parsed(field::ADDRESS)?,
            topic: topic.unwrap_or_else(|| Self::default_topic(id)),
            types,
            local: fields.flag(field::LOCAL)?.unwrap_or_default(),
            created_at: fields.seconds(field::CREATED_AT),
            updated_at: fields.seconds(field::UPDATED_AT),
        };
        runner.check()?;
        Ok(runner)
    }

    /// Beginning of default topics, before the number.
    pub const TOPIC_PREFIX: &str = "runner";

    /// Returns the default topic of a runner: `runner20`.
    #[must_use]
    pub fn default_topic(id: RunnerId) -> String {
        format!("{}{id}", Self::TOPIC_PREFIX)
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
        let types = count_fault(&self.types, limits::MAX_RUNNER_TYPES);
        let topic = length_fault(self.topic.len(), limits::MAX_TOPIC);
        first_fault(
            format_args!("runner:{}", self.id),
            [(field::TYPE, types), (field::TOPIC, topic)],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::tests::{bytes, key, pairs};

    fn read(record: &[(&str, &str)]) -> Result<Runner, RecordError> {
        Runner::from_fields(RunnerId(20), bytes(record))
    }

    #[test]
    fn the_fields_of_the_catalogue() {
        let (pubkey, address) = (
            key(1).public().to_string(),
            format!("mycelium:{}", "ab".repeat(32)),
        );
        let record = [
            ("id", "20"),
            ("pubkey", pubkey.as_str()),
            ("address", &address),
            ("topic", "runner20"),
            ("type", "python,v"),
            ("local", "true"),
            ("created_at", "1700000000"),
            ("updated_at", "1700000001"),
        ];
        let runner = read(&record).unwrap();
        assert_eq!(runner.types.len(), 2);
        assert_eq!(runner.to_fields(), pairs(&record));
    }

    #[test]
    fn a_runner_with_little_in_it_is_not_local() {
        let runner = read(&[]).unwrap();
        assert_eq!((runner.local, runner.topic.as_str()), (false, "runner20"));
        assert_eq!((runner.pubkey, runner.address), (None, None));
        let plain = read(&[("local", "1"), ("type", "OSIS, rust"), ("pubkey", "")]).unwrap();
        assert!(plain.local);
        assert_eq!(plain.types[0].as_str(), "osis");
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (field, value) in [
            ("local", "maybe"),
            ("pubkey", "12"),
            ("address", "10.0.0.1"),
            ("type", "a b"),
            ("type", &vec!["v"; 17].join(",")),
            ("topic", &"x".repeat(256)),
        ] {
            assert_eq!(read(&[(field, value)]).unwrap_err().field, field);
        }
    }
}
