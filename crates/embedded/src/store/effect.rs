//! A write in the form of the log.

use bytes::Bytes;

/// One logged write: a command that a Redis server replays to the same effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Effect {
    pub(crate) db: usize,
    pub(crate) args: Vec<Bytes>,
}
