//! Hashes: fields and their values.

use bytes::Bytes;
use indexmap::IndexMap;

/// Above this number of fields, or of bytes in a field or value, Redis stores a hash as a table, and HSCAN answers in
/// steps; below, it answers all at once.
const COMPACT_ENTRIES: usize = 128;
const COMPACT_BYTES: usize = 64;

/// A hash. It is compact until it exceeds a limit, and never again, as in Redis.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hash {
    fields: IndexMap<Bytes, Bytes>,
    big: bool,
}

impl Hash {
    pub(crate) fn len(&self) -> usize {
        self.fields.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    pub(crate) fn is_compact(&self) -> bool {
        !self.big
    }

    pub(crate) fn get(&self, field: &[u8]) -> Option<&Bytes> {
        self.fields.get(field)
    }

    pub(crate) fn at(&self, index: usize) -> Option<(&Bytes, &Bytes)> {
        self.fields.get_index(index)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Bytes, &Bytes)> {
        self.fields.iter()
    }

    /// Sets a field, and returns whether it is new.
    pub(crate) fn set(&mut self, field: &Bytes, value: Bytes) -> bool {
        self.big |= field.len() > COMPACT_BYTES || value.len() > COMPACT_BYTES;
        if let Some(slot) = self.fields.get_mut(field) {
            *slot = value;
            return false;
        }
        self.fields.insert(field.clone(), value);
        self.big |= self.fields.len() > COMPACT_ENTRIES;
        true
    }

    pub(crate) fn remove(&mut self, field: &[u8]) -> bool {
        self.fields.swap_remove(field).is_some()
    }
}
