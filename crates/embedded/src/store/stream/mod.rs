//! Streams: entries in the order of their ids, and groups of consumers that read them.

mod entries;
mod group;
mod id;
mod marks;
mod node;
mod radix;
mod rewrite;

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;

pub(crate) use entries::{Cut, Entries};
pub(crate) use group::{Consumer, Group, Pending};
pub(crate) use id::StreamId;
pub(crate) use marks::Marks;
pub(crate) use node::EntryRef;
pub(crate) use rewrite::claim_command;
pub(super) use rewrite::commands;

/// A stream. It remains when it becomes empty.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stream {
    entries: Entries,
    marks: Marks,
    groups: BTreeMap<Bytes, Arc<Group>>,
}

impl Stream {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn entries(&self) -> &Entries {
        &self.entries
    }

    pub(crate) fn marks(&self) -> Marks {
        self.marks
    }

    pub(crate) fn marks_mut(&mut self) -> &mut Marks {
        &mut self.marks
    }

    /// Adds an entry, whose id is greater than the last one.
    pub(crate) fn append(&mut self, id: StreamId, fields: &[Bytes]) {
        self.entries.push(id, fields);
        self.marks.last = id;
        self.marks.added = self.marks.added.wrapping_add(1);
        self.marks.len = self.entries.len();
        if self.marks.len == 1 {
            self.marks.first = id;
        }
    }

    /// Deletes entries, and returns the number of existing ones.
    pub(crate) fn delete(&mut self, ids: &[StreamId]) -> usize {
        let first = self.marks.first;
        let mut deleted = 0;
        let mut look_again = false;
        for id in ids {
            if self.entries.delete(*id) {
                look_again |= *id == first;
                self.marks.max_deleted = self.marks.max_deleted.max(*id);
                deleted += 1;
            }
        }
        if deleted > 0 {
            self.shrunk(look_again);
        }
        deleted
    }

    /// Trims entries from the start; see [`Entries::trim`].
    pub(crate) fn trim(&mut self, cut: Cut, whole_nodes: bool, limit: usize) -> usize {
        let trimmed = self.entries.trim(cut, whole_nodes, limit);
        self.shrunk(trimmed > 0);
        trimmed
    }

    fn shrunk(&mut self, look_for_first: bool) {
        self.marks.len = self.entries.len();
        if self.marks.len == 0 {
            self.marks.first = StreamId::MIN;
        } else if look_for_first {
            let first = self.entries.all().next();
            self.marks.first = first.map_or(StreamId::MAX, |entry| entry.id());
        }
    }

    pub(crate) fn groups(&self) -> impl ExactSizeIterator<Item = (&Bytes, &Group)> {
        self.groups.iter().map(|(name, group)| (name, &**group))
    }

    pub(crate) fn group(&self, name: &[u8]) -> Option<&Group> {
        self.groups.get(name).map(|group| &**group)
    }

    /// Returns a group for changes, with the entries that it reads and their counters.
    pub(crate) fn group_mut(&mut self, name: &[u8]) -> Option<(&mut Group, &Entries, Marks)> {
        let group = Arc::make_mut(self.groups.get_mut(name)?);
        Some((group, &self.entries, self.marks))
    }

    /// Adds a group, and returns whether it is new.
    pub(crate) fn add_group(&mut self, name: &Bytes, last: StreamId, read: Option<i64>) -> bool {
        if self.groups.contains_key(name) {
            return false;
        }
        let group = Arc::new(Group::new(last, read));
        self.groups.insert(name.clone(), group);
        true
    }

    pub(crate) fn remove_group(&mut self, name: &[u8]) -> bool {
        self.groups.remove(name).is_some()
    }
}
