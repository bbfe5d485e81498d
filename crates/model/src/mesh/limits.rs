//! Limits of one node for another one: the messages that it stores for that node, and how often it refuses one.

use std::collections::HashMap;

use super::SentFrom;

/// Greatest number of stored messages of a node that are not processed: as many as ten full messages have jobs.
pub const MAX_HELD_MESSAGES: usize = 10_000;
/// Greatest length of the envelopes of these messages, in bytes: a share of a small server's memory.
pub const MAX_HELD_BYTES: usize = 64 * 1024 * 1024;
/// Shortest time between two refusals of a message, in milliseconds. The pauses of its sender double up to this time.
pub const REFUSE_AGAIN_MS: u64 = 60_000;
/// Greatest number of messages of a node whose refusal is remembered. No others are refused meanwhile: they are sent again.
const MAX_REFUSALS: usize = 10_000;

/// Messages of a node that are stored here and not processed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Held {
    /// Their number.
    pub messages: usize,
    /// Length of their envelopes, in bytes.
    pub bytes: usize,
}

impl Held {
    /// Returns true if another message of this length may be stored.
    #[must_use]
    pub const fn takes(&self, bytes: usize) -> bool {
        self.messages < MAX_HELD_MESSAGES && self.bytes.saturating_add(bytes) <= MAX_HELD_BYTES
    }

    /// Adds a message.
    pub const fn add(&mut self, bytes: usize) {
        self.messages = self.messages.saturating_add(1);
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// Messages of a node that were refused lately. Times are in milliseconds, of a clock that never goes back.
#[derive(Debug, Clone, Default)]
pub struct Refusals(HashMap<SentFrom, u64>);

impl Refusals {
    /// Returns true if the message was refused within the last minute.
    #[must_use]
    pub fn is_recent(&self, of: &SentFrom, now_ms: u64) -> bool {
        let at = self.0.get(of);
        at.is_some_and(|at| now_ms.saturating_sub(*at) < REFUSE_AGAIN_MS)
    }

    /// Records a refusal that is sent now. Returns false if it must not be sent.
    pub fn note(&mut self, of: SentFrom, now_ms: u64) -> bool {
        if self.is_recent(&of, now_ms) {
            return false;
        }
        if self.0.len() >= MAX_REFUSALS {
            self.0
                .retain(|_, at| now_ms.saturating_sub(*at) < REFUSE_AGAIN_MS);
        }
        let has_room = self.0.len() < MAX_REFUSALS;
        if has_room {
            self.0.insert(of, now_ms);
        }
        has_room
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope::Nonce;
    use crate::keys::context::{ContextId, MessageKey};

    fn message(id: u32) -> SentFrom {
        SentFrom {
            context: ContextId::new(7).unwrap(),
            message: MessageKey::new(1, id),
            nonce: Nonce([1; 16]),
        }
    }

    #[test]
    fn a_node_holds_10000_messages_or_64_mib() {
        let mut held = Held::default();
        held.add(MAX_HELD_BYTES - 10);
        assert!(held.takes(10) && !held.takes(11));
        let mut held = Held::default();
        for _ in 0..MAX_HELD_MESSAGES {
            assert!(held.takes(1));
            held.add(1);
        }
        assert!(!held.takes(1));
    }

    #[test]
    fn a_message_is_refused_once_a_minute() {
        let mut refusals = Refusals::default();
        assert!(refusals.note(message(1), 5));
        assert!(refusals.is_recent(&message(1), 60_004));
        assert!(!refusals.note(message(1), 60_004));
        assert!(refusals.note(message(2), 60_004));
        assert!(refusals.note(message(1), 60_005));
    }

    #[test]
    fn refusals_are_bounded() {
        let mut refusals = Refusals::default();
        for id in 0..10_000 {
            assert!(refusals.note(message(id), 0));
        }
        assert!(!refusals.note(message(10_000), 59_999));
        assert!(refusals.note(message(10_000), 60_000));
        assert!(refusals.0.len() <= 10_000);
    }
}
