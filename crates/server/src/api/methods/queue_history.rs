//! History of a queue.

use meshwork_model::api_key::Scope;
use meshwork_model::queue::history::HistorySpan;
use meshwork_model::time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::queue::READ;
use crate::api::call::Call;
use crate::api::error::ApiError;
use crate::api::method::{HttpVerb, Method, Reply};
use meshwork_ops::queue::need_to_read;

/// The methods.
pub(in crate::api) fn methods() -> Vec<Method> {
    vec![Method::new(
        ("queue.history", Scope::Viewer),
        (HttpVerb::Get, "/v1/queues/{queue}/history"),
        "Read the counts of a queue in each hour of the last three days",
        history,
    )]
}

/// A queue.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "QueueHistoryParams")]
struct HistoryParams {
    /// The queue: `TYPE`, `TYPE:group:GROUP`, or its whole key.
    queue: String,
    /// Its context; none for a queue outside contexts.
    context: Option<u32>,
}

/// History of a queue, with all its priorities.
#[derive(Debug, Serialize, JsonSchema)]
struct QueueHistory {
    /// List of the queue.
    queue: String,
    /// The hours, the first one first; the last one has not ended.
    hours: Vec<QueueHour>,
}

/// Jobs of an hour.
#[derive(Debug, Serialize, JsonSchema)]
struct QueueHour {
    /// Begin (RFC 3339).
    start_at: String,
    /// End (RFC 3339): an hour later, or more if no worker ran meanwhile.
    end_at: String,
    /// Counts; null if the counters were reset meanwhile.
    counts: Option<HourCounts>,
}

/// Counts of an hour.
#[derive(Debug, Serialize, JsonSchema)]
struct HourCounts {
    /// Number of jobs stored.
    stored: u64,
    /// Number of jobs that finished.
    finished: u64,
    /// Number of jobs that failed.
    failed: u64,
    /// Number of failed runs with a retry.
    retried: u64,
    /// Total duration of all runs that ended, in milliseconds.
    run_ms: u64,
}

impl From<&HistorySpan> for QueueHour {
    fn from(span: &HistorySpan) -> Self {
        Self {
            start_at: time::iso(span.from_ms),
            end_at: time::iso(span.to_ms),
            counts: span.counters.map(|of| HourCounts {
                stored: of.stored,
                finished: of.finished,
                failed: of.failed,
                retried: of.retried,
                run_ms: of.run_ms,
            }),
        }
    }
}

async fn history(call: Call, params: HistoryParams) -> Result<Reply<QueueHistory>, ApiError> {
    let call = call.enter(params.context, READ).await?;
    let queue = call.queue(&params.queue)?;
    let spans = call.client.broker().queue_history(&queue).await?;
    if spans.is_empty() {
        need_to_read(&call, &queue).await?;
    }
    let hours = spans.iter().map(QueueHour::from).collect();
    Ok(Reply::new(&QueueHistory { queue, hours }))
}
