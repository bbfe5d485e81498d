//! The record of a context: its members and their rights.

use serde::Serialize;

use super::reader::{Fields, RecordError, count_fault, fields_of, first_fault};
use super::words::UnknownWord;
use super::{field, limits};
use crate::keys::context::{ActorId, ContextId};
use crate::sandbox::Profile;

/// Rule for messages without an envelope, in the field `unsigned`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Unsigned {
    /// Accepts those that were sent inside the context: their sender can write there anyway. Default.
    #[default]
    Own,
    /// Also accepts those of other contexts of the node, if the caller may send such a message there too.
    Accept,
    /// Refuses all.
    Refuse,
}

impl std::fmt::Display for Unsigned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Own => "own",
            Self::Accept => "accept",
            Self::Refuse => "refuse",
        })
    }
}

impl std::str::FromStr for Unsigned {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        match text {
            "own" => Ok(Self::Own),
            "accept" => Ok(Self::Accept),
            "refuse" => Ok(Self::Refuse),
            _ => Err(UnknownWord {
                wanted: "own, accept or refuse".to_owned(),
            }),
        }
    }
}

/// The record `context:{id}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Context {
    /// The number: the one in the key.
    pub id: ContextId,
    /// Actors who create and delete.
    pub admins: Vec<ActorId>,
    /// Actors who read.
    pub readers: Vec<ActorId>,
    /// Actors who run jobs.
    pub executors: Vec<ActorId>,
    /// Rule for messages without an envelope.
    #[serde(
        serialize_with = "super::reader::word",
        skip_serializing_if = "is_default"
    )]
    pub unsigned: Unsigned,
    /// Sandbox that an admin granted to jobs from messages of other nodes. Default: `strict`.
    #[serde(
        serialize_with = "super::reader::word",
        skip_serializing_if = "is_least"
    )]
    pub sandbox: Profile,
    /// Seconds since 1970.
    pub created_at: u32,
    /// Seconds since 1970.
    pub updated_at: u32,
}

fn is_default(unsigned: &Unsigned) -> bool {
    *unsigned == Unsigned::default()
}

fn is_least(granted: &Profile) -> bool {
    *granted == Profile::Strict
}

impl Context {
    /// Returns a context whose creator is admin and executor: an admin can grant himself the second role anyway.
    #[must_use]
    pub fn new(id: ContextId, creator: ActorId, now: u32) -> Self {
        Self {
            id,
            admins: vec![creator],
            readers: Vec::new(),
            executors: vec![creator],
            unsigned: Unsigned::default(),
            sandbox: Profile::Strict,
            created_at: now,
            updated_at: now,
        }
    }

    /// Reads the fields of the hash. A missing list is empty and permits nothing.
    ///
    /// # Errors
    /// The first field that cannot be read.
    pub fn from_fields(
        id: ContextId,
        fields: impl IntoIterator<Item = (String, Vec<u8>)>,
    ) -> Result<Self, RecordError> {
        let mut fields = Fields::new(format_args!("context:{id}"), fields);
        let numbers = "array of actors' numbers";
        let context = Self {
            id,
            admins: fields.list(field::ADMINS, numbers)?,
            readers: fields.list(field::READERS, numbers)?,
            executors: fields.list(field::EXECUTORS, numbers)?,
            unsigned: fields.parsed(field::UNSIGNED)?.unwrap_or_default(),
            sandbox: fields.parsed(field::SANDBOX)?.unwrap_or(Profile::Strict),
            created_at: fields.seconds(field::CREATED_AT),
            updated_at: fields.seconds(field::UPDATED_AT),
        };
        context.check()?;
        Ok(context)
    }

    /// The fields of the hash.
    #[must_use]
    pub fn to_fields(&self) -> Vec<(String, String)> {
        fields_of(self)
    }

    /// Checks the limits.
    ///
    /// # Errors
    /// The first list that has more than [`limits::MAX_MEMBERS`].
    pub fn check(&self) -> Result<(), RecordError> {
        let too_many = |list: &[ActorId]| count_fault(list, limits::MAX_MEMBERS);
        first_fault(
            format_args!("context:{}", self.id),
            [
                (field::ADMINS, too_many(&self.admins)),
                (field::READERS, too_many(&self.readers)),
                (field::EXECUTORS, too_many(&self.executors)),
            ],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::tests::{bytes, pairs};

    fn read(record: &[(&str, &str)]) -> Result<Context, RecordError> {
        Context::from_fields(ContextId::new(7).unwrap(), bytes(record))
    }

    #[test]
    fn the_fields_of_the_catalogue() {
        let record = [
            ("id", "7"),
            ("admins", "[12]"),
            ("readers", "[13,14]"),
            ("executors", "[]"),
            ("created_at", "1700000000"),
            ("updated_at", "1700000001"),
        ];
        let context = read(&record).unwrap();
        assert_eq!(context.readers, [ActorId(13), ActorId(14)]);
        assert_eq!(context.to_fields(), pairs(&record));
    }

    #[test]
    fn what_is_missing_permits_nothing() {
        let context = read(&[]).unwrap();
        assert!(context.admins.is_empty() && context.readers.is_empty());
        assert!(context.executors.is_empty());
        assert_eq!(context.unsigned, Unsigned::Own);
    }

    #[test]
    fn a_list_that_cannot_be_read_is_named() {
        for bad in [
            "12",
            "[-1]",
            "[\"12\"]",
            "[4294967296]",
            "[1.5]",
            "{}",
            "[1",
        ] {
            let error = read(&[("executors", bad)]).unwrap_err().to_string();
            assert_eq!(
                error,
                "context:7: the field `executors` is no JSON array of actors' numbers"
            );
        }
        let many = format!("[{}]", vec!["1"; limits::MAX_MEMBERS + 1].join(","));
        let error = read(&[("admins", &many)]).unwrap_err().to_string();
        assert!(error.contains("at most 10000"), "{error}");
    }

    #[test]
    fn unsigned_messages_of_other_contexts_are_accepted_on_request() {
        let context = read(&[("unsigned", "accept")]).unwrap();
        assert_eq!(context.unsigned, Unsigned::Accept);
        let context = read(&[("unsigned", "refuse")]).unwrap();
        assert_eq!(context.unsigned, Unsigned::Refuse);
        assert!(
            context
                .to_fields()
                .contains(&("unsigned".to_owned(), "refuse".to_owned()))
        );
        let error = read(&[("unsigned", "no")]).unwrap_err().to_string();
        assert!(error.contains("write own, accept or refuse"), "{error}");
    }

    #[test]
    fn jobs_of_other_nodes_are_strict_unless_more_is_granted() {
        assert_eq!(read(&[]).unwrap().sandbox, Profile::Strict);
        let context = read(&[("sandbox", "standard")]).unwrap();
        assert_eq!(context.sandbox, Profile::Standard);
        assert!(
            context
                .to_fields()
                .contains(&("sandbox".to_owned(), "standard".to_owned()))
        );
        let error = read(&[("sandbox", "none")]).unwrap_err().to_string();
        assert!(error.contains("give open, standard or strict"), "{error}");
    }
}
