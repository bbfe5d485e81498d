//! Methods for what jobs have printed, and for their events.

use meshwork::EventFilter;
use meshwork::model::access::{Object, Operation};
use meshwork_model::api_key::Scope;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::call::Call;
use crate::api::error::ApiError;
use crate::api::method::{HttpVerb, Method, Reply};
use crate::api::params;

/// Log lines of a page.
const LOG_LINES: usize = 1000;

/// The methods.
pub(in crate::api) fn methods() -> Vec<Method> {
    use HttpVerb::Get;
    use Scope::Viewer;
    vec![
        Method::new(
            ("job.logs", Viewer),
            (Get, "/v1/jobs/{id}/logs"),
            "Read log lines of a job",
            logs,
        ),
        Method::new(
            ("job.events", Viewer),
            (Get, "/v1/jobs/{id}/events"),
            "Read the newest events of a job",
            events,
        ),
    ]
}

/// A page of log lines.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "JobLogsParams")]
struct LogsParams {
    /// Id of the job.
    id: String,
    /// Only lines after the line with this id.
    after: Option<String>,
    /// Number of its context; none if it is of no context.
    context: Option<u32>,
}

/// Page of log lines.
#[derive(Debug, Serialize, JsonSchema)]
struct LogPage {
    /// The lines, the oldest first.
    lines: Vec<LogLine>,
    /// Id of the last line, to be given as `after`; null if there was none.
    last: Option<String>,
}

/// Line of a log.
#[derive(Debug, Serialize, JsonSchema)]
struct LogLine {
    /// Position in the log.
    id: String,
    /// Time at which the line was stored (RFC 3339).
    at: String,
    /// `stdout`, `stderr` or another stream.
    stream: String,
    /// The line without its line break.
    line: String,
}

async fn logs(call: Call, params: LogsParams) -> Result<Reply<LogPage>, ApiError> {
    let needs = (Object::Job, Operation::Read);
    let call = call.enter(params.context, needs).await?;
    let id = call.job_id(params.id)?;
    let job = call.client.summary(&id).await?;
    let after = params.after.as_deref();
    let lines = call.client.broker().log_lines(&id, after).await?;
    let secrets = job.env_vars.secrets();
    let lines: Vec<_> = lines
        .into_iter()
        .take(LOG_LINES)
        .map(|line| LogLine {
            id: line.id,
            at: meshwork::model::time::iso(line.at_ms),
            stream: line.stream,
            line: String::from_utf8_lossy(&secrets.mask_bytes(&line.line)).into_owned(),
        })
        .collect();
    let last = lines.last().map(|line| line.id.clone()).or(params.after);
    Ok(Reply::new(&LogPage { lines, last }))
}

/// A page of events.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "JobEventsParams")]
struct EventsParams {
    /// Id of the job.
    id: String,
    /// Greatest number of events, 1 to 1000. Default: 100.
    limit: Option<usize>,
    /// Number of its context; none if it is of no context.
    context: Option<u32>,
}

/// Page of events.
#[derive(Debug, Serialize, JsonSchema)]
struct EventPage {
    /// The events, the oldest first.
    events: Vec<Event>,
}

/// Event of a job.
#[derive(Debug, Serialize, JsonSchema)]
struct Event {
    /// Position among all events.
    id: String,
    /// Time of the event (RFC 3339).
    at: String,
    /// The job.
    job: String,
    /// The change: `enqueue`, `claim`, `retry`, `finished`, `error` and others.
    event: String,
    /// Worker or client.
    by: String,
    /// Message, reason or type.
    note: String,
}

async fn events(call: Call, params: EventsParams) -> Result<Reply<EventPage>, ApiError> {
    let needs = (Object::Job, Operation::Read);
    let call = call.enter(params.context, needs).await?;
    let filter = EventFilter {
        job: Some(call.job_id(params.id)?),
        since_ms: 0,
    };
    let page = call
        .client
        .events(&filter, params::limit(params.limit)?)
        .await?;
    let events = page.events.into_iter().map(|event| Event {
        id: event.id,
        at: meshwork::model::time::iso(event.at_ms),
        job: event.job,
        event: event.event,
        by: event.by,
        note: event.note,
    });
    let events = events.collect();
    Ok(Reply::new(&EventPage { events }))
}
