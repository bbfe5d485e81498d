//! Methods for what jobs have printed, and for their events.

use meshwork::{EventFilter, JobEvent};
use meshwork_broker::MAX_ITEMS;
use meshwork_model::access::{Object, Operation};
use meshwork_model::api_key::Scope;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::call::Call;
use crate::api::error::ApiError;
use crate::api::live::{Position, placed};
use crate::api::method::{HttpVerb, Method, Reply};
use meshwork_ops::params::{self, moment, parse_some};

/// Log lines of a page.
const LOG_LINES: usize = 1000;
/// Pages of events of all jobs that one call reads at most.
const MAX_PAGES: usize = 8;

/// The methods.
pub(in crate::api) fn methods() -> Vec<Method> {
    use HttpVerb::Get;
    use Scope::Viewer;
    vec![
        Method::new(
            ("job.logs", Viewer),
            (Get, "/v1/jobs/{id}/logs"),
            "Read log lines of a job; REST streams them with `follow=true`",
            logs,
        )
        .follows(),
        Method::new(
            ("job.events", Viewer),
            (Get, "/v1/jobs/{id}/events"),
            "Read the newest events of a job, or those after an id",
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
    /// Greatest number of lines, 1 to 1000. Default: 1000.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<usize>,
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
    let limit = params::limit(params.limit.or(Some(LOG_LINES)))?;
    let after = parse_some("after", params.after.as_deref())?;
    let after = after.unwrap_or(Position::START);
    let needs = (Object::Job, Operation::Read);
    let (call, id) = call.enter_job(params.context, &params.id, needs).await?;
    let job = call.client.status(&id).await?;
    let before = after.entry_before();
    let lines = call.client.broker().log_lines(&id, Some(&before)).await?;
    let secrets = job.env_vars.secrets();
    let lines = placed(lines, |line| &line.id).into_iter();
    let lines: Vec<_> = lines
        .filter(|(at, _)| *at > after)
        .take(limit)
        .map(|(at, line)| LogLine {
            id: at.to_string(),
            at: meshwork_model::time::iso(line.at_ms),
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
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<usize>,
    /// Only events after this id: the oldest of them first, instead of the newest events.
    after: Option<String>,
    /// Only events at this time or later (RFC 3339).
    since: Option<String>,
    /// Number of its context; none if it is of no context.
    context: Option<u32>,
}

/// Page of events.
#[derive(Debug, Serialize, JsonSchema)]
struct EventPage {
    /// The events, the oldest first. A page after an id may have none, although more follow.
    events: Vec<Event>,
    /// Position up to which events were read, to be given as `after`, or as `from` of a stream; null if there are none.
    last: Option<String>,
    /// True if more events are stored after `last`.
    more: bool,
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

impl Event {
    fn new(id: String, event: JobEvent) -> Self {
        Self {
            id,
            at: meshwork_model::time::iso(event.at_ms),
            job: event.job,
            event: event.event,
            by: event.by,
            note: event.note,
        }
    }
}

async fn events(call: Call, params: EventsParams) -> Result<Reply<EventPage>, ApiError> {
    let limit = params::limit(params.limit)?;
    let since = params.since.as_deref();
    let since_ms = since.map(|text| moment("since", text)).transpose()?;
    let after = parse_some("after", params.after.as_deref())?;
    let needs = (Object::Job, Operation::Read);
    let (call, id) = call.enter_job(params.context, &params.id, needs).await?;
    let filter = EventFilter {
        job: Some(id),
        since_ms: since_ms.unwrap_or(0),
    };
    if let Some(after) = after {
        return events_after(&call, &filter, after, limit).await;
    }
    let page = call.client.events(&filter, limit).await?;
    let events = page.events.into_iter();
    let events = events.map(|event| Event::new(event.id.clone(), event));
    Ok(Reply::new(&EventPage {
        events: events.collect(),
        last: page.last,
        more: false,
    }))
}

/// Reads events forward from a position.
async fn events_after(
    call: &Call,
    filter: &EventFilter,
    mut last: Position,
    limit: usize,
) -> Result<Reply<EventPage>, ApiError> {
    let (mut events, mut more) = (Vec::new(), true);
    for _ in 0..MAX_PAGES {
        let before = last.entry_before();
        let page = call.client.broker().events_after(&before).await?;
        let page = placed(page, |event| &event.id);
        more = page.len() >= MAX_ITEMS;
        for (at, event) in page {
            if at <= last {
                continue;
            }
            if events.len() == limit {
                more = true;
                break;
            }
            last = at;
            if filter.includes(&event) {
                events.push(Event::new(at.to_string(), event));
            }
        }
        if !more || events.len() == limit {
            break;
        }
    }
    Ok(Reply::new(&EventPage {
        events,
        last: Some(last.to_string()),
        more,
    }))
}
