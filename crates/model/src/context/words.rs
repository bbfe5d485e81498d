//! Words of records: types, formats and statuses of messages and flows, and the changes of status that are allowed.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::state;

/// A text that is none of the words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("write {wanted}")]
pub struct UnknownWord {
    /// The words.
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
    };
}

words! {
    /// What a message is.
    MessageType {
        /// Asks for jobs, or answers with what became of them.
        Job = "job",
        /// A line of a conversation.
        Chat = "chat",
        /// A letter.
        Mail = "mail",
        /// An answer, as some clients write it; ours write `job` with a final status.
        Result = "result",
    }
}

words! {
    /// How the text of a message is to be read.
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
    /// How far a message is.
    MessageStatus {
        /// Created; perhaps stored at its target.
        Dispatched = "dispatched",
        /// Taken up at its target.
        Acknowledged = "acknowledged",
        /// Done; a result has come if one was asked for.
        Processed = "processed",
        /// Refused, or one of its timeouts is over.
        Error = "error",
    }
}

words! {
    /// How far a flow is.
    FlowStatus {
        /// Created; no job has begun.
        Dispatched = "dispatched",
        /// A job has begun.
        Started = "started",
        /// Ended without success.
        Error = "error",
        /// All jobs have finished.
        Finished = "finished",
    }
}

words! {
    /// How much an entry of a log matters.
    LogLevel {
        /// For whoever looks for a fault.
        Debug = "debug",
        /// What happened as it should.
        Info = "info",
        /// What somebody should look at.
        Warn = "warn",
        /// What failed.
        Error = "error",
    }
}

/// What can happen to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MessageEvent {
    /// Its target takes it up.
    Acknowledge,
    /// Its target has done what it asks for. A result that overtakes the acknowledgement is both, in this order.
    Process,
    /// It is refused, what it asks for fails, or a timeout is over.
    Fail,
}

/// What can happen to a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FlowEvent {
    /// The first of its jobs begins.
    Start,
    /// The last of its jobs has finished.
    Finish,
    /// One of its jobs has failed, or somebody cancels the flow.
    Fail,
    /// Somebody asks for an ended flow to run again.
    Retry,
}

/// A change that the table does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a {what} that is {status} cannot {event}")]
pub struct IllegalChange {
    /// `message` or `flow`.
    pub what: &'static str,
    /// Its status.
    pub status: &'static str,
    /// What was to happen.
    pub event: &'static str,
}

impl MessageEvent {
    /// All events.
    pub const ALL: [Self; 3] = [Self::Acknowledge, Self::Process, Self::Fail];
}

impl MessageStatus {
    /// The status after `event`.
    ///
    /// # Errors
    /// If a message of this status cannot undergo the event; nothing changes then.
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

    /// Whether nothing more happens to the message.
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
    /// The status after `event`.
    ///
    /// # Errors
    /// If a flow of this status cannot undergo the event; nothing changes then.
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

    /// Whether nothing more happens to the flow unless somebody asks for it.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Finished | Self::Error)
    }
}

/// The status of a context's job after `event`: as for Hero's, but a job whose prerequisites have ended keeps the word
/// `waiting_for_prerequisites` until it starts. Whoever claims it checks that none is left.
///
/// # Errors
/// If a job of this status cannot undergo the event; nothing changes then.
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
