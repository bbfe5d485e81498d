//! What a stream remembers of its past, and what follows from it for how far a group is behind.

use super::{Group, StreamId};

/// What a stream remembers of the entries that it has and had.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Marks {
    /// How many entries there are.
    pub(super) len: usize,
    /// The first entry; 0-0 where there is none.
    pub(crate) first: StreamId,
    /// The last id that was given.
    pub(crate) last: StreamId,
    /// The highest id that was deleted by XDEL.
    pub(crate) max_deleted: StreamId,
    /// How many entries were ever added.
    pub(crate) added: u64,
}

impl Marks {
    /// Whether an entry from `from` on may have been deleted by XDEL.
    fn has_gaps_from(&self, from: StreamId) -> bool {
        self.len > 0
            && self.max_deleted != StreamId::MIN
            && self.first <= self.max_deleted
            && from <= self.max_deleted
    }

    /// How many entries were ever added up to an id, where that can be told.
    pub(crate) fn added_up_to(&self, id: StreamId) -> Option<i64> {
        let added = self.added.cast_signed();
        let len = i64::try_from(self.len).unwrap_or(i64::MAX);
        if self.added == 0 {
            return Some(0);
        }
        if id == self.last || (self.len == 0 && id < self.last) {
            return Some(added);
        }
        let whole = self.max_deleted == StreamId::MIN || self.max_deleted < self.first;
        if id > self.last || !whole {
            return None;
        }
        match id.cmp(&self.first) {
            std::cmp::Ordering::Less => Some(added.wrapping_sub(len)),
            std::cmp::Ordering::Equal => Some(added.wrapping_sub(len).wrapping_add(1)),
            std::cmp::Ordering::Greater => None,
        }
    }

    /// How many entries a group has not been given yet, where that can be told.
    pub(crate) fn lag(&self, group: &Group) -> Option<i64> {
        if self.added == 0 {
            return Some(0);
        }
        let known = group.read.filter(|_| !self.has_gaps_from(group.last));
        let read = known.or_else(|| self.added_up_to(group.last))?;
        Some(self.added.cast_signed().wrapping_sub(read))
    }

    /// Notes in a group that it was given an entry.
    pub(crate) fn advance(&self, group: &mut Group, id: StreamId) {
        if id <= group.last {
            return;
        }
        match group.read {
            Some(read) if !self.has_gaps_from(id) => group.read = Some(read.wrapping_add(1)),
            _ if self.added > 0 => group.read = self.added_up_to(id),
            _ => {}
        }
        group.last = id;
    }
}
