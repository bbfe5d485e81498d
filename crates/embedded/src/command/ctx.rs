//! Access of commands to the data: expired keys are removed, types are checked, and writes are recorded.

use bytes::Bytes;

use super::{Ctx, Stop, args::wrong_type};
use crate::{
    Reply,
    store::{Effect, Kind, Value},
};

impl Ctx<'_> {
    /// Returns the time for calculations.
    pub(super) fn now(&self) -> i64 {
        i64::try_from(self.now_ms).unwrap_or(i64::MAX)
    }

    /// Returns the real time, also in a replay.
    pub(super) fn clock(&self) -> i64 {
        i64::try_from(self.clock_ms).unwrap_or(i64::MAX)
    }

    /// Removes the key if it is due.
    pub(crate) fn expire(&mut self, key: &Bytes) {
        self.expire_in(self.db, key);
    }

    pub(super) fn expire_in(&mut self, db: usize, key: &Bytes) {
        if self.store.is_due(db, key, self.now_ms) {
            self.store.remove(db, key);
            self.store.touch(db, key);
            self.effects.push(Effect {
                db,
                args: vec![Bytes::from_static(b"DEL"), key.clone()],
            });
        }
    }

    pub(super) fn value(&mut self, key: &Bytes) -> Option<&Value> {
        self.expire(key);
        self.store.get(self.db, key)
    }

    pub(super) fn exists(&mut self, key: &Bytes) -> bool {
        self.value(key).is_some()
    }

    /// Returns the value of a key, which must have this type if it exists.
    pub(super) fn get<K: Kind>(&mut self, key: &Bytes) -> Result<Option<&K>, Stop> {
        self.value(key)
            .map(|value| K::of(value).ok_or_else(wrong_type))
            .transpose()
    }

    pub(super) fn get_mut<K: Kind>(&mut self, key: &Bytes) -> Result<Option<&mut K>, Stop> {
        self.expire(key);
        let value = self.store.get_mut(self.db, key);
        value
            .map(|value| K::of_mut(value).ok_or_else(wrong_type))
            .transpose()
    }

    /// Returns the value of a key, which is created if it does not exist. The caller adds an element.
    pub(super) fn get_or_make<K: Kind>(&mut self, key: &Bytes) -> Result<&mut K, Stop> {
        if self.get::<K>(key)?.is_none() {
            self.put(self.db, key, K::default().into_value());
        }
        let value = self.store.get_mut(self.db, key).and_then(K::of_mut);
        Ok(value.expect("checked or made above"))
    }

    /// Returns the value of a key that is known not to be expired, or not to exist.
    pub(super) fn peek<K: Kind>(&self, key: &[u8]) -> Result<Option<&K>, Stop> {
        let value = self.store.get(self.db, key);
        value
            .map(|value| K::of(value).ok_or_else(wrong_type))
            .transpose()
    }

    /// Sets a value; a deadline of the key stays.
    pub(super) fn put(&mut self, db: usize, key: &Bytes, value: Value) {
        self.store.put(db, key, value);
    }

    /// Removes the key if its collection has become empty.
    pub(super) fn drop_if_empty(&mut self, key: &Bytes) {
        if self
            .store
            .get(self.db, key)
            .is_some_and(Value::is_empty_collection)
        {
            self.store.remove(self.db, key);
        }
    }

    /// Removes a key, and records it.
    pub(super) fn delete(&mut self, key: &Bytes) {
        self.store.remove(self.db, key);
        self.wrote([key], vec![word("DEL"), key.clone()]);
    }

    /// Gives a key a deadline, and records it. With one that is not in the future, the key is removed at once; in a
    /// replay the log has the removal.
    pub(super) fn set_deadline(&mut self, key: &Bytes, deadline: i64) {
        if self.now_ms > 0 && deadline <= self.now() {
            return self.delete(key);
        }
        self.store.set_deadline(self.db, key, Some(deadline));
        self.wrote(
            [key],
            vec![word("PEXPIREAT"), key.clone(), decimal(deadline)],
        );
    }

    /// Removes the deadline of a key, and records it. Returns whether it had one.
    pub(super) fn persist(&mut self, key: &Bytes) -> bool {
        let had = self.store.set_deadline(self.db, key, None);
        if had {
            self.wrote([key], vec![word("PERSIST"), key.clone()]);
        }
        had
    }

    /// Records a write to keys of the selected database, and the command that repeats it.
    pub(super) fn wrote<'k>(
        &mut self,
        keys: impl IntoIterator<Item = &'k Bytes>,
        command: Vec<Bytes>,
    ) {
        for key in keys {
            self.store.touch(self.db, key);
        }
        self.effects.push(Effect {
            db: self.db,
            args: command,
        });
    }
}

/// A word of a command that repeats a write.
pub(super) fn word(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

/// A number in a command that repeats a write.
pub(super) fn decimal(value: impl ToString) -> Bytes {
    value.to_string().into()
}

impl Reply {
    /// Returns a count as an integer.
    pub(crate) fn count(number: usize) -> Self {
        Self::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }
}
