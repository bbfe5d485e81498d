//! Consumer groups: their position, and the pending entries of their consumers.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::StreamId;

/// A consumer group.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    /// The last delivered entry.
    pub(crate) last: StreamId,
    /// Number of entries that were read up to there, if known.
    pub(crate) read: Option<i64>,
    pending: BTreeMap<StreamId, Pending>,
    consumers: BTreeMap<Bytes, Consumer>,
}

/// A delivered entry that was not acknowledged yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pending {
    pub(crate) consumer: Bytes,
    /// Time of the delivery, in milliseconds since 1970.
    pub(crate) delivered: i64,
    /// Number of deliveries.
    pub(crate) count: i64,
}

/// A consumer of a group.
#[derive(Debug, Clone, Default)]
pub(crate) struct Consumer {
    /// Time of its last command.
    pub(crate) seen: i64,
    pending: BTreeSet<StreamId>,
}

impl Consumer {
    pub(crate) fn pending(&self) -> &BTreeSet<StreamId> {
        &self.pending
    }
}

impl Group {
    pub(super) fn new(last: StreamId, read: Option<i64>) -> Self {
        Self {
            last,
            read,
            pending: BTreeMap::new(),
            consumers: BTreeMap::new(),
        }
    }

    /// Returns the number of read entries, as an argument of ENTRIESREAD.
    pub(crate) fn read_text(&self) -> Bytes {
        let read = self.read.filter(|read| *read >= 0);
        read.unwrap_or(-1).to_string().into()
    }

    /// Returns the pending entries.
    pub(crate) fn pending(&self) -> &BTreeMap<StreamId, Pending> {
        &self.pending
    }

    pub(crate) fn consumers(&self) -> &BTreeMap<Bytes, Consumer> {
        &self.consumers
    }

    /// Records a command of a consumer, and returns whether the consumer is new.
    pub(crate) fn see(&mut self, name: &Bytes, now: i64) -> bool {
        if let Some(consumer) = self.consumers.get_mut(name) {
            consumer.seen = now;
            return false;
        }
        self.add_consumer(name, now)
    }

    /// Adds a consumer unless it exists, and returns whether it is new.
    pub(crate) fn add_consumer(&mut self, name: &Bytes, now: i64) -> bool {
        if self.consumers.contains_key(name) {
            return false;
        }
        let consumer = Consumer {
            seen: now,
            pending: BTreeSet::new(),
        };
        self.consumers.insert(name.clone(), consumer);
        true
    }

    /// Removes a consumer and its pending entries, and returns their number; `None` if it did not exist.
    pub(crate) fn remove_consumer(&mut self, name: &[u8]) -> Option<usize> {
        let consumer = self.consumers.remove(name)?;
        for id in &consumer.pending {
            self.pending.remove(id);
        }
        Some(consumer.pending.len())
    }

    /// Makes an entry pending for an existing consumer only.
    pub(crate) fn assign(&mut self, id: StreamId, pending: Pending) {
        let name = pending.consumer.clone();
        if let Some(before) = self.pending.insert(id, pending)
            && before.consumer != name
            && let Some(consumer) = self.consumers.get_mut(&before.consumer)
        {
            consumer.pending.remove(&id);
        }
        if let Some(consumer) = self.consumers.get_mut(&name) {
            consumer.pending.insert(id);
        }
    }

    /// Acknowledges an entry, and returns its pending state.
    pub(crate) fn release(&mut self, id: StreamId) -> Option<Pending> {
        let pending = self.pending.remove(&id)?;
        if let Some(consumer) = self.consumers.get_mut(&pending.consumer) {
            consumer.pending.remove(&id);
        }
        Some(pending)
    }
}
