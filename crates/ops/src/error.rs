//! Errors of operations. The command turns them into exit codes, the API into codes of problems.

use meshwork::Error;
use meshwork::context::{ContextError, ContextId};
use meshwork::flow::FlowError;
use meshwork::spread::SpreadError;
use meshwork_broker::Error as BrokerError;
use meshwork_model::name::JobId;

/// Error of an operation.
#[derive(Debug, thiserror::Error)]
pub enum OpError {
    /// A parameter is wrong. The text begins with its name.
    #[error("{0}")]
    Invalid(String),
    /// The caller may not do it.
    #[error("{message}")]
    Forbidden {
        /// The reason.
        message: String,
        /// The remedy.
        hint: Option<&'static str>,
    },
    /// There is no such object.
    #[error("{message}")]
    NotFound {
        /// The object.
        message: String,
        /// The remedy.
        hint: &'static str,
    },
    /// There is no such queue: its name may be wrong.
    #[error("{}", no_queue(.name, *.is_change))]
    NoQueue {
        /// Name of the queue, with a similar one.
        name: String,
        /// True for a change, which may create it.
        is_change: bool,
    },
    /// The state of a job does not allow a change.
    #[error("job {id} {why}")]
    Refused {
        /// The job.
        id: JobId,
        /// The reason, with the remedy.
        why: &'static str,
    },
    /// A call of the library fails.
    #[error(transparent)]
    Jobs(#[from] Error),
    /// A context refuses the call.
    #[error(transparent)]
    Context(#[from] ContextError),
    /// A flow refuses the call.
    #[error(transparent)]
    Flow(#[from] FlowError),
    /// A spread queue refuses the call.
    #[error(transparent)]
    Spread(#[from] SpreadError),
    /// An error in a part of a spread queue.
    #[error("part {0}: {1}")]
    InPart(ContextId, Box<Self>),
}

impl OpError {
    /// Returns an error for a wrong parameter.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid(message.into())
    }
}

/// Says that a queue does not exist.
fn no_queue(name: &str, is_change: bool) -> String {
    match is_change {
        true => format!("the queue {name} does not exist yet; nothing was changed"),
        false => format!(
            "there is no queue {name}: no job was enqueued to it, no worker has listened to it, and it has no settings"
        ),
    }
}

/// An error that may come in a part of a spread queue.
pub trait InPart: From<OpError> {
    /// Returns the error with the part in which it came.
    #[must_use]
    fn in_part(self, part: ContextId) -> Self;
}

impl InPart for OpError {
    fn in_part(self, part: ContextId) -> Self {
        Self::InPart(part, Box::new(self))
    }
}

impl From<BrokerError> for OpError {
    fn from(error: BrokerError) -> Self {
        Error::from(error).into()
    }
}
