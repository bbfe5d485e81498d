//! A node: up to a hundred consecutive entries. Trimming with `~` removes whole nodes, so a node is full here exactly
//! when it is full in Redis, to the byte.

use bytes::{BufMut as _, Bytes, BytesMut};

use super::StreamId;
use crate::resp::parse_integer;

/// Greatest number of entries of a node, with deleted ones (`stream-node-max-entries`).
const ENTRIES_MAX: usize = 100;

/// Greatest length of a node as Redis stores it (`stream-node-max-bytes`); one entry may be longer.
const BYTES_MAX: usize = 4096;

/// Bytes around the items of a node in Redis.
const FRAME: usize = 7;

/// Consecutive entries.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// Names of the fields of its first entry. Most entries have the same ones, and store no copy.
    names: Vec<Bytes>,
    /// Never empty: a deleted entry stays as a mark.
    entries: Vec<Entry>,
    /// Number of entries that are not deleted.
    live: usize,
    /// Length in Redis.
    bytes: usize,
}

#[derive(Debug, Clone)]
struct Entry {
    id: StreamId,
    deleted: bool,
    /// True if its names are those of the node, and `packed` has only the values.
    same_names: bool,
    /// Strings, each after its length in four bytes: alternately names and values.
    packed: Bytes,
}

/// An entry that is not deleted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EntryRef<'a> {
    node: &'a Node,
    entry: &'a Entry,
}

impl EntryRef<'_> {
    pub(crate) fn id(&self) -> StreamId {
        self.entry.id
    }

    /// Returns alternately names and values.
    pub(crate) fn fields(&self) -> Vec<Bytes> {
        let strings = unpacked(&self.entry.packed);
        if !self.entry.same_names {
            return strings.collect();
        }
        let names = self.node.names.iter().cloned();
        names.zip(strings).flat_map(<[Bytes; 2]>::from).collect()
    }
}

impl Node {
    /// Returns a node with its first entry.
    pub(super) fn new(id: StreamId, fields: &[Bytes]) -> Self {
        let names: Vec<_> = fields.iter().step_by(2).cloned().collect();
        // The numbers of entries and of deleted ones, and the end: two bytes each.
        let mut bytes = FRAME + 3 * 2 + int_size(signed(names.len() as u64));
        bytes += names.iter().map(|name| text_size(name)).sum::<usize>();
        // Copies, because the names outlive their request.
        let names = unpacked(&packed(names.iter())).collect();
        let mut node = Self {
            names,
            entries: Vec::new(),
            live: 0,
            bytes,
        };
        node.push(id, id, fields);
        node
    }

    /// Returns whether an entry with this length of names and values needs a new node.
    pub(super) fn is_full_for(&self, bytes: usize) -> bool {
        self.bytes + bytes >= BYTES_MAX || self.entries.len() >= ENTRIES_MAX
    }

    /// Adds an entry; `master` is the id of the first one.
    pub(super) fn push(&mut self, master: StreamId, id: StreamId, fields: &[Bytes]) {
        let names = fields.iter().step_by(2);
        let values = fields.iter().skip(1).step_by(2);
        let same_names = names.clone().eq(&self.names);
        let count = fields.len() / 2;
        let (packed, items) = if same_names {
            (packed(values), 3 + count)
        } else {
            self.bytes += int_size(signed(count as u64));
            (packed(fields.iter()), 4 + 2 * count)
        };
        self.bytes += int_size(0)
            + int_size(signed(id.ms.wrapping_sub(master.ms)))
            + int_size(signed(id.seq.wrapping_sub(master.seq)))
            + unpacked(&packed)
                .map(|text| text_size(&text))
                .sum::<usize>()
            + int_size(signed(items as u64));
        self.live += 1;
        self.entries.push(Entry {
            id,
            deleted: false,
            same_names,
            packed,
        });
    }

    pub(super) fn live(&self) -> usize {
        self.live
    }

    /// Returns the first and the last id, deleted or not.
    pub(super) fn edges(&self) -> (StreamId, StreamId) {
        let first = self.entries.first().map(|entry| entry.id);
        let last = self.entries.last().map(|entry| entry.id);
        first.zip(last).expect("a node is never empty")
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = EntryRef<'_>> {
        let live = self.entries.iter().filter(|entry| !entry.deleted);
        live.map(|entry| EntryRef { node: self, entry })
    }

    pub(super) fn contains(&self, id: StreamId) -> bool {
        self.place(id)
            .is_some_and(|place| !self.entries[place].deleted)
    }

    /// Deletes an existing entry.
    pub(super) fn delete(&mut self, id: StreamId) {
        if let Some(place) = self.place(id) {
            self.delete_at(place);
        }
    }

    /// Deletes entries from the start while `more`, which gets the number of deleted ones so far. Returns their
    /// number.
    pub(super) fn delete_while(&mut self, more: impl Fn(StreamId, usize) -> bool) -> usize {
        let mut deleted = 0;
        for place in 0..self.entries.len() {
            if !more(self.entries[place].id, deleted) {
                break;
            }
            deleted += usize::from(self.delete_at(place));
        }
        deleted
    }

    fn delete_at(&mut self, place: usize) -> bool {
        let entry = &mut self.entries[place];
        if entry.deleted {
            return false;
        }
        entry.deleted = true;
        entry.packed = Bytes::new();
        self.live -= 1;
        true
    }

    fn place(&self, id: StreamId) -> Option<usize> {
        self.entries
            .binary_search_by_key(&id, |entry| entry.id)
            .ok()
    }
}

/// Number of bytes for the length before a string.
const LENGTH: usize = 4;

fn packed<'a>(strings: impl Iterator<Item = &'a Bytes> + Clone) -> Bytes {
    let size = strings.clone().map(|text| LENGTH + text.len()).sum();
    let mut packed = BytesMut::with_capacity(size);
    for text in strings {
        packed.put_u32(u32::try_from(text.len()).expect("checked against the size of an entry"));
        packed.extend_from_slice(text);
    }
    packed.freeze()
}

fn unpacked(packed: &Bytes) -> impl Iterator<Item = Bytes> {
    let mut rest = packed.clone();
    std::iter::from_fn(move || {
        let (length, _) = rest.split_first_chunk::<LENGTH>()?;
        let end = LENGTH + usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let text = rest.slice(LENGTH..end);
        rest = rest.slice(end..);
        Some(text)
    })
}

fn signed(value: u64) -> i64 {
    value.cast_signed()
}

/// Returns the size of an integer in a node of Redis (a listpack).
fn int_size(value: i64) -> usize {
    let size = match value {
        0..=127 => 1,
        -4096..=4095 => 2,
        -32_768..=32_767 => 3,
        -8_388_608..=8_388_607 => 4,
        -2_147_483_648..=2_147_483_647 => 5,
        _ => 9,
    };
    with_its_length(size)
}

/// Returns the size of a string there; one that looks like an integer is stored as one.
fn text_size(text: &[u8]) -> usize {
    if let Some(value) = parse_integer(text) {
        return int_size(value);
    }
    let head = match text.len() {
        0..64 => 1,
        64..4096 => 2,
        _ => 5,
    };
    with_its_length(head + text.len())
}

/// Returns the size with the length at the end, for walking backwards.
fn with_its_length(size: usize) -> usize {
    let length = match size {
        0..=127 => 1,
        128..16_383 => 2,
        16_383..2_097_151 => 3,
        2_097_151..268_435_455 => 4,
        _ => 5,
    };
    size + length
}
