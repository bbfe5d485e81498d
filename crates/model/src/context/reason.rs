//! Reason of a failure: a code for programs, and a text for people.

use std::fmt;

use super::limits;

/// Reason why a message was refused, or has failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// Code for programs, the same in all releases; at most [`Reason::MAX_CODE`] bytes of `a` to `z`, digits and `_`.
    pub code: String,
    /// Text for people, at most [`limits::MAX_LOG_TEXT`] bytes.
    pub text: String,
}

impl Reason {
    /// Greatest length of a code, in bytes.
    pub const MAX_CODE: usize = 32;
    /// The message has no envelope, and the target needs one.
    pub const UNSIGNED: &str = "unsigned";
    /// The sender lacks the right.
    pub const FORBIDDEN: &str = "forbidden";
    /// The target does not exist.
    pub const NO_CONTEXT: &str = "no_context";
    /// No transport leads to the node of the target.
    pub const NO_ROUTE: &str = "no_route";
    /// A key or a record is damaged.
    pub const DAMAGED: &str = "damaged";
    /// The message or its jobs do not fit together.
    pub const INVALID: &str = "invalid";
    /// The record differs from its envelope.
    pub const TAMPERED: &str = "tampered";
    /// The answered message has its result, or never waited for one.
    pub const NO_REQUEST: &str = "no_request";
    /// The target has not stored the message within `timeout`.
    pub const NOT_DELIVERED: &str = "not_delivered";
    /// The target has not taken up the message within `timeout_ack`.
    pub const NOT_ACKNOWLEDGED: &str = "not_acknowledged";
    /// There is no result within `timeout_result`. The jobs may have run.
    pub const RESULT_UNKNOWN: &str = "result_unknown";
    /// The message failed, and the other node gave no reason.
    pub const FAILED: &str = "failed";
    /// The message or its result was deleted there.
    pub const DELETED: &str = "deleted";
    /// No runner of the target has the topic of the message, or it runs no jobs of this type.
    pub const NO_RUNNER: &str = "no_runner";
    /// The message was cancelled before it ended.
    pub const CANCELLED: &str = "cancelled";
    /// A timeout was over before the target took the message.
    pub const LATE: &str = "late";

    /// Returns a reason. A text over the limit is cut.
    #[must_use]
    pub fn new(code: impl Into<String>, text: impl Into<String>) -> Self {
        let (code, mut text) = (code.into(), text.into());
        text.truncate(text.floor_char_boundary(limits::MAX_LOG_TEXT));
        Self { code, text }
    }

    /// Returns whether a text is a code.
    #[must_use]
    pub fn is_code(text: &str) -> bool {
        let fits = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_';
        (1..=Self::MAX_CODE).contains(&text.len()) && text.bytes().all(fits)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_one_short_word() {
        assert!(Reason::is_code(Reason::NO_CONTEXT));
        for bad in ["", "No", "a b", "a:b", &"a".repeat(33)] {
            assert!(!Reason::is_code(bad), "{bad}");
        }
        let long = Reason::new(Reason::LATE, "x".repeat(limits::MAX_LOG_TEXT + 1));
        assert_eq!(long.to_string().len(), limits::MAX_LOG_TEXT);
    }
}
