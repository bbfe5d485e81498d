//! Words of records: types, formats and statuses of messages and flows, and the allowed changes of status.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::state;

/// An unknown word.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("write {wanted}")]
pub struct UnknownWord {
    /// The allowed words.
    pub wanted: String,
}

macro_rules! words {
    ($(#[$doc:meta])* $type:ident { $($(#[$of:meta])* $name:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $type {
            $($(#[$of])* $name),+
        }

        impl $type {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// The word in records.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $word),+
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl FromStr for $type {
            type Err = UnknownWord;

            fn from_str(text: &str) -> Result<Self, UnknownWord> {
                let found = Self::ALL.iter().find(|word| word.as_str() == text);
                found.copied().ok_or_else(|| UnknownWord {
                    wanted: [$($word),+].join(", "),
                })
            }
        }

        impl Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                super::reader::read_word(from)
            }
        }
    };
}

words! {
    /// Type of a message.
    MessageType {
        /// Requests jobs, or brings their results.
        Job = "job",
        /// A line of a conversation.
        Chat = "chat",
        /// A letter.
        Mail = "mail",
        /// Brings results, as some clients write it. Meshwork writes `job` with a final status.
        Result = "result",
    }
}

words! {
    /// Format of a message's text.
    MessageFormat {
        /// HTML.
        Html = "html",
        /// Plain text.
        Text = "text",
        /// Markdown.
        Md = "md",
    }
}

words! {
    /// Status of a message.
    MessageStatus {
        /// Created; may already be stored at its target.
        Dispatched = "dispatched",
        /// Acknowledged by its target.
        Acknowledged = "acknowledged",
        /// Processed; a requested result has arrived.
        Processed = "processed",
        /// Refused, or one of its timeouts is over.
        Error = "error",
    }
}

words! {
    /// Status of a flow.
    FlowStatus {
        /// Created; no job has started.
        Dispatched = "dispatched",
        /// A job has started.
        Started = "started",
        /// Ended without success.
        Error = "error",
        /// All jobs have finished.
        Finished = "finished",
    }
}

words! {
    /// Level of a log entry.
    LogLevel {
        /// Details that help to find a fault.
        Debug = "debug",
        /// Normal events.
        Info = "info",
        /// Events that need attention.
        Warn = "warn",
        /// Failures.
        Error = "error",
    }
}

/// An event in the life of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MessageEvent {
    /// Its target acknowledges the message.
    Acknowledge,
    /// Its target has processed the message. A result that arrives before the acknowledgement is both events, in this
    /// order.
    Process,
    /// The message is refused, its work fails, or a timeout is over.
    Fail,
}

/// An event in the life of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FlowEvent {
    /// The first of its jobs starts.
    Start,
    /// The last of its jobs has finished.
    Finish,
    /// One of its jobs has failed, or an actor cancels the flow.
    Fail,
    /// An actor retries an ended flow.
    Retry,
}

/// A change of status that is not allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a {what} that is {status} cannot {event}")]
pub struct IllegalChange {
    /// `message` or `flow`.
    pub what: &'static str,
    /// Its status.
    pub status: &'static str,
    /// The event.
    pub event: &'static str,
}

impl MessageEvent {
    /// All events.
    pub const ALL: [Self; 3] = [Self::Acknowledge, Self::Process, Self::Fail];
}

impl MessageStatus {
    /// Returns the status after `event`.
    ///
    /// # Errors
    /// The event is not allowed in this status. Nothing changes then.
    pub fn next(self, event: MessageEvent) -> Result<Self, IllegalChange> {
        use MessageEvent as E;
        match (self, event) {
            (Self::Dispatched, E::Acknowledge) => Ok(Self::Acknowledged),
            (Self::Acknowledged, E::Process) => Ok(Self::Processed),
            (Self::Dispatched | Self::Acknowledged, E::Fail) => Ok(Self::Error),
            (status, event) => Err(IllegalChange {
                what: "message",
                status: status.as_str(),
                event: match event {
                    E::Acknowledge => "be acknowledged",
                    E::Process => "be processed",
                    E::Fail => "fail",
                },
            }),
        }
    }

    /// Returns whether the status is final.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Processed | Self::Error)
    }
}

impl FlowEvent {
    /// All events.
    pub const ALL: [Self; 4] = [Self::Start, Self::Finish, Self::Fail, Self::Retry];
}

