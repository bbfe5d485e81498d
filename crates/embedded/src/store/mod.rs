//! The data: databases of keys, each a value with an optional deadline. No commands here.

mod database;
mod effect;
mod hash;
mod ranking;
mod scan;
mod set;
mod snapshot;
mod stream;
mod value;
mod zset;

use std::{collections::BTreeSet, sync::Arc};

use bytes::Bytes;

use self::database::Database;

pub(crate) use effect::Effect;
pub(crate) use hash::Hash;
pub(crate) use ranking::{Ranked, Ranking};
pub(crate) use scan::{ScanStep, scan_step};
pub(crate) use set::Set;
pub(crate) use stream::{
    Consumer, Cut, Entries, EntryRef, Group, Marks, Pending, Stream, StreamId, claim_command,
};
pub(crate) use value::{Kind, List, Value};
pub(crate) use zset::Zset;

/// Number of databases, as in Redis by default.
pub(crate) const DATABASES: usize = 16;

/// All databases.
///
/// Deadlines are in milliseconds since 1970; a key expires once that time is past.
pub(crate) struct Store {
    databases: Vec<Database>,
    /// Every deadline, the earliest first, so that a sweep need not scan the keys.
    deadlines: BTreeSet<(i64, usize, Bytes)>,
    /// The result of [`Self::take_ready`].
    ready: Vec<(usize, Bytes)>,
}

impl Store {
    pub(crate) fn new() -> Self {
        Self {
            databases: std::iter::repeat_with(Database::default)
                .take(DATABASES)
                .collect(),
            deadlines: BTreeSet::new(),
            ready: Vec::new(),
        }
    }

    /// Returns the number of keys of a database, with expired ones that are not yet removed.
    pub(crate) fn len(&self, db: usize) -> usize {
        self.databases[db].keys.len()
    }

    /// Returns the number of keys of a database with a deadline.
    pub(crate) fn volatile(&self, db: usize) -> usize {
        self.databases[db].volatile
    }

    pub(crate) fn get(&self, db: usize, key: &[u8]) -> Option<&Value> {
        Some(&self.databases[db].keys.get(key)?.value)
    }

    pub(crate) fn get_mut(&mut self, db: usize, key: &[u8]) -> Option<&mut Value> {
        Some(Arc::make_mut(
            &mut self.databases[db].keys.get_mut(key)?.value,
        ))
    }

    /// Returns the key at a position in the order of scans and random picks.
    pub(crate) fn key_at(&self, db: usize, index: usize) -> Option<&Bytes> {
        Some(self.databases[db].keys.get_index(index)?.0)
    }

    pub(crate) fn keys(&self, db: usize) -> impl Iterator<Item = &Bytes> {
        self.databases[db].keys.keys()
    }

    /// Sets a value; a deadline of the key stays. Returns whether the key is new.
    pub(crate) fn put(&mut self, db: usize, key: &Bytes, value: Value) -> bool {
        let may_serve = value.may_serve();
        let before = self.databases[db].put(key, value);
        let was_stream = before
            .as_deref()
            .is_some_and(|before| matches!(before, Value::Stream(_)));
        if was_stream || may_serve {
            self.signal(db, key);
        }
        before.is_none()
    }

    /// Records that clients that wait for a key may be served.
    pub(crate) fn signal(&mut self, db: usize, key: &Bytes) {
        let last = self.ready.last();
        if last.is_none_or(|(of, other)| *of != db || other != key) {
            self.ready.push((db, key.clone()));
        }
    }

    /// Returns the keys, in order, that may serve clients since the last call: new lists or streams, and streams with
    /// a new entry. It includes removed streams, because clients wait in vain in their groups.
    pub(crate) fn take_ready(&mut self) -> Vec<(usize, Bytes)> {
        std::mem::take(&mut self.ready)
    }

    /// Keeps keys of [`Self::take_ready`] for the next call.
    pub(crate) fn still_ready(&mut self, keys: &[(usize, Bytes)]) {
        self.ready.splice(0..0, keys.iter().cloned());
    }

