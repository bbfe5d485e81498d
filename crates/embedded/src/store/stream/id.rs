//! Ids of entries: order, text, and neighbours.

use std::fmt;

use bytes::Bytes;

/// The id of an entry: a time in milliseconds, and a number within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct StreamId {
    pub(crate) ms: u64,
    pub(crate) seq: u64,
}

impl StreamId {
    pub(crate) const MIN: Self = Self::new(0, 0);
    pub(crate) const MAX: Self = Self::new(u64::MAX, u64::MAX);

    pub(crate) const fn new(ms: u64, seq: u64) -> Self {
        Self { ms, seq }
    }

    /// Returns the next id; `None` after the greatest.
    pub(crate) fn next(self) -> Option<Self> {
        match self.seq.checked_add(1) {
            Some(seq) => Some(Self::new(self.ms, seq)),
            None => Some(Self::new(self.ms.checked_add(1)?, 0)),
        }
    }

    /// Returns the previous id; `None` before the least.
    pub(crate) fn previous(self) -> Option<Self> {
        match self.seq.checked_sub(1) {
            Some(seq) => Some(Self::new(self.ms, seq)),
            None => Some(Self::new(self.ms.checked_sub(1)?, u64::MAX)),
        }
    }

    pub(crate) fn text(self) -> Bytes {
        self.to_string().into()
    }

    /// Returns the id as a key of a radix tree.
    pub(super) fn to_be_bytes(self) -> [u8; 16] {
        (u128::from(self.ms) << 64 | u128::from(self.seq)).to_be_bytes()
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ms, self.seq)
    }
}
