//! Entries of the outbox of a node. An entry names a record, and the record decides what is sent: an entry that is sent
//! twice or too late does no harm.

use std::fmt;
use std::str::FromStr;

use super::SentFrom;
use crate::envelope::Nonce;
use crate::keys::context::{ContextId, MessageKey};

/// Time until the first repetition, in milliseconds.
pub const FIRST_RESEND_MS: u64 = 2_000;
/// Longest time between two repetitions, in milliseconds.
pub const LAST_RESEND_MS: u64 = 60_000;

/// Returns the time of the next attempt, in milliseconds since 1970. The pauses double, since each is as long as the time
/// since the message was queued.
#[must_use]
pub fn resend_at(queued_ms: u64, now_ms: u64) -> u64 {
    let age = now_ms.saturating_sub(queued_ms);
    now_ms.saturating_add(age.clamp(FIRST_RESEND_MS, LAST_RESEND_MS))
}

/// An entry of the outbox of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Entry {
    /// A message of this node, until it has ended.
    Message {
        /// The message.
        of: SentFrom,
        /// Time at which it was queued, in milliseconds since 1970.
        queued_ms: u64,
    },
    /// The state or the result of a message of that node, sent once: the other node asks for a lost one.
    State {
        /// The message at its sender.
        of: SentFrom,
        /// The context to which it went.
        at: ContextId,
    },
}

/// Error for a text that is no entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write message/CONTEXT/CALLER:ID/NONCE/MS or state/CONTEXT/CALLER:ID/NONCE/CONTEXT")]
pub struct InvalidEntry;

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message { of, queued_ms } => write!(f, "message/{of}/{queued_ms}"),
            Self::State { of, at } => write!(f, "state/{of}/{at}"),
        }
    }
}

impl fmt::Display for SentFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers = self.message.numbers();
        write!(f, "{}/{numbers}/{}", self.context, self.nonce)
    }
}

impl FromStr for Entry {
    type Err = InvalidEntry;

    fn from_str(text: &str) -> Result<Self, InvalidEntry> {
        let parts: Vec<_> = text.split('/').collect();
        let [kind, context, message, nonce, last] = parts[..] else {
            return Err(InvalidEntry);
        };
        let of = SentFrom {
            context: context.parse().map_err(|_| InvalidEntry)?,
            message: MessageKey::of_numbers(message).map_err(|_| InvalidEntry)?,
            nonce: Nonce::from_text(nonce).ok_or(InvalidEntry)?,
        };
        match kind {
            "message" => Ok(Self::Message {
                of,
                queued_ms: last.parse().map_err(|_| InvalidEntry)?,
            }),
            "state" => Ok(Self::State {
                of,
                at: last.parse().map_err(|_| InvalidEntry)?,
            }),
            _ => Err(InvalidEntry),
        }
    }
}

/// A message of another node that is stored here and not processed, in the list of that node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HeldEntry {
    /// The message at its sender.
    pub of: SentFrom,
    /// The context to which it went.
    pub at: ContextId,
    /// Length of its envelope, in bytes.
    pub bytes: usize,
}

impl fmt::Display for HeldEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.of, self.at, self.bytes)
    }
}

impl FromStr for HeldEntry {
    type Err = InvalidEntry;

    fn from_str(text: &str) -> Result<Self, InvalidEntry> {
        let (front, bytes) = text.rsplit_once('/').ok_or(InvalidEntry)?;
        match format!("state/{front}").parse()? {
            Entry::State { of, at } => Ok(Self {
                of,
                at,
                bytes: bytes.parse().map_err(|_| InvalidEntry)?,
            }),
            Entry::Message { .. } => Err(InvalidEntry),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_read_as_it_was_written() {
        let of = SentFrom {
            context: ContextId::new(7).unwrap(),
            message: MessageKey::new(12, 101),
            nonce: Nonce([15; 16]),
        };
        let at = ContextId::new(8).unwrap();
        for entry in [Entry::Message { of, queued_ms: 5 }, Entry::State { of, at }] {
            assert_eq!(entry.to_string().parse(), Ok(entry));
        }
        let held = HeldEntry { of, at, bytes: 9 };
        assert_eq!(held.to_string().parse(), Ok(held));
        for bad in ["", "7/12:101/0f/8/9", "8/9"] {
            assert_eq!(bad.parse::<HeldEntry>(), Err(InvalidEntry), "{bad}");
        }
        for bad in ["", "message/7/12:101/0f/5", "other/7/12:101/0f/5"] {
            assert_eq!(bad.parse::<Entry>(), Err(InvalidEntry), "{bad}");
        }
    }

    #[test]
    fn pauses_double_up_to_a_minute() {
        let (mut now, mut pauses) = (1_000_000, Vec::new());
        for _ in 0..8 {
            let next = resend_at(1_000_000, now);
            pauses.push((next - now) / 1000);
            now = next;
        }
        assert_eq!(pauses, [2, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(resend_at(2_000, 1_000), 3_000, "a clock that went back");
    }
}