    pub(crate) fn remove(&mut self, db: usize, key: &Bytes) -> Option<Value> {
        self.set_deadline(db, key, None);
        let entry = self.databases[db].keys.swap_remove(key)?;
        if matches!(*entry.value, Value::Stream(_)) {
            self.signal(db, key);
        }
        Some(Arc::unwrap_or_clone(entry.value))
    }

    pub(crate) fn deadline(&self, db: usize, key: &[u8]) -> Option<i64> {
        self.databases[db].keys.get(key)?.deadline
    }

    /// Sets or removes the deadline of an existing key. Returns whether it had one.
    pub(crate) fn set_deadline(&mut self, db: usize, key: &Bytes, deadline: Option<i64>) -> bool {
        let database = &mut self.databases[db];
        let Some(entry) = database.keys.get_mut(key) else {
            return false;
        };
        let before = std::mem::replace(&mut entry.deadline, deadline);
        if let Some(before) = before {
            self.deadlines.remove(&(before, db, key.clone()));
            database.volatile -= 1;
        }
        if let Some(deadline) = deadline {
            self.deadlines.insert((deadline, db, key.clone()));
            database.volatile += 1;
        }
        before.is_some()
    }

    /// Returns whether a key has expired and was not removed yet.
    pub(crate) fn is_due(&self, db: usize, key: &[u8], now_ms: u64) -> bool {
        self.deadline(db, key)
            .is_some_and(|deadline| is_past(deadline, now_ms))
    }

    /// Removes up to `limit` expired keys, the oldest first, with a DEL for each. Returns the next deadline, which is
    /// in the past if the limit was reached.
    pub(crate) fn expire_some(
        &mut self,
        now_ms: u64,
        limit: usize,
        effects: &mut Vec<Effect>,
    ) -> Option<u64> {
        for _ in 0..limit {
            match self.deadlines.first() {
                Some((deadline, db, key)) if is_past(*deadline, now_ms) => {
                    let (db, key) = (*db, key.clone());
                    self.remove(db, &key);
                    self.touch(db, &key);
                    effects.push(Effect {
                        db,
                        args: vec![Bytes::from_static(b"DEL"), key],
                    });
                }
                _ => break,
            }
        }
        let (deadline, ..) = self.deadlines.first()?;
        Some(u64::try_from(deadline.saturating_add(1)).unwrap_or(0))
    }

    /// Removes all keys of a database.
    pub(crate) fn flush(&mut self, db: usize) {
        let streams = self.databases[db].streams().map(|key| (db, key.clone()));
        self.ready.extend(streams);
        self.databases[db].flush();
        self.deadlines.retain(|(_, of, _)| *of != db);
    }

    /// Begins to watch a key for a transaction: every write changes its version. An expired key must be removed
    /// before, because its removal is a write too.
    pub(crate) fn watch(&mut self, db: usize, key: &Bytes) -> u64 {
        self.databases[db].watch(key)
    }

    /// Returns the version of a watched key.
    pub(crate) fn version(&self, db: usize, key: &[u8]) -> Option<u64> {
        self.databases[db].version(key)
    }

    /// Ends one [`Self::watch`] of the key.
    pub(crate) fn unwatch(&mut self, db: usize, key: &[u8]) {
        self.databases[db].unwatch(key);
    }

    /// Records a write to the key.
    pub(crate) fn touch(&mut self, db: usize, key: &[u8]) {
        self.databases[db].touch(key);
    }

    /// Returns the data for a later [`Self::snapshot`]. It takes some 100 ns for each key, and values are shared
    /// until they are changed.
    pub(crate) fn frozen(&self) -> Self {
        Self {
            databases: self.databases.iter().map(Database::frozen).collect(),
            deadlines: BTreeSet::new(),
            ready: Vec::new(),
        }
    }

    /// Returns all data as commands that create it in an empty server, each of bounded size.
    pub(crate) fn snapshot(&self) -> impl Iterator<Item = Effect> {
        self.databases
            .iter()
            .enumerate()
            .flat_map(|(db, database)| snapshot::effects(db, database))
    }
}

fn is_past(deadline: i64, now_ms: u64) -> bool {
    i64::try_from(now_ms).unwrap_or(i64::MAX) > deadline && now_ms > 0
}

#[cfg(test)]
mod tests;
