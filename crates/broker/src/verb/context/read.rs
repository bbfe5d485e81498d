//! read: reads several keys at one moment.

use meshwork_macros::boxed;
use redis::{FromRedisValue, Value};

use super::{ContextStore, Database, RecordFields};
use crate::error::Error;
use crate::script::Verb;
use crate::verb::{MAX_ITEMS, at_most};

/// Kind of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read<'a> {
    /// All fields of a hash.
    Hash,
    /// The value of a string, if there is one.
    Text,
    /// Two fields of a hash; an empty text for a missing one.
    Pair(&'a str, &'a str),
    /// The total length of two fields of a hash, in bytes.
    Size(&'a str, &'a str),
    /// Up to this number of elements at the head of a list: the newest ones.
    Head(usize),
    /// Up to this number of elements at the tail of a list: those that are popped first.
    Tail(usize),
    /// Up to this number of elements before this number of elements at the tail of a list.
    Page(usize, usize),
    /// Up to this number of members of a sorted set whose time has come.
    Due(usize),
    /// Up to this number of members of a sorted set, after this number of members.
    Members(usize, usize),
    /// The number of members of a sorted set, as one text.
    Count,
    /// Up to this number of the latest entries of a stream, the latest first.
    Last(usize),
    /// Up to this number of entries of a stream after the entry with this id.
    After(usize, &'a str),
}

impl Read<'_> {
    fn arguments(self) -> [String; 3] {
        let number =
            |how: &str, most: usize, id: &str| [how.to_owned(), most.to_string(), id.to_owned()];
        match self {
            Self::Hash => number("hash", 0, ""),
            Self::Text => number("text", 0, ""),
            Self::Pair(one, other) => ["pair", one, other].map(str::to_owned),
            Self::Size(one, other) => ["size", one, other].map(str::to_owned),
            Self::Head(most) => number("head", most, ""),
            Self::Tail(most) => number("tail", most, "0"),
            Self::Page(skip, most) => number("tail", most, &skip.to_string()),
            Self::Due(most) => number("due", most, ""),
            Self::Members(most, from) => number("members", most, &from.to_string()),
            Self::Count => number("count", 0, ""),
            Self::Last(most) => number("last", most, ""),
            Self::After(most, id) => number("after", most, id),
        }
    }
}

/// An entry of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Id of the entry.
    pub id: String,
    /// Fields of the entry.
    pub fields: Vec<(String, String)>,
}

