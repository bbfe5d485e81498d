//! Topics of live streams, as clients name them.

use meshwork_model::access::{Object, Operation};
use meshwork_model::api_key::Scope;
use meshwork_model::keys::context::ContextId;

use super::away::unless_away;
use super::call::Call;
use super::error::ApiError;
use crate::api::live::{Live, Position, Subscription, Topic};
use crate::http::guard::Holder;

/// Reads the topic of a kind: the events of a job, a queue or a flow.
pub(crate) fn of(call: &Call, kind: &str, value: &str) -> Result<Topic, ApiError> {
    match kind {
        "job" => Ok(Topic::Job(call.job_id(value)?.to_string())),
        "queue" => {
            let keys = call.client.broker().keys();
            let list = keys.parse_work_queue(value);
            let list = list.map_err(|error| ApiError::invalid(format!("queue: {error}")))?;
            Ok(Topic::Queue(list))
        }
        "flow" => value.parse().map(Topic::Flow).map_err(|_| {
            let message = format!("flow: {value:?} is no number of a flow");
            ApiError::invalid(message)
        }),
        _ => Err(unknown()),
    }
}

fn unknown() -> ApiError {
    ApiError::invalid("topic: give events, job:ID, queue:NAME, flow:NUMBER or log:ID")
}

/// Reads a position.
pub(crate) fn position(text: &str) -> Result<Position, ApiError> {
    text.parse()
        .map_err(|error| ApiError::invalid(format!("from: {error}")))
}

/// Reads the number of a context in a query.
pub(crate) fn context(text: &str) -> Result<u32, ApiError> {
    let wrong = |_| ApiError::invalid("context: give the number of a context");
    text.parse().map_err(wrong)
}

/// Switches a call to the context of a stream, or to that of its key. Outside of contexts the caller needs the right to read
/// there.
pub(crate) async fn enter(call: Call, context: Option<u32>, name: &str) -> Result<Call, ApiError> {
    call.access.check(Scope::Viewer, name)?;
    let broker = call.client.broker().clone();
    unless_away(&broker, false, entered(call, context, name)).await
}

async fn entered(call: Call, context: Option<u32>, name: &str) -> Result<Call, ApiError> {
    match context.or_else(|| call.access.context().map(ContextId::get)) {
        Some(context) => {
            let read = (Object::Job, Operation::Read);
            call.enter(Some(context), read).await
        }
        None => call.outside(Scope::Viewer, name).await.map(|()| call),
    }
}

/// Subscribes to a topic: `events`, `job:ID`, `queue:NAME`, `flow:NUMBER`, or `log:ID` for the log of a job.
pub(crate) async fn subscribe(
    live: &Live,
    call: &Call,
    text: &str,
    (from, holder): (Option<Position>, &Holder),
) -> Result<Subscription, ApiError> {
    let topic = match text.split_once(':') {
        Some(("log", id)) => {
            let id = call.job_id(id)?;
            return live.log(call, id, (from, holder)).await;
        }
        Some((kind, value)) => of(call, kind, value)?,
        None if text == "events" => Topic::All,
        None => return Err(unknown()),
    };
    live.events(call, topic, (from, holder)).await
}
