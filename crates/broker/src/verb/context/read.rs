//! read: several keys at one time.

use redis::{FromRedisValue, Value};

use super::{ContextStore, Database, RecordFields};
use crate::Error;
use crate::script::Verb;
use crate::verb::{MAX_ITEMS, at_most};

/// Kind of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read<'a> {
    /// All fields of a hash.
    Hash,
    /// Two fields of a hash; an empty text for one that is not there.
    Pair(&'a str, &'a str),
    /// The total length of two fields of a hash, in bytes.
    Size(&'a str, &'a str),
    /// The first elements of a list, at most so many: the newest ones.
    Head(usize),
    /// The last elements of a list, at most so many: those that are popped first.
    Tail(usize),
    /// The elements before so many last ones of a list, at most so many.
    Page(usize, usize),
    /// Members of a sorted set whose time has come, at most so many.
    Due(usize),
    /// Members of a sorted set, at most so many, behind so many.
    Members(usize, usize),
    /// The latest entries of a stream, at most so many, the latest first.
    Last(usize),
    /// At most so many entries of a stream behind the one of this id.
    After(usize, &'a str),
}

impl Read<'_> {
    fn arguments(self) -> [String; 3] {
        let number =
            |how: &str, most: usize, id: &str| [how.to_owned(), most.to_string(), id.to_owned()];
        match self {
            Self::Hash => number("hash", 0, ""),
            Self::Pair(one, other) => ["pair", one, other].map(str::to_owned),
            Self::Size(one, other) => ["size", one, other].map(str::to_owned),
            Self::Head(most) => number("head", most, ""),
            Self::Tail(most) => number("tail", most, "0"),
            Self::Page(skip, most) => number("tail", most, &skip.to_string()),
            Self::Due(most) => number("due", most, ""),
            Self::Members(most, from) => number("members", most, &from.to_string()),
            Self::Last(most) => number("last", most, ""),
            Self::After(most, id) => number("after", most, id),
        }
    }
}

/// An entry of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its id.
    pub id: String,
    /// Its fields.
    pub fields: Vec<(String, String)>,
}

impl ContextStore {
    async fn read<T: FromRedisValue>(
        &self,
        database: Database,
        keys: &[(&str, Read<'_>)],
    ) -> Result<Vec<T>, Error> {
        at_most("read", MAX_ITEMS, keys.len())?;
        if keys.is_empty() {
            return Ok(Vec::new());
        }
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
        call.run(&self.conn).await
    }

    /// The fields of hashes; none of one that is not there.
    ///
    /// # Errors
    /// [`Error::TooMany`] beyond 1,000, [`Error::WrongKind`] if one is no hash, or the call to the server fails.
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

    /// The fields of one hash.
    ///
    /// # Errors
    /// As for [`Self::hashes`].
    pub async fn hash(&self, database: Database, key: &str) -> Result<RecordFields, Error> {
        let found = self.hashes(database, &[key]).await?;
        Ok(found.into_iter().next().unwrap_or_default())
    }

    /// Two fields of each of several hashes; an empty text for one that is not there. A key of another type has none.
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

    /// The total length of two fields of each of several hashes, in bytes; 0 for a key of another type.
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

    /// Several parts of one list.
    ///
    /// # Errors
    /// As for [`Self::elements`].
    pub async fn lists(
        &self,
        database: Database,
        key: &str,
        parts: &[Read<'_>],
    ) -> Result<Vec<Vec<Vec<u8>>>, Error> {
        let keys: Vec<_> = parts.iter().map(|part| (key, *part)).collect();
        self.read(database, &keys).await
    }

    /// Elements of a list, or members of a sorted set.
    ///
    /// # Errors
    /// [`Error::WrongKind`] if it is another kind of value, or the call to the server fails.
    pub async fn elements(
        &self,
        database: Database,
        key: &str,
        read: Read<'_>,
    ) -> Result<Vec<Vec<u8>>, Error> {
        let found: Vec<Vec<Vec<u8>>> = self.read(database, &[(key, read)]).await?;
        Ok(found.into_iter().next().unwrap_or_default())
    }

    /// True if there is an element or a member at one of these keys.
    ///
    /// # Errors
    /// As for [`Self::elements`].
    pub async fn any(&self, database: Database, keys: &[(&str, Read<'_>)]) -> Result<bool, Error> {
        let found: Vec<Vec<Vec<u8>>> = self.read(database, keys).await?;
        Ok(found.iter().any(|found| !found.is_empty()))
    }

    /// Entries of a stream.
    ///
    /// # Errors
    /// [`Error::WrongKind`] if it is no stream, or the call to the server fails.
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
