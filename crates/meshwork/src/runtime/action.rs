//! call_action: calls of services by a running job. The run never gets access to the store: its worker calls for it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use meshwork_model::job::{Job, limits};
use meshwork_model::keys::nooble::service_of;
use meshwork_model::nooble::Data;
use meshwork_model::trace::TraceContext;
use tokio::time::Instant;

use super::{Run, StopSignal};

/// Timeout of a call without its own: that of `meshwork action call`.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Most bytes of the data of a call: a service passes it to scripts as their input.
const MAX_DATA: usize = limits::MAX_INPUT;
/// Most bytes of the data of a reply: a script may pass it on as its result.
const MAX_REPLY: usize = limits::MAX_OUTPUT;
/// Most bytes of an action type: more than any service has, and short in error texts.
const MAX_TYPE: usize = 256;

/// Why a call of an action has no reply data.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ActionCallError {
    /// The protocol of the run does not offer calls.
    #[error(
        "call_action() is only there for jobs of Meshwork: what runs here belongs to another system (Bananas, Nooble4), \
         or to no worker"
    )]
    NotHere,
    /// The job belongs to a context, and services are outside of all contexts.
    #[error(
        "call_action(): jobs of a context call no actions, since services belong to no context: send a message to a \
         context whose workers may call them"
    )]
    InContext,
    /// The type names no service and operation.
    #[error(
        "call_action(): the action type {0:?} is {1}: give the service, a dot, and the operation, as embedding.generate"
    )]
    Type(String, &'static str),
    /// The timeout is no positive number.
    #[error("call_action(): the timeout {0} is not possible: give seconds, more than 0")]
    Timeout(f64),
    /// The data is no object of JSON, or not one that services can read.
    #[error("call_action(): {0}")]
    Data(String),
    /// The data is too large.
    #[error(
        "call_action(): the data takes {size} bytes, the limit is {MAX_DATA}: pass a reference to what is large"
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
    /// The job is being cancelled, or its lease is lost.
    #[error("the call of {0} was abandoned: the job is being stopped")]
    Stopping(String),
    /// The service answered with an error.
    #[error("{action_type} failed: {message}")]
    Failed {
        /// The type of the action.
        action_type: String,
        /// The type of the error, for programs.
        error_type: String,
        /// Its code.
        code: Option<String>,
        /// Its text, for people.
        message: String,
        /// More for programs.
        details: Option<Data>,
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
    /// The call was not sent, or its reply cannot be read.
    #[error("call_action(): {0}")]
    Refused(String),
}

impl ActionCallError {
    /// The kind for scripts: the type of the service's error, or one of this crate's words.
    pub(super) fn kind(&self) -> &str {
        match self {
            Self::Failed { error_type, .. } => error_type,
            Self::NoAnswer { .. } => "Timeout",
            Self::Stopping(_) => "Stopped",
            _ => "Refused",
        }
    }

    /// The code of the service's error.
    pub(super) fn code(&self) -> Option<&str> {
        match self {
            Self::Failed { code, .. } => code.as_deref(),
            _ => None,
        }
    }

    /// The details of the service's error.
    pub(super) fn details(&self) -> Option<&Data> {
        match self {
            Self::Failed { details, .. } => details.as_ref(),
            _ => None,
        }
    }
}

/// A call as a script makes it.
#[derive(Debug, Clone)]
pub(super) struct ActionCall {
    /// Service, dot, operation.
    pub(super) action_type: String,
    /// An object in JSON.
    pub(super) data: String,
    /// In seconds. Default: [`TIMEOUT`].
    pub(super) timeout: Option<f64>,
}

/// A checked call, for the protocol that sends it.
#[derive(Debug)]
pub(crate) struct ActionRequest<'a> {
    pub(crate) action_type: String,
    pub(crate) data: Data,
    pub(crate) wait: Duration,
    /// The job that calls.
    pub(crate) job: &'a Job,
    /// Number of the call within the run, from 1.
    pub(crate) number: u32,
    /// Trace of the run.
    pub(crate) trace: Option<&'a TraceContext>,
}

/// Sends calls in the name of a worker.
pub(crate) trait CallActions: Send + Sync + 'static {
    /// Calls a service and returns the data of its reply. Dropped: the call is abandoned.
    fn call<'a>(
        &'a self,
        request: ActionRequest<'a>,
    ) -> BoxFuture<'a, Result<Data, ActionCallError>>;

    /// Ends what all calls share. No call is under way any more.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// Caller of actions for one run. Clones share the count of calls.
