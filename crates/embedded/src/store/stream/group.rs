//! Consumer groups: how far a group has read, and who has what to do.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::StreamId;

/// A consumer group.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    /// The last entry that was delivered.
    pub(crate) last: StreamId,
    /// How many entries of the stream were read up to there, if that is known.
    pub(crate) read: Option<i64>,
    pending: BTreeMap<StreamId, Pending>,
    consumers: BTreeMap<Bytes, Consumer>,
}

/// An entry that was delivered and not acknowledged yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pending {
    pub(crate) consumer: Bytes,
    /// When it was delivered, in milliseconds since 1970.
    pub(crate) delivered: i64,
    /// How often.
    pub(crate) count: i64,
}

/// One who reads in a group.
#[derive(Debug, Clone, Default)]
pub(crate) struct Consumer {
    /// When it last asked for something.
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

    /// How many entries were read, as ENTRIESREAD takes it.
    pub(crate) fn read_text(&self) -> Bytes {
        let read = self.read.filter(|read| *read >= 0);
        read.unwrap_or(-1).to_string().into()
    }

    /// What is not acknowledged.
    pub(crate) fn pending(&self) -> &BTreeMap<StreamId, Pending> {
        &self.pending
    }

    pub(crate) fn consumers(&self) -> &BTreeMap<Bytes, Consumer> {
        &self.consumers
    }

    /// Notes that a consumer has asked for something; returns whether it is new.
    pub(crate) fn see(&mut self, name: &Bytes, now: i64) -> bool {
        if let Some(consumer) = self.consumers.get_mut(name) {
            consumer.seen = now;
            return false;
        }
        self.add_consumer(name, now)
    }

    /// Adds a consumer unless it is there; returns whether it is new.
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

    /// Removes a consumer and what is pending for it: how much that was, if it was there.
    pub(crate) fn remove_consumer(&mut self, name: &[u8]) -> Option<usize> {
        let consumer = self.consumers.remove(name)?;
        for id in &consumer.pending {
            self.pending.remove(id);
        }
        Some(consumer.pending.len())
    }

    /// Makes an entry pending for a consumer that is there, and for nobody else.
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

    /// Acknowledges an entry; returns what it was.
    pub(crate) fn release(&mut self, id: StreamId) -> Option<Pending> {
        let pending = self.pending.remove(&id)?;
        if let Some(consumer) = self.consumers.get_mut(&pending.consumer) {
            consumer.pending.remove(&id);
        }
        Some(pending)
    }
}
