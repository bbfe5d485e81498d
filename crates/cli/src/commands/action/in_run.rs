//! Actions of a process inside a run: a job, or the handler of a service. The worker of the run sends them, with the ids
//! of the run, so the process needs no access to the store.

use std::env;
use std::path::PathBuf;

use meshwork::protocol::nooble::Ids;
use meshwork::runtime::{ActionDelivery, ActionMessage, CALLS_VARIABLE, RunAnswer, ask};
use serde_json::Value;

use super::{ActionArgs, DEFAULT_ORIGIN, data, uuid};
use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;

/// Variable that services set for handlers, and workers do not.
const HANDLED: &str = "ACTION_TYPE";

/// The run to which this process belongs.
pub(super) struct EnclosingRun {
    socket: PathBuf,
}

impl EnclosingRun {
    /// Returns the run, unless the command names a store.
    pub(super) fn find(context: &App) -> Option<Self> {
        let socket = env::var_os(CALLS_VARIABLE).filter(|path| !path.is_empty())?;
        (!context.place.is_named()).then(|| Self {
            socket: socket.into(),
        })
    }

    /// Sends an action through the worker of the run.
    pub(super) async fn ask(&self, action: ActionMessage) -> Result<RunAnswer, CommandError> {
        let answer = ask(&self.socket, action).await;
        answer.map_err(|error| {
            let socket = self.socket.display();
            CommandError::new(
                Exit::FAILED,
                format_args!(
                    "the worker of this run does not answer at {socket}: the run has ended ({error})"
                ),
            )
        })
    }
}

impl ActionArgs {
    /// Returns the action for the worker of the run. Its ids are those of the run, so options for them are refused.
    pub(super) fn message(
        &self,
        delivery: ActionDelivery,
        action_type: &str,
    ) -> Result<ActionMessage, CommandError> {
        let given = [
            ("--task", self.task.is_some()),
            ("--tenant", self.tenant.is_some()),
            ("--session", self.session.is_some()),
            ("--traceparent", self.traceparent.is_some()),
            ("--context", self.context.is_some()),
            ("--as", self.origin != DEFAULT_ORIGIN),
        ];
        if let Some((option, _)) = given.iter().find(|(_, given)| *given) {
            return Err(refused(option));
        }
        Ok(ActionMessage {
            delivery,
            action_type: action_type.to_owned(),
            data: data(&self.data)?,
            timeout: None,
            callback: None,
            remember: Value::Null,
        })
    }
}

/// Returns the error of an option that needs access to the store.
pub(super) fn refused(option: &str) -> CommandError {
    CommandError::usage(format_args!(
        "{option} is not possible inside a job or handler, whose worker sends the action with the ids of the run: leave it \
         out, or name the store with --redis"
    ))
}

/// Returns the error of an action that was not sent, or had no reply in time.
pub(super) fn failure(answer: &RunAnswer) -> CommandError {
    let kind = answer.failed.as_ref().map(|failed| failed.kind.as_str());
    let exit = match kind {
        Some("Timeout") => Exit::NOT_ENDED,
        _ => Exit::FAILED,
    };
    let message = answer.error.as_deref();
    CommandError::new(exit, message.unwrap_or("the worker did not answer"))
}

/// Returns the ids of the action that the script around this process handles; new ones outside of a handler.
pub(super) fn ids_of_environment() -> Ids {
    let mut ids = Ids::default();
    if env::var_os(CALLS_VARIABLE).is_none() || env::var_os(HANDLED).is_none() {
        return ids;
    }
    let read = |name| env::var(name).ok().and_then(|id| uuid(&id).ok());
    for (id, name) in [
        (&mut ids.task_id, "TASK_ID"),
        (&mut ids.tenant_id, "TENANT_ID"),
        (&mut ids.session_id, "SESSION_ID"),
        (&mut ids.agent_id, "AGENT_ID"),
        (&mut ids.trace_id, "TRACE_ID"),
    ] {
        if let Some(inherited) = read(name) {
            *id = inherited;
        }
    }
    ids.user_id = read("USER_ID");
    ids
}
