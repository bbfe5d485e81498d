//! Topics of live streams, as clients name them.

use meshwork_model::api_key::Scope;
use meshwork_model::name::JobId;

use super::call::Call;
use super::error::ApiError;
use crate::api::live::{Live, Position, Subscription, Topic};

/// Reads the topic of a kind: the events of a job, a queue or a flow.
pub(crate) fn of(call: &Call, kind: &str, value: &str) -> Result<Topic, ApiError> {
    match kind {
        "job" => Ok(Topic::Job(JobId::foreign(value.to_owned()).to_string())),
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

/// Subscribes to a topic: `events`, `job:ID`, `queue:NAME`, `flow:NUMBER`, or `log:ID` for the log of a job.
pub(crate) async fn subscribe(
    live: &Live,
    call: &Call,
    text: &str,
    from: Option<Position>,
) -> Result<Subscription, ApiError> {
    call.access.check(Scope::Viewer, "subscribe")?;
    match text.split_once(':') {
        Some(("log", id)) => {
            let id = JobId::foreign(id.to_owned());
            live.log(&call.client, id, from).await
        }
        Some((kind, value)) => {
            live.events(&call.client, of(call, kind, value)?, from)
                .await
        }
        None if text == "events" => live.events(&call.client, Topic::All, from).await,
        None => Err(unknown()),
    }
}
