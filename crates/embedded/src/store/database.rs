//! One database: its keys, and those watched by transactions.

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use indexmap::IndexMap;

use super::Value;

/// A removal moves the last key into the gap, which keeps scans (see [`super::scan_step`]) and random picks cheap.
#[derive(Default)]
pub(super) struct Database {
    pub(super) keys: IndexMap<Bytes, Entry>,
    /// Number of keys with a deadline.
    pub(super) volatile: usize,
    watched: HashMap<Bytes, Watched>,
}

#[derive(Clone)]
pub(super) struct Entry {
    /// Shared with snapshots; the first write then makes a copy.
    pub(super) value: Arc<Value>,
    pub(super) deadline: Option<i64>,
}

/// A key watched by transactions.
#[derive(Default)]
struct Watched {
    watchers: usize,
    version: u64,
}

impl Database {
    /// Sets a value, and returns the old one.
    pub(super) fn put(&mut self, key: &Bytes, value: Value) -> Option<Arc<Value>> {
        if let Some(entry) = self.keys.get_mut(key) {
            return Some(std::mem::replace(&mut entry.value, Arc::new(value)));
        }
        self.keys.insert(
            key.clone(),
            Entry {
                value: Arc::new(value),
                deadline: None,
            },
        );
        None
    }

    /// Returns the same keys and values at little cost, whatever the size of the values.
    pub(super) fn frozen(&self) -> Self {
        Self {
            keys: self.keys.clone(),
            ..Self::default()
        }
    }

    /// Returns the keys of streams.
    pub(super) fn streams(&self) -> impl Iterator<Item = &Bytes> {
        let streams = self.keys.iter();
        let streams = streams.filter(|(_, entry)| matches!(*entry.value, Value::Stream(_)));
        streams.map(|(key, _)| key)
    }

    pub(super) fn flush(&mut self) {
        // A key that did not exist is not changed by this, as in Redis.
        for (key, watched) in &mut self.watched {
            watched.version += u64::from(self.keys.contains_key(key));
        }
        self.keys = IndexMap::new();
        self.volatile = 0;
    }

    pub(super) fn watch(&mut self, key: &Bytes) -> u64 {
        let watched = self.watched.entry(key.clone()).or_default();
        watched.watchers += 1;
        watched.version
    }

    pub(super) fn version(&self, key: &[u8]) -> Option<u64> {
        Some(self.watched.get(key)?.version)
    }

    pub(super) fn unwatch(&mut self, key: &[u8]) {
        if let Some(watched) = self.watched.get_mut(key) {
            watched.watchers -= 1;
            if watched.watchers == 0 {
                self.watched.remove(key);
            }
        }
    }

    pub(super) fn touch(&mut self, key: &[u8]) {
        if let Some(watched) = self.watched.get_mut(key) {
            watched.version += 1;
        }
    }
}
