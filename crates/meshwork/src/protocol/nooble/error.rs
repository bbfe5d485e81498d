//! Errors of sent actions and of handlers.

use std::fmt;
use std::time::Duration;

use meshwork_broker::conn::{ConnectError, TargetError};
use meshwork_model::nooble::{Data, ErrorDetail, InvalidData, InvalidEnvelope};
use meshwork_model::outcome::{Failure, FailureKind};

use crate::failure::Reason;

/// The type and the code of an error of a handler that says nothing else: Nooble4's own.
pub(super) const PROCESSING: (&str, &str) = ("ProcessingError", "HANDLER_EXECUTION_ERROR");

/// Why a call did not bring what it was made for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The URL is wrong.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The server did not take a call.
    #[error(transparent)]
    Broker(#[from] meshwork_broker::Error),
    /// The data is no object of JSON.
    #[error(transparent)]
    Data(#[from] InvalidData),
    /// An id is none, or a setting is not as Nooble4 has them: nothing was sent.
    #[error(
        "{0}: no service could read it, and it was not sent; an id is a UUID, as 01900000-0000-7000-8000-000000000001"
    )]
    Invalid(#[from] InvalidEnvelope),
    /// No answer came in time. The action may still be dealt with; its answer will be dropped.
    #[error(
        "no answer to {action_type} (action {action_id}) after {} s: is a service there that takes it?",
        .waited.as_secs_f64()
    )]
    NoAnswer {
        /// The type of the action.
        action_type: String,
        /// The message's id.
        action_id: String,
        /// The time waited.
        waited: Duration,
    },
    /// An answer came that is none.
    #[error("the answer to {action_type} (action {action_id}) cannot be read: {why}")]
    Unreadable {
        /// The type of the action.
        action_type: String,
        /// The message's id.
        action_id: String,
        /// The fault of the answer.
        why: String,
    },
    /// The action failed.
    #[error("{action_type} failed: {}", .error.message)]
    Failed {
        /// The type of the action.
        action_type: String,
        /// The error of the action.
        error: ErrorDetail,
    },
    /// The answer is not of the type that was expected.
    #[error("the answer to {action_type} does not fit its type: {source}")]
    Answer {
        /// The type of the action.
        action_type: String,
        /// The position of the mismatch.
        source: serde_json::Error,
    },
    /// The answer to a request of a service to itself expects a callback of the same name.
    #[error(
        "the answer is a callback {0} of this service: let it ask for a callback of another name"
    )]
    ExpectsItself(String),
    /// More calls wait than one client may have under way.
    #[error("{most} calls wait for their answers already: wait for some of them first")]
    TooMany {
        /// The bound.
        most: usize,
    },
    /// A call with this correlation id is in flight: its answer would be ambiguous. Nothing was sent.
    #[error(
        "a call with the correlation id {correlation_id} is under way: give each call an id of its own, or wait for that one"
    )]
    UnderWay {
        /// The id.
        correlation_id: String,
    },
    /// The client was closed. What was under way may still be dealt with; its answer will be dropped.
    #[error("the client was closed: its calls get no answer")]
    Closed,
    /// A step of a cycle asks something else than when it was taken.
    #[error(
        "the step {step:?} asked {was} before, with other data or settings than now: give each step a name of its own, \
         and let it ask the same whenever the cycle is gone through"
    )]
    OtherStep {
        /// The step.
        step: String,
        /// The earlier request.
        was: String,
    },
    /// A cycle has more steps, or longer messages and answers, than are kept.
    #[error(
        "there is no room for the step {step:?}: a cycle has {steps} steps and {bytes} bytes at most; pass references \
         to what is large, or split the task"
    )]
    FullCycle {
        /// The step.
        step: String,
        /// The most steps.
        steps: usize,
        /// The most bytes.
        bytes: usize,
    },
    /// A setting of a service is out of its limits; nothing was started.
    #[error(transparent)]
    Setting(#[from] crate::worker::InvalidSetting),
    /// There is no thread for a service.
    #[error("a service cannot be started: {0}")]
    Thread(#[from] std::io::Error),
}

/// An error of a handler with the text for the other side. Any other error is sent as a `ProcessingError` with the
/// code `HANDLER_EXECUTION_ERROR`.
#[derive(Debug, Clone)]
pub struct ActionError {
    pub(super) detail: ErrorDetail,
    /// Kind of the failure: decides about a retry, and labels its metric.
    pub(super) kind: FailureKind,
    /// Details for operators: a traceback, stderr. Never sent to the other side.
    pub(super) behind: Box<str>,
}

impl ActionError {
    /// An error of a type and a code, for programs, in words, for people. The action runs again if it has runs left.
    #[must_use]
    pub fn new(error_type: &str, error_code: &str, message: &str) -> Self {
        Self {
            detail: ErrorDetail::new(error_type, error_code, message),
            kind: FailureKind::Script,
            behind: Box::default(),
        }
    }

    /// With more for programs, an object.
    #[must_use]
    pub fn details(mut self, details: Data) -> Self {
        self.detail.details = Some(details);
        self
    }

    /// Another run would not help.
    #[must_use]
    pub fn permanent(self) -> Self {
        Self {
            kind: FailureKind::Permanent,
            ..self
        }
    }

    /// Error of a run that exceeded its timeout.
    pub(super) fn timeout(after: std::time::Duration) -> Self {
        let message = format!("it took longer than {after:?}");
        Self {
            kind: FailureKind::Timeout,
            ..Self::new("TimeoutError", "HANDLER_TIMEOUT", &message)
        }
    }

    /// Error of a handler that panicked.
    pub(super) fn panicked(panic: &str) -> Self {
        let what = "the handler panicked; see the service's log";
        Self {
            behind: format!("panic: {panic}").into(),
            ..Self::new(PROCESSING.0, PROCESSING.1, what)
        }
    }

    /// Error of a failed script.
    pub(super) fn of_run(reason: &Reason) -> Self {
        let error = Self::new(PROCESSING.0, PROCESSING.1, &reason.message);
        Self {
            kind: reason.kind,
            behind: reason.detail.as_str().into(),
            ..error
        }
    }

    /// The same as the worker reports it.
    pub(super) fn failure(&self) -> Failure {
        let behind = Some(&*self.behind).filter(|behind| !behind.is_empty());
        Failure {
            traceback: behind.map(str::to_owned),
            ..Failure::new(self.kind, self.detail.message.as_str())
        }
    }

    /// Why a run failed, as it is kept and logged.
    pub(super) fn reason(&self) -> Reason {
        Reason {
            kind: self.kind,
            message: self.detail.message.clone(),
            detail: self.behind.to_string(),
        }
    }

    /// Error of a handler with any other error type.
    pub(super) fn of(error: Box<dyn std::error::Error + Send + Sync>) -> Self {
        match error.downcast::<Self>() {
            Ok(own) => *own,
            Err(other) => {
                let message = crate::runner::error_message(&*other);
                Self::new(PROCESSING.0, PROCESSING.1, &message)
            }
        }
    }
}

impl fmt::Display for ActionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail.message)
    }
}

impl std::error::Error for ActionError {}
