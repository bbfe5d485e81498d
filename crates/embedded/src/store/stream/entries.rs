//! All entries of a stream, in nodes by their first id.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;

use super::{
    StreamId,
    node::{EntryRef, Node},
    radix,
};

/// The entries of a stream. Copies share nodes until they are changed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Entries {
    nodes: BTreeMap<StreamId, Arc<Node>>,
    len: usize,
}

/// The part of a stream to trim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// All entries except this number of the last ones.
    MaxLen(u64),
    /// Entries before this id.
    MinId(StreamId),
}

impl Entries {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the entries with ids from `from` to `to`, inclusive.
    pub(crate) fn range(
        &self,
        from: StreamId,
        to: StreamId,
    ) -> impl DoubleEndedIterator<Item = EntryRef<'_>> {
        let start = self.node_of(from).map_or(from, |(start, _)| *start);
        let nodes = self.nodes.range(start.min(to)..=to);
        nodes
            .flat_map(|(_, node)| node.iter())
            .filter(move |entry| entry.id() >= from && entry.id() <= to)
    }

    pub(crate) fn all(&self) -> impl DoubleEndedIterator<Item = EntryRef<'_>> {
        self.range(StreamId::MIN, StreamId::MAX)
    }

    pub(crate) fn get(&self, id: StreamId) -> Option<EntryRef<'_>> {
        self.range(id, id).next()
    }

    pub(crate) fn contains(&self, id: StreamId) -> bool {
        self.node_of(id).is_some_and(|(_, node)| node.contains(id))
    }

    /// Returns the id of the last entry.
    pub(crate) fn last_id(&self) -> Option<StreamId> {
        Some(self.all().next_back()?.id())
    }

    /// Returns the start of the first node, with deleted entries.
    pub(crate) fn edge(&self) -> StreamId {
        let first = self.nodes.values().next();
        first.map_or(StreamId::MAX, |node| node.edges().0)
    }

    /// Returns the number of nodes, and the number of nodes in the radix tree in which Redis stores them.
    pub(crate) fn tree(&self) -> (usize, usize) {
        let keys: Vec<_> = self.nodes.keys().map(|id| id.to_be_bytes()).collect();
        (keys.len(), radix::nodes(&keys))
    }

    /// Adds an entry, whose id is greater than all others.
    pub(super) fn push(&mut self, id: StreamId, fields: &[Bytes]) {
        let bytes = fields.iter().map(Bytes::len).sum();
        self.len += 1;
        if let Some(mut last) = self.nodes.last_entry()
            && !last.get().is_full_for(bytes)
        {
            let master = *last.key();
            return Arc::make_mut(last.get_mut()).push(master, id, fields);
        }
        self.nodes.insert(id, Arc::new(Node::new(id, fields)));
    }

    /// Deletes an entry, and returns whether it existed.
    pub(super) fn delete(&mut self, id: StreamId) -> bool {
        let Some((start, node)) = self.nodes.range_mut(..=id).next_back() else {
            return false;
        };
        if !node.contains(id) {
            return false;
        }
        self.len -= 1;
        if node.live() == 1 {
            let start = *start;
            self.nodes.remove(&start);
        } else {
            Arc::make_mut(node).delete(id);
        }
        true
    }

    /// Trims entries from the start, optionally in whole nodes only, and at most `limit` unless it is 0. Returns
    /// their number.
    pub(super) fn trim(&mut self, cut: Cut, whole_nodes: bool, limit: usize) -> usize {
        let before = self.len;
        let surplus = |len: usize| match cut {
            Cut::MaxLen(max) => usize::try_from(max).map_or(0, |max| len.saturating_sub(max)),
            Cut::MinId(_) => usize::MAX,
        };
        while let Some(mut first) = self.nodes.first_entry() {
            let live = first.get().live();
            let surplus = surplus(self.len);
            if surplus == 0 || (limit > 0 && before - self.len + live > limit) {
                break;
            }
            let whole = match cut {
                Cut::MaxLen(_) => live <= surplus,
                Cut::MinId(min) => first.get().edges().1 < min,
            };
            if whole {
                first.remove();
                self.len -= live;
                continue;
            }
            if !whole_nodes {
                let node = Arc::make_mut(first.get_mut());
                self.len -= node.delete_while(|id, deleted| match cut {
                    Cut::MaxLen(_) => deleted < surplus,
                    Cut::MinId(min) => id < min,
                });
            }
            break;
        }
        before - self.len
    }

    fn node_of(&self, id: StreamId) -> Option<(&StreamId, &Arc<Node>)> {
        self.nodes.range(..=id).next_back()
    }
}
