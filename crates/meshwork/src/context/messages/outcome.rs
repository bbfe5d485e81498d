//! Outcome of a message, in one word.

use meshwork_model::context::{MessageStatus, Reason};
use serde::Serialize;

use crate::context::MessageView;

/// Outcome of a message that has ended. The field `mw_reason` has the code of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Outcome {
    /// Its jobs have ended well, or it was read.
    Processed,
    /// A job failed, or the message or its result was deleted.
    Failed,
    /// The target has cancelled it, as its sender requested.
    Cancelled,
    /// The target refused it: no job was started.
    Refused,
    /// It was not stored within `timeout`.
    NotDelivered,
    /// Its jobs were not taken up within `timeout_ack`.
    NotAcknowledged,
    /// It has no result within `timeout_result`: its jobs may have run.
    ResultUnknown,
}

impl Outcome {
    /// Returns the word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Processed => "processed",
            Self::Failed => "failed",
            Self::Cancelled => Reason::CANCELLED,
            Self::Refused => "refused",
            Self::NotDelivered => Reason::NOT_DELIVERED,
            Self::NotAcknowledged => Reason::NOT_ACKNOWLEDGED,
            Self::ResultUnknown => Reason::RESULT_UNKNOWN,
        }
    }
}

impl MessageView {
    /// Returns the outcome of the message; `None` while it is open.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        match (self.message.status, self.reason.as_deref()) {
            (MessageStatus::Processed, _) => Some(Outcome::Processed),
            (MessageStatus::Error, reason) => Some(match reason {
                None | Some(Reason::FAILED | Reason::DELETED) => Outcome::Failed,
                Some(Reason::CANCELLED) => Outcome::Cancelled,
                Some(Reason::NOT_DELIVERED) => Outcome::NotDelivered,
                Some(Reason::NOT_ACKNOWLEDGED) => Outcome::NotAcknowledged,
                Some(Reason::RESULT_UNKNOWN) => Outcome::ResultUnknown,
                Some(_) => Outcome::Refused,
            }),
            _ => None,
        }
    }
}