impl FlowStatus {
    /// Returns the status after `event`.
    ///
    /// # Errors
    /// The event is not allowed in this status. Nothing changes then.
    pub fn next(self, event: FlowEvent) -> Result<Self, IllegalChange> {
        use FlowEvent as E;
        match (self, event) {
            (Self::Dispatched, E::Start) => Ok(Self::Started),
            (Self::Started, E::Finish) => Ok(Self::Finished),
            (Self::Dispatched | Self::Started, E::Fail) => Ok(Self::Error),
            (Self::Finished | Self::Error, E::Retry) => Ok(Self::Dispatched),
            (status, event) => Err(IllegalChange {
                what: "flow",
                status: status.as_str(),
                event: match event {
                    E::Start => "start",
                    E::Finish => "finish",
                    E::Fail => "fail",
                    E::Retry => "be retried",
                },
            }),
        }
    }

    /// Returns whether the status is final unless an actor retries the flow.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Finished | Self::Error)
    }
}

/// Returns the status of a context's job after `event`. It is that of Hero's jobs, with one difference: after its
/// prerequisites have ended a job keeps the status `waiting_for_prerequisites` until it starts. The claim checks that
/// no prerequisite remains.
///
/// # Errors
/// The event is not allowed in this status. Nothing changes then.
pub fn next_of_job(
    status: state::Status,
    event: state::Event,
) -> Result<state::Status, state::IllegalTransition> {
    use state::{Event, Status};
    match (status, event) {
        (Status::WaitingForPrerequisites, Event::Ready) => Ok(status),
        (Status::WaitingForPrerequisites, Event::Claim) => Ok(Status::Started),
        _ => status.next(event),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back() {
        assert_eq!("md".parse(), Ok(MessageFormat::Md));
        for status in MessageStatus::ALL {
            assert_eq!(status.as_str().parse(), Ok(*status));
        }
        let error = "running".parse::<FlowStatus>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "write dispatched, started, error, finished"
        );
    }

    #[test]
    fn each_arrow_of_a_message() {
        use MessageStatus as S;
        let arrows: Vec<_> = S::ALL
            .iter()
            .flat_map(|from| MessageEvent::ALL.map(|event| (*from, from.next(event))))
            .filter_map(|(from, to)| Some((from, to.ok()?)))
            .collect();
        assert_eq!(
            arrows,
            [
                (S::Dispatched, S::Acknowledged),
                (S::Dispatched, S::Error),
                (S::Acknowledged, S::Processed),
                (S::Acknowledged, S::Error),
            ]
        );
        for status in S::ALL {
            let leads_on = MessageEvent::ALL.iter().any(|e| status.next(*e).is_ok());
            assert_eq!(leads_on, !status.is_final(), "{status}");
        }
        let error = S::Processed.next(MessageEvent::Fail).unwrap_err();
        assert_eq!(error.to_string(), "a message that is processed cannot fail");
    }

    #[test]
    fn each_arrow_of_a_flow() {
        use FlowStatus as S;
        let arrows: Vec<_> = S::ALL
            .iter()
            .flat_map(|from| FlowEvent::ALL.map(|event| (*from, from.next(event))))
            .filter_map(|(from, to)| Some((from, to.ok()?)))
            .collect();
        assert_eq!(
            arrows,
            [
                (S::Dispatched, S::Started),
                (S::Dispatched, S::Error),
                (S::Started, S::Finished),
                (S::Started, S::Error),
                (S::Error, S::Dispatched),
                (S::Finished, S::Dispatched),
            ]
        );
    }

    #[test]
    fn a_released_job_goes_straight_to_started() {
        use state::{Event, Status};
        let waiting = Status::WaitingForPrerequisites;
        assert_eq!(next_of_job(waiting, Event::Ready), Ok(waiting));
        assert_eq!(next_of_job(waiting, Event::Claim), Ok(Status::Started));
        assert!(waiting.next(Event::Claim).is_err(), "Hero's are dispatched");
        for status in Status::ALL {
            for event in Event::ALL {
                let same = next_of_job(status, event) == status.next(event);
                let differs = matches!(event, Event::Ready | Event::Claim);
                assert!(same || (status == waiting && differs), "{status} {event:?}");
            }
        }
    }
}