impl ContextStore {
    async fn read<T: FromRedisValue>(
        &self,
        database: Database,
        keys: &[(&str, Read<'_>)],
    ) -> Result<Vec<T>, Error> {
        at_most("read", MAX_ITEMS, keys.len())?;
        let Some((first, _)) = keys.first() else {
            return Ok(Vec::new());
        };
        let conn = self.conn_for(first).await?;
        let mut call = self.scripts.call(Verb::ContextRead);
        for (key, _) in keys {
            call.push_key(*key);
        }
        let mut call = database.entered(call.arg(self.clock.argument()));
        for (_, read) in keys {
            for argument in read.arguments() {
                call.push_arg(argument);
            }
        }
        call.run(conn).await
    }

    /// Returns the fields of hashes; none for a missing one.
    ///
    /// # Errors
    /// [`Error::TooMany`] beyond 1,000, [`Error::WrongKind`] for a key of another type, or the call to the server
    /// fails.
    pub async fn hashes<K: AsRef<str>>(
        &self,
        database: Database,
        keys: &[K],
    ) -> Result<Vec<RecordFields>, Error> {
        let keys: Vec<_> = keys.iter().map(|key| (key.as_ref(), Read::Hash)).collect();
        let found: Vec<Vec<(Vec<u8>, Vec<u8>)>> = self.read(database, &keys).await?;
        let text = |name: Vec<u8>| String::from_utf8_lossy(&name).into_owned();
        let fields = |fields: Vec<(Vec<u8>, Vec<u8>)>| {
            let fields = fields.into_iter();
            fields.map(|(name, value)| (text(name), value)).collect()
        };
        Ok(found.into_iter().map(fields).collect())
    }

    /// Returns the fields of one hash.
    ///
    /// # Errors
    /// As for [`Self::hashes`].
    #[boxed]
    pub async fn hash(&self, database: Database, key: &str) -> Result<RecordFields, Error> {
        let found = self.hashes(database, &[key]).await?;
        Ok(found.into_iter().next().unwrap_or_default())
    }

    /// Returns the value of a string; `None` for a missing one.
    ///
    /// # Errors
    /// [`Error::WrongKind`] for a key of another type, or the call to the server fails.
    #[boxed]
    pub async fn text(&self, database: Database, key: &str) -> Result<Option<Vec<u8>>, Error> {
        let found = self.elements(database, key, Read::Text).await?;
        Ok(found.into_iter().next())
    }

    /// Returns the values of several strings; `None` for a missing one.
    ///
    /// # Errors
    /// [`Error::TooMany`] beyond 1,000, [`Error::WrongKind`] for a key of another type, or the call to the server fails.
    pub async fn texts<K: AsRef<str>>(
        &self,
        database: Database,
        keys: &[K],
    ) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let keys: Vec<_> = keys.iter().map(|key| (key.as_ref(), Read::Text)).collect();
        let found: Vec<Vec<Vec<u8>>> = self.read(database, &keys).await?;
        let first = |values: Vec<Vec<u8>>| values.into_iter().next();
        Ok(found.into_iter().map(first).collect())
    }

    /// Returns two fields of each hash; an empty text for a missing one. A key of another type has no fields.
    ///
    /// # Errors
    /// [`Error::TooMany`] beyond 1,000, or the call to the server fails.
    pub async fn pairs<K: AsRef<str>>(
        &self,
        database: Database,
        keys: &[K],
        (one, other): (&str, &str),
    ) -> Result<Vec<(Vec<u8>, Vec<u8>)>, Error> {
        let pair = Read::Pair(one, other);
        let keys: Vec<_> = keys.iter().map(|key| (key.as_ref(), pair)).collect();
        self.read(database, &keys).await
    }

    /// Returns the total length of two fields of each hash, in bytes; 0 for a key of another type.
    ///
    /// # Errors
    /// As for [`Self::pairs`].
    pub async fn lengths<K: AsRef<str>>(
        &self,
        database: Database,
        keys: &[K],
        (one, other): (&str, &str),
    ) -> Result<Vec<usize>, Error> {
        let size = Read::Size(one, other);
        let keys: Vec<_> = keys.iter().map(|key| (key.as_ref(), size)).collect();
        self.read(database, &keys).await
    }

    /// Returns several parts of one list.
    ///
    /// # Errors
    /// As for [`Self::elements`].
    #[boxed]
    pub async fn lists(
        &self,
        database: Database,
        key: &str,
        parts: &[Read<'_>],
    ) -> Result<Vec<Vec<Vec<u8>>>, Error> {
        let keys: Vec<_> = parts.iter().map(|part| (key, *part)).collect();
        self.read(database, &keys).await
    }

    /// Returns elements of a list, or members of a sorted set.
    ///
    /// # Errors
    /// [`Error::WrongKind`] for a key of another type, or the call to the server fails.
    #[boxed]
    pub async fn elements(
        &self,
        database: Database,
        key: &str,
        read: Read<'_>,
    ) -> Result<Vec<Vec<u8>>, Error> {
        let found: Vec<Vec<Vec<u8>>> = self.read(database, &[(key, read)]).await?;
        Ok(found.into_iter().next().unwrap_or_default())
    }

    /// Returns true if one of these keys has an element or a member.
    ///
    /// # Errors
    /// As for [`Self::elements`].
    #[boxed]
    pub async fn any(&self, database: Database, keys: &[(&str, Read<'_>)]) -> Result<bool, Error> {
        let found: Vec<Vec<Vec<u8>>> = self.read(database, keys).await?;
        Ok(found.iter().any(|found| !found.is_empty()))
    }

    /// Returns entries of a stream.
    ///
    /// # Errors
    /// [`Error::WrongKind`] for a key of another type, or the call to the server fails.
    #[boxed]
    pub async fn entries(
        &self,
        database: Database,
        key: &str,
        read: Read<'_>,
    ) -> Result<Vec<Entry>, Error> {
        let found: Vec<Vec<(String, Value)>> = self.read(database, &[(key, read)]).await?;
        let entry = |(id, fields): (String, Value)| {
            let fields = Vec::<(Vec<u8>, Vec<u8>)>::from_redis_value(fields).unwrap_or_default();
            let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
            let fields = fields.into_iter();
            let fields = fields.map(|(name, value)| (text(name), text(value)));
            Entry {
                id,
                fields: fields.collect(),
            }
        };
        let found = found.into_iter().next().unwrap_or_default();
        Ok(found.into_iter().map(entry).collect())
    }
}
