//! What a program that uses Meshwork can be told.

use std::time::Duration;

use meshwork_broker::conn::{ConnectError, TargetError};
use meshwork_model::job::Invalid;
use meshwork_model::name::{JobId, NameError};

use crate::runner::ScriptError;

/// Why a call did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The URL is wrong.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// A name is wrong.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The job cannot be meant.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The script is not accepted.
    #[error("job {id}: {source}")]
    Script {
        /// The job.
        id: JobId,
        /// What is wrong with it.
        source: ScriptError,
    },
    /// The server did not take a call.
    #[error(transparent)]
    Broker(meshwork_broker::Error),
    /// A payload or a result is not of the expected type.
    #[error("the {what} of job {id} does not fit its type: {source}")]
    Payload {
        /// Payload or result.
        what: &'static str,
        /// The job.
        id: JobId,
        /// Where it does not fit.
        source: serde_json::Error,
    },
    /// There is a job of that id already.
    #[error("there is a job {id} already: take another id, or look at that one")]
    Exists {
        /// The job.
        id: JobId,
    },
    /// There is no such job.
    #[error("there is no job {id}")]
    NoJob {
        /// The job.
        id: JobId,
    },
    /// The job ended in error.
    #[error("job {id} failed: {message}")]
    Failed {
        /// The job.
        id: JobId,
        /// Its `error`.
        message: String,
        /// Where in the script, if the language says so.
        traceback: Option<String>,
    },
    /// The job has not ended in the time that the caller would wait.
    #[error("job {id} has not ended after {waited:?}; it goes on, wait for it again or stop it")]
    NotEnded {
        /// The job.
        id: JobId,
        /// How long it was waited for.
        waited: Duration,
    },
    /// A worker that nothing can be sent to.
    #[error("the worker has no runner: name a script type or add a handler")]
    NothingToRun,
    /// A script type that nothing here runs.
    #[error("`{script_type}` is no script type that this program runs; it runs {known}")]
    UnknownType {
        /// The type.
        script_type: String,
        /// What there is.
        known: String,
    },
    /// The system did not give a worker what it needs.
    #[error("cannot start the worker: {0}")]
    Start(#[from] std::io::Error),
}

impl From<meshwork_broker::Error> for Error {
    fn from(error: meshwork_broker::Error) -> Self {
        match error {
            meshwork_broker::Error::Invalid(invalid) => Self::Invalid(invalid),
            other => Self::Broker(other),
        }
    }
}
