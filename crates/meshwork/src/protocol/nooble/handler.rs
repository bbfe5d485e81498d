//! Handlers of actions: functions from the data of an action to that of its reply, and scripts.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use meshwork_model::job::Job;
use meshwork_model::nooble::{Action, Data, ErrorDetail, InvalidData};
use meshwork_model::secret::EnvVars;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::context::ActionContext;
use super::error::{ActionError, PROCESSING};
use super::request::traceparent;
use crate::protocol::handlers::Entry;

/// Result of a handler: the data of the reply.
pub(super) type Given = Result<Data, ActionError>;

/// A handler with any types.
pub(super) trait Act: Send + Sync + 'static {
    fn act(&self, data: Data, context: ActionContext) -> BoxFuture<'static, Given>;
}

/// A function that handles actions: `Fn(In, ActionContext) -> impl Future<Output = Result<Out, E>>`. `In` is decoded
/// from the action's data, `Out` is encoded as that of the reply (`()` is an empty object), and `E` is an error or
/// text. The compiler infers `Signature`.
pub trait ActionHandler<Signature>: Send + Sync + 'static {
    /// Calls the function.
    #[doc(hidden)]
    fn call(
        &self,
        data: Data,
        context: ActionContext,
    ) -> BoxFuture<'static, Result<Data, ActionError>>;
}

/// A function that handles callbacks: as [`ActionHandler`], but its argument is `Result<In, ErrorDetail>`, since the
/// request may have failed.
pub trait CallbackHandler<Signature>: Send + Sync + 'static {
    /// Calls the function.
    #[doc(hidden)]
    fn call(
        &self,
        data: Result<Data, ErrorDetail>,
        context: ActionContext,
    ) -> BoxFuture<'static, Result<Data, ActionError>>;
}

impl<F, Fut, In, Out, E> ActionHandler<(In, Out, E)> for F
where
    F: Fn(In, ActionContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Out, E>> + Send + 'static,
    In: DeserializeOwned,
    Out: Serialize,
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    fn call(&self, data: Data, context: ActionContext) -> BoxFuture<'static, Given> {
        match read(&data) {
            Ok(input) => {
                let run = self(input, context);
                Box::pin(async move { given(run.await.map_err(Into::into)) })
            }
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }
}

impl<F, Fut, In, Out, E> CallbackHandler<(In, Out, E)> for F
where
    F: Fn(Result<In, ErrorDetail>, ActionContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Out, E>> + Send + 'static,
    In: DeserializeOwned,
    Out: Serialize,
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    fn call(
        &self,
        data: Result<Data, ErrorDetail>,
        context: ActionContext,
    ) -> BoxFuture<'static, Given> {
        let input = match data {
            Ok(data) => read(&data).map(Ok),
            Err(failed) => Ok(Err(failed)),
        };
        match input {
            Ok(input) => {
                let run = self(input, context);
                Box::pin(async move { given(run.await.map_err(Into::into)) })
            }
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }
}

fn read<In: DeserializeOwned>(data: &Data) -> Result<In, ActionError> {
    data.read().map_err(|error| {
        let message = format!("the data is not what the handler takes: {error}");
        ActionError::new("ValidationError", "INVALID_DATA", &message).permanent()
    })
}

/// Converts a function's result to the data of a reply.
fn given<Out: Serialize>(out: Result<Out, Box<dyn std::error::Error + Send + Sync>>) -> Given {
    let out = out.map_err(ActionError::of)?;
    answer(Data::of(&out))
}

/// Checks that the data of a reply is an object; `null` becomes an empty one.
fn answer(data: Result<Data, InvalidData>) -> Given {
    match data {
        Err(InvalidData::NoObject("null")) => Ok(Data::empty()),
        data => data.map_err(|error| no_data(&error.to_string())),
    }
}

/// Returns the error of a handler whose result is no object.
fn no_data(why: &str) -> ActionError {
    let message = format!("what the handler gave is no answer: {why}");
    ActionError::new(PROCESSING.0, PROCESSING.1, &message).permanent()
}

struct Typed<H, S>(H, PhantomData<fn(S)>);
struct TypedCallback<H, S>(H, PhantomData<fn(S)>);

