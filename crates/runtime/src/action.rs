//! Actions of running scripts: `call_action()`, `send_action()`, `notify_action()`. A script never gets access to the
//! store: its worker or service sends for it, with the ids of the job or of the handled action.

#[cfg(feature = "scripts")]
mod run_calls;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use futures_util::future::BoxFuture;
use meshwork_model::job::{Job, limits};
use meshwork_model::nooble::{Data, ErrorDetail};
use meshwork_model::time::duration_of;
use meshwork_model::trace::TraceContext;
#[cfg(feature = "scripts")]
pub(super) use run_calls::{ActionCall, Delivery, RunCalls};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Most bytes of the data of an action: a service passes it to scripts as their input.
const MAX_DATA: usize = limits::MAX_INPUT;
/// Most bytes of the data of a reply: a script may pass it on as its result.
const MAX_REPLY: usize = limits::MAX_OUTPUT;
/// Reason why an action of a script was not sent, or has no reply data.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ActionCallError {
    /// The protocol of the run does not offer actions.
    #[error(
        "actions are only there for jobs of Meshwork and handlers of services: what runs here is a job of Bananas, or \
         belongs to no worker"
    )]
    NotHere,
    /// The job belongs to a context, and services are outside of all contexts.
    #[error(
        "jobs of a context send no actions, since services belong to no context: send a message to a context whose \
         workers may call them"
    )]
    InContext,
    /// The type names no service and operation.
    #[error(
        "the action type {0:?} is {1}: give the service, a dot, and the operation, as embedding.generate"
    )]
    Type(String, &'static str),
    /// The text is no name of an event.
    #[error("the event {0:?} is {1}: give a name, as document_updated")]
    Event(String, &'static str),
    /// The timeout is no positive number.
    #[error("the timeout {0} is not possible: give seconds, more than 0")]
    Timeout(f64),
    /// The data is no object of JSON, or not one that services can read.
    #[error("{0}")]
    Data(String),
    /// The data is too large.
    #[error(
        "the data of the action takes {size} bytes, the limit is {MAX_DATA}: pass a reference to what is large"
    )]
    TooLarge {
        /// The size in bytes.
        size: usize,
    },
    /// No reply came in time.
    #[error(
        "no answer to {action_type} after {}: is a service there that takes it? It may still be executed",
        duration_of(*waited)
    )]
    NoAnswer {
        /// The type of the action.
        action_type: String,
        /// The time waited.
        waited: Duration,
    },
    /// The run is being cancelled, or its lease is lost.
    #[error("the call of {0} was abandoned: the run is being stopped")]
    Stopping(String),
    /// The service answered with an error.
    #[error("{action_type} failed: {}", .failure.error.message)]
    Failed {
        /// The type of the action.
        action_type: String,
        /// The failure.
        failure: Box<ServiceFailure>,
    },
    /// The reply is too large.
    #[error(
        "the answer to {action_type} takes {size} bytes, the limit is {MAX_REPLY}: let the service pass a reference"
    )]
    LargeReply {
        /// The type of the action.
        action_type: String,
        /// The size in bytes.
        size: usize,
    },
    /// The action was not sent, or its reply cannot be read.
    #[error("{0}")]
    Refused(String),
}

/// Error that a service answered, and the ids of the call.
#[derive(Debug, Clone, PartialEq)]
pub struct ServiceFailure {
    /// The error.
    pub error: ErrorDetail,
    /// Ids of the call.
    pub ids: ActionIds,
}

/// Ids of a sent action.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ActionIds {
    /// Id of the message.
    pub action_id: String,
    /// Correlation id, if a reply or a callback is expected.
    pub correlation_id: Option<String>,
    /// Trace.
    pub trace_id: Option<String>,
    /// Task.
    pub task_id: Option<String>,
}

impl ActionIds {
    /// Returns ids without a correlation.
    #[must_use]
    pub fn new(action_id: String, trace_id: Option<String>, task_id: Option<String>) -> Self {
        Self {
            action_id,
            correlation_id: None,
            trace_id,
            task_id,
        }
    }
}

/// A requested callback.
#[derive(Debug, Clone, PartialEq)]
pub struct Callback {
    /// Name of the event.
    pub event: String,
    /// Data that its handler gets.
    pub remember: Value,
}

/// Delivery of a checked action.
#[derive(Debug)]
pub enum CheckedDelivery {
    /// Waits for the reply, at most for this time.
    Call(Duration),
    /// Waits for nothing. The reply may come as a callback.
    Send(Option<Callback>),
    /// Publishes a notification.
    Notify,
}

/// A checked action, for the protocol that sends it.
#[derive(Debug)]
pub struct ActionRequest<'a> {
    /// Service, dot, operation; or the event of a notification.
    pub action_type: String,
    /// Data.
    pub data: Data,
    /// Delivery.
    pub delivery: CheckedDelivery,
    /// The job that sends, or that of a handler's script.
    pub job: &'a Job,
    /// Number of the action within the run, from 1.
    pub number: u32,
    /// Trace of the run.
    pub trace: Option<&'a TraceContext>,
}

/// Answer to a script.
#[derive(Debug)]
pub struct ActionReply {
    /// In JSON: the data of the reply, the id of the message, or the number of receivers.
    pub json: String,
    /// Ids of the message.
    pub ids: ActionIds,
}

/// Sends actions in the name of a worker or a service.
pub trait CallActions: Send + Sync + 'static {
    /// Sends an action, and waits for its reply if it is a call. A dropped call is abandoned.
    fn call<'a>(
        &'a self,
        request: ActionRequest<'a>,
    ) -> BoxFuture<'a, Result<ActionReply, ActionCallError>>;

    /// Ends what all calls share. No call is under way any more.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// Caller of actions for one run. Clones share the count of actions.
#[derive(Clone, Default)]
pub enum ActionCaller {
    /// Actions are not offered.
    #[default]
    NotHere,
    /// The job belongs to a context.
    InContext,
    /// The worker or the service sends.
    Here {
        /// Sends.
        calls: Arc<dyn CallActions>,
        /// Count of the run's actions.
        number: Arc<AtomicU32>,
    },
}

impl ActionCaller {
    /// Creates the caller of one run.
    pub fn new(calls: &Arc<dyn CallActions>) -> Self {
        Self::Here {
            calls: Arc::clone(calls),
            number: Arc::default(),
        }
    }
}

impl fmt::Debug for ActionCaller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotHere => "NotHere",
            Self::InContext => "InContext",
            Self::Here { .. } => "Here",
        })
    }
}
