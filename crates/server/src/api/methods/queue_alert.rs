//! Alerts of queues: jobs that are enqueued after failures in a row.

use meshwork::view::QueueAlertView;
use meshwork_model::api_key::Scope;
use meshwork_model::spec::JobSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::new_job::request_in;
use crate::api::call::Call;
use crate::api::error::{ApiError, Code};
use crate::api::method::{HttpVerb, Method, Reply};
use meshwork_ops::queue::{need, refuse_unknown};

/// The methods.
pub(in crate::api) fn methods() -> Vec<Method> {
    use HttpVerb::{Delete, Get, Put};
    use Scope::{Admin, Viewer};
    vec![
        Method::new(
            ("queue.alert", Viewer),
            (Get, "/v1/queues/{queue}/alert"),
            "Read the alert of a queue, and its failures in a row",
            alert,
        ),
        Method::new(
            ("queue.set_alert", Admin),
            (Put, "/v1/queues/{queue}/alert"),
            "Set the alert of a queue in place of an earlier one, and count its failures anew",
            set,
        ),
        Method::new(
            ("queue.remove_alert", Admin),
            (Delete, "/v1/queues/{queue}/alert"),
            "Remove the alert of a queue",
            remove,
        ),
    ]
}

/// A queue.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "QueueAlertParams")]
struct AlertParams {
    /// The queue: `TYPE`, `TYPE:group:GROUP`, or its whole key.
    queue: String,
}

/// Returns the error for a queue without an alert, which may not exist at all.
async fn none(call: &Call, list: &str) -> ApiError {
    let name = call.client.broker().keys().queue_name(list);
    match need(&call.client, list).await {
        Ok(()) => ApiError::new(Code::NotFound, format!("{name} has no alert"))
            .hint("`queue.set_alert`, or `meshwork queue alert set`, sets one"),
        Err(error) => ApiError::new(Code::NotFound, error.to_string()),
    }
}

async fn alert(call: Call, params: AlertParams) -> Result<Reply<QueueAlertView>, ApiError> {
    let list = call.queue(&params.queue)?;
    match call.client.alert(&list).await? {
        Some(alert) => Ok(Reply::new(&QueueAlertView::from(alert))),
        None => Err(none(&call, &list).await),
    }
}

/// An alert.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "QueueSetAlertParams")]
struct SetParams {
    /// The queue: `TYPE`, `TYPE:group:GROUP`, or its whole key.
    queue: String,
    /// Failures in a row before the alert, 1 to 1000. A failure is a job that becomes a dead letter.
    after: u32,
    /// The alert job. Its input becomes JSON with `kind` (`alert` or `recovery`), the queue and the failures.
    job: JobSpec,
    /// True to set it although the queue does not exist yet.
    #[serde(default)]
    create: bool,
}

async fn set(call: Call, params: SetParams) -> Result<Reply<QueueAlertView>, ApiError> {
    let list = call.queue(&params.queue)?;
    let job = request_in(&call, "job", params.job)?;
    refuse_unknown(&call.client, &list, params.create).await?;
    call.client.set_alert(&list, params.after, job).await?;
    alert(call, AlertParams { queue: list }).await
}

/// An alert that was removed.
#[derive(Debug, Serialize, JsonSchema)]
struct RemovedAlert {
    /// List of the queue.
    queue: String,
    /// `removed`.
    result: &'static str,
}

async fn remove(call: Call, params: AlertParams) -> Result<Reply<RemovedAlert>, ApiError> {
    let queue = call.queue(&params.queue)?;
    if !call.client.remove_alert(&queue).await? {
        return Err(none(&call, &queue).await);
    }
    let result = "removed";
    Ok(Reply::new(&RemovedAlert { queue, result }))
}
