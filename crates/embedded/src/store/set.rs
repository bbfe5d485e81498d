//! Sets of members.

use bytes::Bytes;
use indexmap::IndexSet;

use crate::resp::parse_integer;

/// Greatest number of integers in a set that Redis stores as an array, for which SSCAN answers all at once.
const COMPACT_ENTRIES: usize = 512;

/// A set. It is compact until it exceeds the limit or gets a member that is no integer, and never again, as in Redis.
#[derive(Debug, Clone, Default)]
pub(crate) struct Set {
    members: IndexSet<Bytes>,
    big: bool,
}

impl Set {
    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub(crate) fn is_compact(&self) -> bool {
        !self.big
    }

    pub(crate) fn contains(&self, member: &[u8]) -> bool {
        self.members.contains(member)
    }

    pub(crate) fn at(&self, index: usize) -> Option<&Bytes> {
        self.members.get_index(index)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Bytes> {
        self.members.iter()
    }

    /// Adds a member, and returns whether it is new.
    pub(crate) fn insert(&mut self, member: &Bytes) -> bool {
        if self.members.contains(member) {
            return false;
        }
        self.members.insert(member.clone());
        self.big =
            self.big || self.members.len() > COMPACT_ENTRIES || parse_integer(member).is_none();
        true
    }

    pub(crate) fn remove(&mut self, member: &[u8]) -> bool {
        self.members.swap_remove(member)
    }

    pub(crate) fn remove_at(&mut self, index: usize) -> Option<Bytes> {
        self.members.swap_remove_index(index)
    }
}
