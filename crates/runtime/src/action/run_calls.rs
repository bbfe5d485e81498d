//! Actions of one run, as its script requests them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use meshwork_model::job::Job;
use meshwork_model::keys::nooble::service_of;
use meshwork_model::nooble::Data;
use meshwork_model::trace::TraceContext;
use tokio::time::Instant;

use super::{
    ActionCallError, ActionCaller, ActionIds, ActionReply, ActionRequest, Callback,
    CheckedDelivery, MAX_DATA, MAX_REPLY, ServiceFailure,
};
use crate::{Run, StopSignal};

/// Timeout of a call without its own: that of `meshwork action call`.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Most bytes of an action type or event: more than any service has, and short in error texts.
const MAX_TYPE: usize = 256;

impl ActionCallError {
    fn failure(&self) -> Option<&ServiceFailure> {
        match self {
            Self::Failed { failure, .. } => Some(failure),
            _ => None,
        }
    }

    /// Returns the kind for scripts: the type of the service's error, or one of this crate's words.
    pub(crate) fn kind(&self) -> &str {
        match self {
            Self::Failed { failure, .. } => &failure.error.error_type,
            Self::NoAnswer { .. } => "Timeout",
            Self::Stopping(_) => "Stopped",
            _ => "Refused",
        }
    }

    /// Returns the code of the service's error.
    pub(crate) fn code(&self) -> Option<&str> {
        self.failure()?.error.error_code.as_deref()
    }

    /// Returns the details of the service's error.
    pub(crate) fn details(&self) -> Option<&Data> {
        self.failure()?.error.details.as_ref()
    }

    /// Returns the ids of a call that the service answered with an error.
    pub(crate) fn ids(&self) -> Option<&ActionIds> {
        Some(&self.failure()?.ids)
    }
}

/// Delivery of an action, as a script requests it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Delivery {
    /// Waits for the reply. The timeout is in seconds. Default: [`TIMEOUT`].
    Call { timeout: Option<f64> },
    /// Waits for nothing. The reply may come as a callback.
    Send { callback: Option<Callback> },
    /// Publishes a notification.
    Notify,
}

/// An action as a script requests it.
#[derive(Debug, Clone)]
pub(crate) struct ActionCall {
    /// Service, dot, operation; or the event of a notification.
    pub(crate) action_type: String,
    /// An object in JSON.
    pub(crate) data: String,
    pub(crate) delivery: Delivery,
}

/// Calls actions for one run, within its time.
#[derive(Debug, Clone)]
pub(crate) struct RunCalls {
    caller: ActionCaller,
    job: Arc<Job>,
    trace: Option<TraceContext>,
    stop: StopSignal,
    deadline: Instant,
}

impl RunCalls {
    pub(crate) fn of(run: &Run) -> Self {
        Self {
            caller: run.caller.clone(),
            job: Arc::clone(&run.job),
            trace: run.trace.clone(),
            stop: run.stop.clone(),
            deadline: run.deadline,
        }
    }

    /// Sends an action. Waits for a reply no longer than the run may take, and not beyond its stop signal.
    pub(crate) async fn call(&self, call: ActionCall) -> Result<ActionReply, ActionCallError> {
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
