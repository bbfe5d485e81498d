//! Counters of a stream about its past, and the lag of groups that follows from them.

use super::{Group, StreamId};

/// Counters about present and past entries of a stream.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Marks {
    /// Number of entries.
    pub(super) len: usize,
    /// Id of the first entry; 0-0 without entries.
    pub(crate) first: StreamId,
    /// Greatest id so far.
    pub(crate) last: StreamId,
    /// Greatest id that XDEL deleted.
    pub(crate) max_deleted: StreamId,
    /// Number of entries that were ever added.
    pub(crate) added: u64,
}

impl Marks {
    /// Returns whether XDEL may have deleted an entry from `from` on.
    fn has_gaps_from(&self, from: StreamId) -> bool {
        self.len > 0
            && self.max_deleted != StreamId::MIN
            && self.first <= self.max_deleted
            && from <= self.max_deleted
    }

    /// Returns the number of entries that were ever added up to an id, if known.
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

    /// Returns the number of entries that a group has not received yet, if known.
    pub(crate) fn lag(&self, group: &Group) -> Option<i64> {
        if self.added == 0 {
            return Some(0);
        }
        let known = group.read.filter(|_| !self.has_gaps_from(group.last));
        let read = known.or_else(|| self.added_up_to(group.last))?;
        Some(self.added.cast_signed().wrapping_sub(read))
    }

    /// Records in a group that it received an entry.
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