#[derive(Clone, Default)]
pub(crate) enum ActionCaller {
    /// Calls are not offered.
    #[default]
    NotHere,
    /// The job belongs to a context.
    InContext,
    /// Calls are sent by the worker.
    Here {
        calls: Arc<dyn CallActions>,
        number: Arc<AtomicU32>,
    },
}

impl ActionCaller {
    /// For one run of a job.
    pub(crate) fn new(calls: &Arc<dyn CallActions>) -> Self {
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

    /// Calls an action and returns the data of its reply. Waits no longer than the run may take, and not beyond its stop
    /// signal.
    pub(super) async fn call(&self, call: ActionCall) -> Result<Data, ActionCallError> {
        let (calls, number) = match &self.caller {
            ActionCaller::NotHere => return Err(ActionCallError::NotHere),
            ActionCaller::InContext => return Err(ActionCallError::InContext),
            ActionCaller::Here { calls, number } => (calls, number),
        };
        // A refused call counts too: the next run makes it again, in the same place.
        let number = number.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let (data, wait) = check(&call)?;
        let left = self.deadline.saturating_duration_since(Instant::now());
        let action_type = call.action_type;
        let request = ActionRequest {
            action_type: action_type.clone(),
            data,
            wait: wait.min(left),
            job: &self.job,
            number,
            trace: self.trace.as_ref(),
        };
        let reply = tokio::select! {
            biased;
            _ = self.stop.stopped() => return Err(ActionCallError::Stopping(action_type)),
            reply = calls.call(request) => reply?,
        };
        match reply.text().len() {
            size if size > MAX_REPLY => Err(ActionCallError::LargeReply { action_type, size }),
            _ => Ok(reply),
        }
    }
}

/// The data of a call and its wait.
fn check(call: &ActionCall) -> Result<(Data, Duration), ActionCallError> {
    let name = &call.action_type;
    let refused = |why| {
        let shown = &name[..name.floor_char_boundary(MAX_TYPE)];
        Err(ActionCallError::Type(shown.to_owned(), why))
    };
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
    let wait = match call.timeout {
        None => TIMEOUT,
        Some(seconds) => {
            let wait = Duration::try_from_secs_f64(seconds).ok();
            let wait = wait.filter(|wait| !wait.is_zero());
            wait.ok_or(ActionCallError::Timeout(seconds))?
        }
    };
    let size = call.data.len();
    if size > MAX_DATA {
        return Err(ActionCallError::TooLarge { size });
    }
    let data = Data::parse(&call.data);
    Ok((
        data.map_err(|error| ActionCallError::Data(error.to_string()))?,
        wait,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(action_type: &str, data: &str, timeout: Option<f64>) -> ActionCall {
        ActionCall {
            action_type: action_type.to_owned(),
            data: data.to_owned(),
            timeout,
        }
    }

    #[test]
    fn what_no_service_can_take_is_refused_by_name() {
        for (action_type, why) in [
            ("", "without a service"),
            (".x", "without a service"),
            ("a", "without an operation"),
            ("a.", "without an operation"),
            ("a..b", "without an operation"),
            ("a:b.c", "a colon"),
            ("a.\n", "control characters"),
            (&format!("a.{}", "ä".repeat(200)), "longer than 256 bytes"),
        ] {
            let error = check(&call(action_type, "{}", None)).unwrap_err();
            assert_eq!(error.kind(), "Refused");
            let said = error.to_string();
            assert!(said.contains(why) && said.len() < 600, "{said}");
        }
        for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-12] {
            let error = check(&call("a.b", "{}", Some(seconds))).unwrap_err();
            assert!(error.to_string().contains("more than 0"), "{error}");
        }
        let (_, wait) = check(&call("a.b", "{}", Some(0.5))).unwrap();
        assert_eq!(wait, Duration::from_millis(500));
    }

    #[test]
    fn data_is_an_object_within_its_limit() {
        let error = check(&call("a.b", "[1]", None)).unwrap_err();
        assert!(error.to_string().contains("not a list"), "{error}");
        let fill = |size: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(size - 8));
        assert!(check(&call("a.b", &fill(MAX_DATA), None)).is_ok());
        let error = check(&call("a.b", &fill(MAX_DATA + 1), None)).unwrap_err();
        assert!(error.to_string().contains("16777217 bytes"), "{error}");
    }
}
