//! Small hashes in one allocation.

use bytes::{BufMut as _, Bytes};

/// Greatest number of bytes. Each change copies them all.
const MAX_BYTES: usize = 2048;

/// Bytes before each field: the lengths of the field and of its value, as `u16`.
const HEADER: usize = 4;

/// Fields in the order of their insertion. A job's record takes a third of the memory that a table takes.
#[derive(Debug, Clone, Default)]
pub(super) struct Packed {
    /// For each field a header, its name and its value.
    bytes: Bytes,
    len: u16,
}

/// The position of a field.
struct Place {
    start: usize,
    /// Start of its value.
    value: usize,
    end: usize,
}

impl Packed {
    pub(super) fn len(&self) -> usize {
        self.len.into()
    }

    pub(super) fn has_room(&self, field: &[u8], value: &[u8]) -> bool {
        self.bytes.len() + HEADER + field.len() + value.len() <= MAX_BYTES
    }

    pub(super) fn get(&self, field: &[u8]) -> Option<Bytes> {
        let place = self.find(field)?;
        Some(self.bytes.slice(place.value..place.end))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Bytes, Bytes)> {
        self.places().map(|place| {
            let field = self.bytes.slice(place.start + HEADER..place.value);
            (field, self.bytes.slice(place.value..place.end))
        })
    }

    /// Sets a field, and returns whether it is new. There must be room for it.
    pub(super) fn set(&mut self, field: &[u8], value: &[u8]) -> bool {
        let found = self.find(field);
        let is_new = found.is_none();
        let (before, after) = match found {
            Some(place) => (place.start, place.end),
            None => (self.bytes.len(), self.bytes.len()),
        };
        let tail = self.bytes.len() - after;
        let mut bytes = Vec::with_capacity(before + HEADER + field.len() + value.len() + tail);
        bytes.extend_from_slice(&self.bytes[..before]);
        bytes.put_u16(length(field));
        bytes.put_u16(length(value));
        bytes.extend_from_slice(field);
        bytes.extend_from_slice(value);
        bytes.extend_from_slice(&self.bytes[after..]);
        self.bytes = bytes.into();
        self.len += u16::from(is_new);
        is_new
    }

    pub(super) fn remove(&mut self, field: &[u8]) -> bool {
        let Some(place) = self.find(field) else {
            return false;
        };
        self.bytes = [&self.bytes[..place.start], &self.bytes[place.end..]]
            .concat()
            .into();
        self.len -= 1;
        true
    }

    fn find(&self, field: &[u8]) -> Option<Place> {
        self.places()
            .find(|place| self.bytes[place.start + HEADER..place.value] == *field)
    }

    fn places(&self) -> impl Iterator<Item = Place> {
        let mut start = 0;
        std::iter::from_fn(move || {
            let [field_high, field_low, value_high, value_low] =
                *self.bytes.get(start..)?.first_chunk::<HEADER>()?;
            let value = start + HEADER + usize::from(u16::from_be_bytes([field_high, field_low]));
            let end = value + usize::from(u16::from_be_bytes([value_high, value_low]));
            let place = Place { start, value, end };
            start = end;
            Some(place)
        })
    }
}

/// Returns the length of a part, which is less than [`MAX_BYTES`].
fn length(part: &[u8]) -> u16 {
    u16::try_from(part.len()).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::store::Hash;

    proptest! {
        /// Packed and as a table, a hash has the fields that were set and not removed, in the order of a list.
        #[test]
        fn a_hash_has_the_fields_that_were_set(
            steps in proptest::collection::vec((0..4u8, 0..40u8, 0..400usize), 0..200),
        ) {
            let mut hash = Hash::default();
            let mut packed = Packed::default();
            let mut model: Vec<(Bytes, Bytes)> = Vec::new();
            for (step, field, len) in steps {
                let field = Bytes::from(vec![field; usize::from(field % 7)]);
                let known = model.iter().position(|(name, _)| *name == field);
                if step == 0 {
                    prop_assert_eq!(hash.remove(&field), known.is_some());
                    prop_assert_eq!(packed.remove(&field), known.is_some());
                    known.map(|at| model.remove(at));
                    continue;
                }
                let value = Bytes::from(vec![step; len]);
                prop_assert_eq!(hash.set(&field, value.clone()), known.is_none());
                if !packed.has_room(&field, &value) {
                    packed = Packed::default();
                    model.clear();
                    hash = Hash::default();
                    continue;
                }
                prop_assert_eq!(packed.set(&field, &value), known.is_none());
                match known {
                    Some(at) => model[at].1 = value,
                    None => model.push((field, value)),
                }
                prop_assert_eq!(packed.iter().collect::<Vec<_>>(), model.clone());
                prop_assert_eq!(hash.iter().collect::<Vec<_>>(), model.clone());
                prop_assert_eq!(hash.len(), model.len());
                for (field, value) in &model {
                    prop_assert_eq!(packed.get(field), Some(value.clone()));
                }
            }
        }
    }

    #[test]
    fn a_large_hash_becomes_a_table_with_the_same_fields() {
        let mut hash = Hash::default();
        for field in 0..100u32 {
            let field = Bytes::from(field.to_string());
            assert!(hash.set(&field, Bytes::from(vec![b'v'; 60])));
            assert!(!hash.set(&field, field.clone()));
        }
        assert!(hash.is_compact());
        assert!(hash.set(
            &Bytes::from_static(b"large"),
            Bytes::from(vec![b'v'; 100_000])
        ));
        assert!(!hash.is_compact());
        assert_eq!(hash.len(), 101);
        assert_eq!(hash.get(b"99"), Some(Bytes::from_static(b"99")));
        assert!(hash.remove(b"0"));
        assert_eq!((hash.get(b"0"), hash.len()), (None, 100));
    }
}
