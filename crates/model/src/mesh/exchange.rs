//! Decisions of both sides about one message: what its sender sends next, and what its receiver answers. Both read only the
//! record, so a lost, late or repeated frame is repaired by the next one.

use super::PeerState;
use crate::context::{MessageStatus, MessageType};
use crate::envelope::SKEW;

/// Time for which a receiver remembers a cancelled message that has not arrived, in milliseconds. A frame with the message is
/// older than the request, and is refused after the greatest difference of the clocks, twice; one minute more.
pub const CANCELLED_FOR_MS: u64 = (2 * SKEW + 60) * 1_000;

/// A message as its sender has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// Status of the message.
    pub status: MessageStatus,
    /// True if the receiver has stored it.
    pub is_stored: bool,
    /// True if its sender has cancelled it.
    pub is_cancelled: bool,
}

/// The next item of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Send the message.
    Send,
    /// Ask for its state.
    Ask,
    /// Cancel it. It is not sent after that, so the receiver may get the request first.
    Cancel,
    /// The message needs nothing any more.
    Forget,
}

/// Returns the next item for a message; `None`: there is no such message any more.
#[must_use]
pub const fn next_step(sent: Option<Sent>) -> Step {
    match sent {
        Some(sent) if !sent.status.is_final() => match (sent.is_cancelled, sent.is_stored) {
            (true, _) => Step::Cancel,
            (false, true) => Step::Ask,
            (false, false) => Step::Send,
        },
        _ => Step::Forget,
    }
}

/// A message as its receiver has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Status of the message.
    pub status: MessageStatus,
    /// Type of the message.
    pub message_type: MessageType,
    /// True if it has a result.
    pub has_result: bool,
    /// True if it was refused.
    pub is_refused: bool,
}

/// The answer of a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// A state.
    State(PeerState),
    /// The result.
    Result,
}

/// Returns the answer about a message; `None`: the receiver has no such message. A job message is processed by its result
/// alone.
#[must_use]
pub fn answer(received: Option<Received>) -> Answer {
    let Some(received) = received else {
        return Answer::State(PeerState::Unknown);
    };
    let is_job = received.message_type == MessageType::Job;
    match received.status {
        status if status.is_final() && is_job && received.has_result => Answer::Result,
        MessageStatus::Dispatched => Answer::State(PeerState::Stored),
        MessageStatus::Acknowledged => Answer::State(PeerState::Acknowledged),
        MessageStatus::Processed if is_job => Answer::State(PeerState::Failed),
        MessageStatus::Processed => Answer::State(PeerState::Processed),
        MessageStatus::Error if received.is_refused => Answer::State(PeerState::Refused),
        MessageStatus::Error => Answer::State(PeerState::Failed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_sends_until_stored_asks_until_the_end_and_forgets() {
        let step = |status, is_stored, is_cancelled| {
            next_step(Some(Sent {
                status,
                is_stored,
                is_cancelled,
            }))
        };
        let sent = |status, is_stored| step(status, is_stored, false);
        for status in [MessageStatus::Dispatched, MessageStatus::Acknowledged] {
            assert_eq!(step(status, false, true), Step::Cancel);
            assert_eq!(step(status, true, true), Step::Cancel);
        }
        assert_eq!(step(MessageStatus::Error, true, true), Step::Forget);
        assert_eq!(sent(MessageStatus::Dispatched, false), Step::Send);
        assert_eq!(sent(MessageStatus::Dispatched, true), Step::Ask);
        assert_eq!(sent(MessageStatus::Acknowledged, true), Step::Ask);
        for is_stored in [false, true] {
            assert_eq!(sent(MessageStatus::Processed, is_stored), Step::Forget);
            assert_eq!(sent(MessageStatus::Error, is_stored), Step::Forget);
        }
        assert_eq!(next_step(None), Step::Forget);
    }

    #[test]
    fn a_receiver_answers_from_its_record() {
        use PeerState as S;
        let of = |message_type, status, has_result, is_refused| {
            answer(Some(Received {
                status,
                message_type,
                has_result,
                is_refused,
            }))
        };
        let job = |status, has_result| of(MessageType::Job, status, has_result, false);
        assert_eq!(answer(None), Answer::State(S::Unknown));
        assert_eq!(
            job(MessageStatus::Dispatched, false),
            Answer::State(S::Stored)
        );
        assert_eq!(
            job(MessageStatus::Acknowledged, false),
            Answer::State(S::Acknowledged)
        );
        for end in [MessageStatus::Processed, MessageStatus::Error] {
            assert_eq!(job(end, true), Answer::Result);
            // The result was deleted: the sender must not wait for it.
            assert_eq!(job(end, false), Answer::State(S::Failed));
        }
        let chat = of(MessageType::Chat, MessageStatus::Processed, false, false);
        assert_eq!(chat, Answer::State(S::Processed));
        let refused = of(MessageType::Job, MessageStatus::Error, false, true);
        assert_eq!(refused, Answer::State(S::Refused));
    }
}
