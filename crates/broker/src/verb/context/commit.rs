//! commit: several changes in one step, if all conditions hold.

use meshwork_macros::boxed;
use std::collections::HashMap;

use super::{ContextStore, Database, MAX_STEPS};
use crate::error::Error;
use crate::script::Verb;
use crate::verb::at_most;

/// Conditions and changes, over the keys of one context or of the node. All conditions are checked first. The changes
/// are then made in the order in which they were added.
#[derive(Debug, Clone, Default)]
pub struct Commit {
    keys: Vec<String>,
    /// Positions of the keys in the call.
    places: HashMap<String, usize>,
    /// Per step: its word, the position of its key from 1, and the rest.
    steps: Vec<(&'static str, usize, Vec<Vec<u8>>)>,
}

/// Outcome of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Committed {
    /// All changes were made.
    Done,
    /// No change was made: the condition with this number, from 1, does not hold.
    Unmet(usize),
}

impl Committed {
    /// Returns true if the changes were made.
    #[must_use]
    pub fn is_done(self) -> bool {
        self == Self::Done
    }
}

fn bytes<T: AsRef<[u8]>>(parts: impl IntoIterator<Item = T>) -> Vec<Vec<u8>> {
    parts
        .into_iter()
        .map(|part| part.as_ref().to_vec())
        .collect()
}

impl Commit {
    fn step(mut self, word: &'static str, key: &str, args: Vec<Vec<u8>>) -> Self {
        let at = *self.places.entry(key.to_owned()).or_insert_with(|| {
            self.keys.push(key.to_owned());
            self.keys.len() - 1
        });
        self.steps.push((word, at + 1, args));
        self
    }

    /// Requires that a field of a hash has this value; an empty value requires that the field is missing.
    #[must_use]
    pub fn is(self, key: &str, field: &str, value: &[u8]) -> Self {
        self.step("is", key, vec![field.into(), value.to_vec()])
    }

    /// Requires that the key does not exist.
    #[must_use]
    pub fn absent(self, key: &str) -> Self {
        self.step("absent", key, Vec::new())
    }

    /// Requires that the whole database of `key` is empty.
    #[must_use]
    pub fn empty(self, key: &str) -> Self {
        self.step("empty", key, Vec::new())
    }

    /// Requires that a list has this element.
    #[must_use]
    pub fn listed(self, key: &str, element: &[u8]) -> Self {
        self.step("listed", key, bytes([element]))
    }

    /// Sets fields of a hash.
    #[must_use]
    pub fn set<T: AsRef<[u8]>>(self, key: &str, fields: impl IntoIterator<Item = (T, T)>) -> Self {
        let fields = fields.into_iter().flat_map(|(field, value)| [field, value]);
        let fields = bytes(fields);
        match fields.is_empty() {
            true => self,
            false => self.step("set", key, fields),
        }
    }

    /// Adds an element at the head of a list.
    #[must_use]
    pub fn push(self, key: &str, element: &[u8]) -> Self {
        self.step("push", key, bytes([element]))
    }

    /// Removes all occurrences of an element from a list. Skipped if the key has another type.
    #[must_use]
    pub fn drop(self, key: &str, element: &[u8]) -> Self {
        self.step("drop", key, bytes([element]))
    }

    /// Adds a member to a sorted set, with a time in milliseconds as its score.
    #[must_use]
    pub fn mark(self, key: &str, at_ms: u64, member: &[u8]) -> Self {
        self.step("mark", key, vec![at_ms.to_string().into(), member.to_vec()])
    }

    /// Removes a member from a sorted set. Skipped if the key has another type.
    #[must_use]
    pub fn unmark(self, key: &str, member: &[u8]) -> Self {
        self.step("unmark", key, bytes([member]))
    }

    /// Sets a string that expires after a time in milliseconds.
    #[must_use]
    pub fn keep(self, key: &str, value: &str, for_ms: u64) -> Self {
        self.step("keep", key, bytes([value, &for_ms.to_string()]))
    }

    /// Deletes a key of any type.
    #[must_use]
    pub fn delete(self, key: &str) -> Self {
        self.step("delete", key, Vec::new())
    }

    /// Appends an entry to a stream that keeps about `most` entries. `at` (seconds since 1970) is added to its fields.
    /// Skipped if the key has another type.
    #[must_use]
    pub fn note(self, key: &str, most: u32, fields: &[(&str, &str)]) -> Self {
        let most = most.to_string();
        let pairs = fields.iter().flat_map(|(field, value)| [*field, *value]);
        self.step(
            "note",
            key,
            bytes(std::iter::once(most.as_str()).chain(pairs)),
        )
    }

    /// Counts one more in the row of an author and the present minute, with the last text, in a hash that keeps `most` rows.
    /// Skipped if the key has another type.
    #[must_use]
    pub fn count(self, key: &str, most: u32, author: &str, text: &str) -> Self {
        self.step("count", key, bytes([&most.to_string(), author, text]))
    }
}

impl ContextStore {
    /// Executes the commit in one step. With [`Broker::acknowledge`](crate::Broker::acknowledge) it succeeds when replicas
    /// have the change, or that which prevents it.
    ///
    /// # Errors
    /// [`Error::TooMany`] beyond [`MAX_STEPS`]; [`Error::WrongKind`] if a key has another type than a step needs, and
    /// nothing is changed then; [`Error::NotReplicated`], after the change; or the call to the server fails.
    #[boxed]
    pub async fn commit(&self, database: Database, commit: &Commit) -> Result<Committed, Error> {
        at_most("commit", MAX_STEPS, commit.steps.len())?;
        let first = commit.keys.first().map_or("", String::as_str);
        let conn = self.conn_for(first).await?;
        let mut call = self.scripts.call(Verb::ContextCommit);
        for key in &commit.keys {
            call.push_key(key);
        }
        let mut call = database.entered(call.arg(self.clock.argument()));
        for (word, key, args) in &commit.steps {
            call.push_arg(*word);
            call.push_arg(*key);
            call.push_arg(args.len());
            for arg in args {
                call.push_arg(arg.as_slice());
            }
        }
        Ok(match self.confirmed(first, conn, call).await? {
            0 => Committed::Done,
            unmet => Committed::Unmet(usize::try_from(unmet).unwrap_or(usize::MAX)),
        })
    }
}
