//! Actions of running scripts: `call_action()`, `send_action()`, `notify_action()`. A script never gets access to the
//! store: its worker or service sends for it, with the ids of the job or of the handled action.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use meshwork_model::job::{Job, limits};
use meshwork_model::keys::nooble::service_of;
use meshwork_model::nooble::{Data, ErrorDetail};
use meshwork_model::trace::TraceContext;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;

use super::{Run, StopSignal};

/// Timeout of a call without its own: that of `meshwork action call`.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Most bytes of the data of an action: a service passes it to scripts as their input.
const MAX_DATA: usize = limits::MAX_INPUT;
/// Most bytes of the data of a reply: a script may pass it on as its result.
const MAX_REPLY: usize = limits::MAX_OUTPUT;
/// Most bytes of an action type or event: more than any service has, and short in error texts.
const MAX_TYPE: usize = 256;

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
        "no answer to {action_type} after {} s: is a service there that takes it? It may still be executed",
        .waited.as_secs_f64()
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

impl ActionCallError {
    fn failure(&self) -> Option<&ServiceFailure> {
        match self {
            Self::Failed { failure, .. } => Some(failure),
            _ => None,
        }
    }

    /// Returns the kind for scripts: the type of the service's error, or one of this crate's words.
    pub(super) fn kind(&self) -> &str {
        match self {
            Self::Failed { failure, .. } => &failure.error.error_type,
            Self::NoAnswer { .. } => "Timeout",
            Self::Stopping(_) => "Stopped",
            _ => "Refused",
        }
    }

    /// Returns the code of the service's error.
    pub(super) fn code(&self) -> Option<&str> {
        self.failure()?.error.error_code.as_deref()
    }

    /// Returns the details of the service's error.
    pub(super) fn details(&self) -> Option<&Data> {
        self.failure()?.error.details.as_ref()
    }

    /// Returns the ids of a call that the service answered with an error.
    pub(super) fn ids(&self) -> Option<&ActionIds> {
        Some(&self.failure()?.ids)
    }
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

/// Delivery of an action, as a script requests it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Delivery {
    /// Waits for the reply. The timeout is in seconds. Default: [`TIMEOUT`].
    Call { timeout: Option<f64> },
    /// Waits for nothing. The reply may come as a callback.
    Send { callback: Option<Callback> },
    /// Publishes a notification.
    Notify,
}

/// A requested callback.
#[derive(Debug, Clone, PartialEq)]
pub struct Callback {
    /// Name of the event.
    pub event: String,
    /// Data that its handler gets.
    pub remember: Value,
}

/// An action as a script requests it.
#[derive(Debug, Clone)]
pub(super) struct ActionCall {
    /// Service, dot, operation; or the event of a notification.
    pub(super) action_type: String,
    /// An object in JSON.
    pub(super) data: String,
    pub(super) delivery: Delivery,
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

/// Calls actions for one run, within its time.
#[derive(Debug, Clone)]
pub(super) struct RunCalls {
    caller: ActionCaller,
    job: Arc<Job>,
    trace: Option<TraceContext>,
    stop: StopSignal,
    deadline: Instant,
}

impl RunCalls {
    pub(super) fn of(run: &Run) -> Self {
        Self {
            caller: run.caller.clone(),
            job: Arc::clone(&run.job),
            trace: run.trace.clone(),
            stop: run.stop.clone(),
            deadline: run.deadline,
        }
    }

    /// Sends an action. Waits for a reply no longer than the run may take, and not beyond its stop signal.
    pub(super) async fn call(&self, call: ActionCall) -> Result<ActionReply, ActionCallError> {
        let (calls, number) = match &self.caller {
            ActionCaller::NotHere => return Err(ActionCallError::NotHere),
            ActionCaller::InContext => return Err(ActionCallError::InContext),
            ActionCaller::Here { calls, number } => (calls, number),
        };
        // A refused action counts too: the next run sends it again, in the same place.
        let number = number.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let (data, delivery) = check(&call)?;
        let left = self.deadline.saturating_duration_since(Instant::now());
        let action_type = call.action_type;
        let request = ActionRequest {
            action_type: action_type.clone(),
            data,
            delivery: match delivery {
                CheckedDelivery::Call(wait) => CheckedDelivery::Call(wait.min(left)),
                delivery => delivery,
            },
            job: &self.job,
            number,
            trace: self.trace.as_ref(),
        };
        let reply = tokio::select! {
            biased;
            _ = self.stop.stopped() => return Err(ActionCallError::Stopping(action_type)),
            reply = calls.call(request) => reply?,
        };
        match reply.json.len() {
            size if size > MAX_REPLY => Err(ActionCallError::LargeReply { action_type, size }),
            _ => Ok(reply),
        }
    }
}

/// Returns the data of an action and its delivery.
fn check(call: &ActionCall) -> Result<(Data, CheckedDelivery), ActionCallError> {
    let name = call.action_type.as_str();
    let delivery = match &call.delivery {
        Delivery::Call { timeout } => {
            check_type(name)?;
            CheckedDelivery::Call(wait(*timeout)?)
        }
        Delivery::Send { callback } => {
            check_type(name)?;
            if let Some(callback) = callback {
                check_event(&callback.event)?;
            }
            CheckedDelivery::Send(callback.clone())
        }
        Delivery::Notify => {
            check_event(name)?;
            CheckedDelivery::Notify
        }
    };
    let size = call.data.len();
    if size > MAX_DATA {
        return Err(ActionCallError::TooLarge { size });
    }
    let data = Data::parse(&call.data);
    let data = data.map_err(|error| ActionCallError::Data(error.to_string()))?;
    Ok((data, delivery))
}

fn wait(timeout: Option<f64>) -> Result<Duration, ActionCallError> {
    let Some(seconds) = timeout else {
        return Ok(TIMEOUT);
    };
    let wait = Duration::try_from_secs_f64(seconds).ok();
    let wait = wait.filter(|wait| !wait.is_zero());
    wait.ok_or(ActionCallError::Timeout(seconds))
}

/// Returns the begin of a name, for errors.
fn shown(name: &str) -> String {
    name[..name.floor_char_boundary(MAX_TYPE)].to_owned()
}

fn check_type(name: &str) -> Result<(), ActionCallError> {
    let refused = |why| Err(ActionCallError::Type(shown(name), why));
    let service = service_of(name);
    let operation = name.get(service.len() + 1..).unwrap_or_default();
    if name.len() > MAX_TYPE {
        return refused("longer than 256 bytes");
    }
    if service.is_empty() {
        return refused("without a service");
    }
    if operation.is_empty() || operation.split('.').any(str::is_empty) {
        return refused("without an operation");
    }
    // A colon separates the parts of a queue's name.
    if service.contains(':') || name.chars().any(char::is_control) {
        return refused("not possible: its service has a colon, or it has control characters");
    }
    Ok(())
}

fn check_event(name: &str) -> Result<(), ActionCallError> {
    let refused = |why| Err(ActionCallError::Event(shown(name), why));
    match name {
        "" => refused("empty"),
        _ if name.len() > MAX_TYPE => refused("longer than 256 bytes"),
        _ if name.chars().any(char::is_control) => {
            refused("not possible: it has control characters")
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
