//! Hashes: fields and their values.

mod packed;

use bytes::Bytes;
use indexmap::IndexMap;

use self::packed::Packed;

/// Above this number of fields, or of bytes in a field or value, Redis stores a hash as a table, and HSCAN answers in
/// steps; below, it answers all at once.
const COMPACT_ENTRIES: usize = 128;
const COMPACT_BYTES: usize = 64;

/// A hash.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hash {
    fields: Fields,
    /// True once it exceeded a limit of compact hashes, as in Redis.
    big: bool,
}

/// The fields. A packed hash becomes a table when it exceeds the limits of [`Packed`], and stays one.
#[derive(Debug, Clone)]
enum Fields {
    Packed(Packed),
    Table(Box<IndexMap<Bytes, Bytes>>),
}

impl Default for Fields {
    fn default() -> Self {
        Self::Packed(Packed::default())
    }
}

impl Hash {
    pub(crate) fn len(&self) -> usize {
        match &self.fields {
            Fields::Packed(packed) => packed.len(),
            Fields::Table(table) => table.len(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn is_compact(&self) -> bool {
        !self.big
    }

    pub(crate) fn contains(&self, field: &[u8]) -> bool {
        self.get(field).is_some()
    }

    pub(crate) fn get(&self, field: &[u8]) -> Option<Bytes> {
        match &self.fields {
            Fields::Packed(packed) => packed.get(field),
            Fields::Table(table) => table.get(field).cloned(),
        }
    }

    /// Returns the fields from `index` on, each with its value.
    pub(crate) fn from(&self, index: usize) -> impl Iterator<Item = (Bytes, Bytes)> {
        let (packed, table) = match &self.fields {
            Fields::Packed(packed) => (Some(packed.iter().skip(index)), None),
            Fields::Table(table) => (None, table.get_range(index..)),
        };
        let table = table.into_iter().flatten();
        let table = table.map(|(field, value)| (field.clone(), value.clone()));
        packed.into_iter().flatten().chain(table)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Bytes, Bytes)> {
        self.from(0)
    }

    /// Sets a field, and returns whether it is new.
    pub(crate) fn set(&mut self, field: &Bytes, value: Bytes) -> bool {
        self.big |= field.len() > COMPACT_BYTES || value.len() > COMPACT_BYTES;
        let is_new = match self.packed_for(field, &value) {
            Some(packed) => packed.set(field, &value),
            None => self.table().insert(field.clone(), value).is_none(),
        };
        self.big |= self.len() > COMPACT_ENTRIES;
        is_new
    }

    pub(crate) fn remove(&mut self, field: &[u8]) -> bool {
        match &mut self.fields {
            Fields::Packed(packed) => packed.remove(field),
            Fields::Table(table) => table.swap_remove(field).is_some(),
        }
    }

    /// Returns the packed fields if they have room for one more.
    fn packed_for(&mut self, field: &[u8], value: &[u8]) -> Option<&mut Packed> {
        match &mut self.fields {
            Fields::Packed(packed) if packed.has_room(field, value) => Some(packed),
            _ => None,
        }
    }

    fn table(&mut self) -> &mut IndexMap<Bytes, Bytes> {
        if let Fields::Packed(packed) = &self.fields {
            // Copies, or each part would keep all bytes in memory.
            let copied = |part: Bytes| Bytes::copy_from_slice(&part);
            let pairs = packed.iter();
            let pairs = pairs.map(|(field, value)| (copied(field), copied(value)));
            self.fields = Fields::Table(Box::new(pairs.collect()));
        }
        match &mut self.fields {
            Fields::Table(table) => table,
            Fields::Packed(_) => unreachable!("it was made a table"),
        }
    }
}
