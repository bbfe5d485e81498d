//! Errors of spread queues.

use meshwork_model::keys::context::ContextId;
use meshwork_model::name::{JobId, NameError};
use meshwork_model::spread::{InvalidSpreadName, MAX_PARTS, SpreadName};

use crate::Error;
use crate::context::ContextError;

/// Reason of a failed call. Nothing was changed, unless the variant says otherwise.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpreadError {
    /// The queue has no parts.
    #[error(
        "the queue {0} is not spread over contexts: `meshwork queue spread {0} --parts 4` makes parts"
    )]
    NotSpread(SpreadName),
    /// The number of parts is not valid.
    #[error("a queue has 1 to {MAX_PARTS} parts, not {0}")]
    PartCount(usize),
    /// Keys still move from an earlier change.
    #[error(
        "{keys} keys of {name} still have unfinished jobs in their old parts: change the parts when `meshwork queue spread \
         {name}` shows no moving keys"
    )]
    Moving {
        /// The queue.
        name: SpreadName,
        /// Number of keys that have unfinished jobs in their old parts.
        keys: usize,
    },
    /// A context has the wrong layout.
    #[error(
        "context {0} has the layout db: a part of a queue needs the layout prefix, as `meshwork context create --layout prefix` makes"
    )]
    Layout(ContextId),
    /// A context is named twice.
    #[error("context {0} is named twice: each part of a queue is a context of its own")]
    Twice(ContextId),
    /// The entry of the queue in the registry cannot be read.
    #[error(
        "the parts of {0} in the registry cannot be read: `meshwork queue spread {0} --contexts …` writes them anew"
    )]
    Registry(SpreadName),
    /// The text names no part of the queue.
    #[error("{text:?} is in no part of {name}: `meshwork queue spread {name}` shows its parts")]
    NoPart {
        /// The queue.
        name: SpreadName,
        /// The text, a job or a context.
        text: String,
    },
    /// The job belongs to another queue.
    #[error("the job goes to the queue {of}, and not to {name}")]
    OtherQueue {
        /// The spread queue.
        name: SpreadName,
        /// Queue of the job.
        of: String,
    },
    /// The option has no meaning in a spread queue.
    #[error("a job of a spread queue cannot have {what}: {instead}")]
    Option {
        /// The option.
        what: &'static str,
        /// Alternative.
        instead: &'static str,
    },
    /// Prerequisites are in different parts, or not in the part of the job's key.
    #[error(
        "the prerequisite {id} is in another part than {other}: a job and its prerequisites need the same part; give them the same key"
    )]
    Apart {
        /// The prerequisite.
        id: JobId,
        /// Another prerequisite, or the key.
        other: String,
    },
    /// The layout changed more often than the call was repeated.
    #[error("the parts of {0} change too often: try again")]
    Busy(SpreadName),
    /// A call about contexts failed.
    #[error(transparent)]
    Context(#[from] ContextError),
    /// The job was refused, or a call to the server failed. After a broken connection the job may be stored.
    #[error(transparent)]
    Job(#[from] Error),
    /// The text is no name of a queue.
    #[error(transparent)]
    Name(#[from] InvalidSpreadName),
}

impl SpreadError {
    /// Returns true if the server, or a node of the Cluster, does not answer.
    pub(super) fn is_outage(&self) -> bool {
        let is_temporary = |error: &Error| matches!(error, Error::Broker(it) if it.is_temporary());
        match self {
            Self::Context(ContextError::Jobs(error)) => is_temporary(error),
            Self::Context(error) => error.is_outage(),
            Self::Job(error) => is_temporary(error),
            _ => false,
        }
    }
}

impl From<NameError> for SpreadError {
    fn from(error: NameError) -> Self {
        Self::Job(error.into())
    }
}

impl From<meshwork_broker::Error> for SpreadError {
    fn from(error: meshwork_broker::Error) -> Self {
        Self::Job(error.into())
    }
}
