//! Errors of sent actions and of handlers.

use std::fmt;
use std::time::Duration;

use meshwork_broker::conn::{ConnectError, TargetError};
use meshwork_model::nooble::{Data, ErrorDetail, InvalidData, InvalidEnvelope};
use meshwork_model::outcome::{Failure, FailureKind};
use meshwork_model::time::duration_of;

use meshwork_worker::Reason;

/// Error type and code of Nooble4 for errors of handlers without their own.
pub(super) const PROCESSING: (&str, &str) = ("ProcessingError", "HANDLER_EXECUTION_ERROR");

/// Reason why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The connection failed.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The URL is invalid.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// A call to the server failed.
    #[error(transparent)]
    Broker(#[from] meshwork_broker::Error),
    /// The data is no JSON object.
    #[error(transparent)]
    Data(#[from] InvalidData),
    /// An id or setting is invalid; nothing was sent.
    #[error(
        "{0}: no service could read it, and it was not sent; an id is a UUID, as 01900000-0000-7000-8000-000000000001"
    )]
    Invalid(#[from] InvalidEnvelope),
    /// No reply arrived in time. A service may still handle the action; the reply is dropped.
    #[error(
        "no answer to {action_type} (action {action_id}) after {}: is a service there that takes it?",
        duration_of(*waited)
    )]
    NoAnswer {
        /// Type of the action.
        action_type: String,
        /// Id of the message.
        action_id: String,
        /// Time of the wait.
        waited: Duration,
    },
    /// The reply is invalid.
    #[error("the answer to {action_type} (action {action_id}) cannot be read: {why}")]
    Unreadable {
        /// Type of the action.
        action_type: String,
        /// Id of the message.
        action_id: String,
        /// Fault of the reply.
        why: String,
    },
    /// The action failed.
    #[error("{action_type} failed: {}", .error.message)]
    Failed {
        /// Type of the action.
        action_type: String,
        /// Error of the action.
        error: ErrorDetail,
    },
    /// The data of the reply does not fit the expected type.
    #[error("the answer to {action_type} does not fit its type: {source}")]
    Answer {
        /// Type of the action.
        action_type: String,
        /// Position of the mismatch.
        source: serde_json::Error,
    },
    /// The reply to a request of the service to itself requests a callback of the same name.
    #[error(
        "the answer is a callback {0} of this service: let it ask for a callback of another name"
    )]
    ExpectsItself(String),
    /// Too many calls of one client are in flight.
    #[error("{most} calls are in flight: wait for some of them first")]
    TooMany {
        /// Greatest number.
        most: usize,
    },
    /// A call with this correlation id is in flight, so its reply would be ambiguous. Nothing was sent.
    #[error(
        "a call with the correlation id {correlation_id} is under way: give each call an id of its own, or wait for that one"
    )]
    UnderWay {
        /// Correlation id.
        correlation_id: String,
    },
    /// The client was closed. Services may still handle its calls; the replies are dropped.
    #[error("the client was closed: its calls get no answer")]
    Closed,
    /// A step of a cycle sends another request than before.
    #[error(
        "the step {step:?} sent another request before ({was}): give each step a name of its own, and let it send the \
         same request in each run of the cycle"
    )]
    OtherStep {
        /// Name of the step.
        step: String,
        /// Type of the earlier request.
        was: String,
    },
    /// A cycle has too many steps, or too long messages and replies.
    #[error(
        "there is no room for the step {step:?}: a cycle has {steps} steps and {bytes} bytes at most; pass references \
         to what is large, or split the task"
    )]
    FullCycle {
        /// Name of the step.
        step: String,
        /// Greatest number of steps.
        steps: usize,
        /// Greatest number of bytes.
        bytes: usize,
    },
    /// A setting of a service is outside of its limits; nothing was started.
    #[error(transparent)]
    Setting(#[from] meshwork_worker::InvalidSetting),
    /// The system has no thread left.
    #[error("a service cannot be started: {0}")]
    Thread(#[from] std::io::Error),
}

/// Error of a handler for the other side. Any other error is sent as a `ProcessingError` with the code
/// `HANDLER_EXECUTION_ERROR`.
#[derive(Debug, Clone)]
pub struct ActionError {
    pub(super) detail: ErrorDetail,
    /// Kind of the failure, which decides about a retry and labels its metric.
    pub(super) kind: FailureKind,
    /// Details for operators: traceback and stderr. They are never sent.
    pub(super) behind: Box<str>,
}

impl ActionError {
    /// Creates an error with a type and a code for programs, and a message for people. The action is retried if a retry
    /// is left.
    #[must_use]
    pub fn new(error_type: &str, error_code: &str, message: &str) -> Self {
        Self {
            detail: ErrorDetail::new(error_type, error_code, message),
            kind: FailureKind::Script,
            behind: Box::default(),
        }
    }

    /// Adds details for programs.
    #[must_use]
    pub fn details(mut self, details: Data) -> Self {
        self.detail.details = Some(details);
        self
    }

    /// Prevents further attempts.
    #[must_use]
    pub fn permanent(self) -> Self {
        Self {
            kind: FailureKind::Permanent,
            ..self
        }
    }

    /// Returns the error of an attempt that exceeded its timeout.
    pub(super) fn timeout(after: std::time::Duration) -> Self {
        let message = format!("it took longer than {}", duration_of(after));
        Self {
            kind: FailureKind::Timeout,
            ..Self::new("TimeoutError", "HANDLER_TIMEOUT", &message)
        }
    }

    /// Returns the error of a handler that panicked.
    pub(super) fn panicked(panic: &str) -> Self {
        let what = "the handler panicked; see the service's log";
        Self {
            behind: format!("panic: {panic}").into(),
            ..Self::new(PROCESSING.0, PROCESSING.1, what)
        }
    }

    /// Returns the error of a failed script.
    pub(super) fn of_run(reason: &Reason) -> Self {
        let error = Self::new(PROCESSING.0, PROCESSING.1, &reason.message);
        Self {
            kind: reason.kind,
            behind: reason.detail.as_str().into(),
            ..error
        }
    }

    /// Returns the failure for the engine.
    pub(super) fn failure(&self) -> Failure {
        let behind = Some(&*self.behind).filter(|behind| !behind.is_empty());
        Failure {
            traceback: behind.map(str::to_owned),
            ..Failure::new(self.kind, self.detail.message.as_str())
        }
    }

    /// Returns the reason that is stored and logged.
    pub(super) fn reason(&self) -> Reason {
        Reason {
            kind: self.kind,
            message: self.detail.message.clone(),
            detail: self.behind.to_string(),
        }
    }

    /// Returns the error for any other error of a handler.
    pub(super) fn of(error: Box<dyn std::error::Error + Send + Sync>) -> Self {
        match error.downcast::<Self>() {
            Ok(own) => *own,
            Err(other) => {
                let message = meshwork_runtime::failure_of(&*other).message;
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