impl<H: ActionHandler<S>, S: 'static> Act for Typed<H, S> {
    fn act(&self, data: Data, context: ActionContext) -> BoxFuture<'static, Given> {
        self.0.call(data, context)
    }
}

impl<H: CallbackHandler<S>, S: 'static> Act for TypedCallback<H, S> {
    fn act(&self, data: Data, context: ActionContext) -> BoxFuture<'static, Given> {
        self.0.call(outcome(data), context)
    }
}

/// Returns the outcome in a callback: its data, or the error of the request.
fn outcome(data: Data) -> Result<Data, ErrorDetail> {
    #[derive(serde::Deserialize)]
    struct Failure {
        status: String,
        error: Detail,
    }
    #[derive(serde::Deserialize)]
    struct Detail {
        error_type: String,
        error_code: Option<String>,
        message: String,
        details: Option<serde_json::Value>,
    }
    match data.read::<Failure>() {
        Ok(failure) if failure.status == "failure" => Err(ErrorDetail {
            error_type: failure.error.error_type,
            error_code: failure.error.error_code,
            message: failure.error.message,
            details: failure.error.details.and_then(|it| Data::of(&it).ok()),
        }),
        _ => Ok(data),
    }
}

/// Converts a script's output to the data of a reply.
pub(super) fn data_of(output: &[u8]) -> Given {
    match String::from_utf8_lossy(output).trim() {
        "" => Ok(Data::empty()),
        // Stricter than for received messages: Python writes NaN, which other readers refuse.
        text => match serde_json::from_str::<serde::de::IgnoredAny>(text) {
            Ok(_) => answer(Data::parse(text)),
            Err(error) => Err(no_data(&format!("it is no JSON: {error}"))),
        },
    }
}

/// Returns the job of a script for an action.
pub(super) fn job_of(entry: &Entry, action: &Action) -> Job {
    let mut job = entry.job(&action.action_id, action.data.text());
    // Ids of the script's actions follow from both.
    job.created_at.clone_from(&action.timestamp);
    job.traceparent = traceparent(action);
    job.env_vars = env(action);
    job
}

/// Returns the environment variables of a script that describe its action. A missing value has no variable.
fn env(action: &Action) -> EnvVars {
    let said = |name: &str, id: Option<&String>| id.map(|id| (name.to_owned(), id.clone()));
    [
        said("ACTION_TYPE", Some(&action.action_type)),
        said("ORIGIN_SERVICE", action.origin_service.as_ref()),
        said("CORRELATION_ID", action.correlation_id.as_ref()),
        said("TRACE_ID", action.trace_id.as_ref()),
        said("TASK_ID", action.task_id.as_ref()),
        said("TENANT_ID", action.tenant_id.as_ref()),
        said("SESSION_ID", action.session_id.as_ref()),
        said("AGENT_ID", action.agent_id.as_ref()),
        said("USER_ID", action.user_id.as_ref()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Handler of one action type.
#[derive(Clone)]
pub(super) enum Deals {
    Function(Arc<dyn Act>),
    /// A script. Its input is the action's data, and its result is the data of the reply.
    Script(Arc<Entry>),
}

/// Handlers by action type.
pub(super) type Handlers = HashMap<String, Deals>;

/// Returns the handlers of a callback: one for its event.
pub(super) fn of_event<H: CallbackHandler<S>, S: 'static>(event: &str, handler: H) -> Handlers {
    let act = Deals::Function(Arc::new(TypedCallback(handler, PhantomData)));
    Handlers::from([(event.to_owned(), act)])
}

/// Adds a function.
pub(super) fn add<H: ActionHandler<S>, S: 'static>(to: &mut Handlers, name: &str, handler: H) {
    let act = Deals::Function(Arc::new(Typed(handler, PhantomData)));
    to.insert(name.to_owned(), act);
}

/// Adds handlers for types that have none.
pub(super) fn add_unless_there(to: &mut Handlers, handlers: &Handlers) {
    for (name, deals) in handlers {
        let free = to.entry(name.clone());
        free.or_insert_with(|| deals.clone());
    }
}
