//! The output of the jobs of a flow.

use meshwork::flow::FlowView;
use meshwork_model::access::{Object, Operation};
use meshwork_model::api_key::Scope;
use meshwork_model::keys::context::FlowId;
use meshwork_model::name::JobId;
use meshwork_model::time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::call::Call;
use crate::api::error::{ApiError, Code};
use crate::api::live::Position;
use crate::api::method::{HttpVerb, Method, Reply};
use meshwork_ops::params::wrong_cursor;

/// Greatest number of lines of a page.
const MOST_LINES: usize = 1000;
/// Greatest number of jobs whose logs one call reads.
const MOST_JOBS: usize = 200;

/// The method.
pub(in crate::api) fn methods() -> Vec<Method> {
    let logs = Method::new(
        ("flow.logs", Scope::Viewer),
        (HttpVerb::Get, "/v1/flows/{id}/logs"),
        "Read log lines of the jobs of a flow, in the order of the plan",
        logs,
    );
    vec![logs.in_contexts()]
}

/// A page of log lines of a flow.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "FlowLogsParams")]
struct LogsParams {
    /// Number of the flow.
    id: u32,
    /// Only this job.
    job: Option<String>,
    /// `next` of the page before.
    cursor: Option<String>,
    /// Its context; the only one of the store if none is given.
    context: Option<u32>,
}

/// Page of log lines of a flow.
#[derive(Debug, Serialize, JsonSchema)]
struct FlowLogPage {
    /// The lines, by job, the oldest first.
    lines: Vec<FlowLogLine>,
    /// Cursor of the next page; null after the last line.
    next: Option<String>,
}

/// Line of the log of a flow.
#[derive(Debug, Serialize, JsonSchema)]
struct FlowLogLine {
    /// Name of the job, as `parse`, or `parse[3]` for an item of a `foreach`.
    job: String,
    /// Position in the log of the job; null for a line of the job's record.
    id: Option<String>,
    /// Time at which the line was stored (RFC 3339).
    at: Option<String>,
    /// `stdout`, `stderr` or another stream.
    stream: String,
    /// The line without its line break.
    line: String,
}

/// A stored job or item of a flow.
struct Source {
    name: String,
    id: JobId,
    is_ended: bool,
}

/// Returns the stored jobs of a flow and their items.
fn sources(view: &FlowView, job: Option<&str>, key: impl Fn(&str) -> Option<JobId>) -> Vec<Source> {
    let ended = |status: &str| matches!(status, "finished" | "error" | "stopped");
    let of = |name: String, id: &str, status: &str| {
        Some(Source {
            name,
            id: key(id)?,
            is_ended: ended(status),
        })
    };
    let mut found = Vec::new();
    for it in &view.jobs {
        if job.is_some_and(|name| name != it.name) {
            continue;
        }
        found.extend(of(it.name.clone(), &it.id, it.status));
        for (number, item) in it.items.iter().enumerate() {
            let name = format!("{}[{number}]", it.name);
            let id = item.id.as_deref().unwrap_or_default();
            found.extend(of(name, id, item.status));
        }
    }
    found
}

/// Reads a cursor: the number of a job among the sources, and the last line of it that was given.
pub(in crate::api) fn position(cursor: Option<&str>) -> Result<(usize, Option<String>), ApiError> {
    let Some(cursor) = cursor else {
        return Ok((0, None));
    };
    let (at, id) = cursor.split_once('.').ok_or_else(wrong_cursor)?;
    let id = Some(id.to_owned()).filter(|id| !id.is_empty());
    if id
        .as_ref()
        .is_some_and(|id| id.parse::<Position>().is_err())
    {
        return Err(wrong_cursor().into());
    }
    let at = at.parse::<u32>().map_err(|_| wrong_cursor())?;
    Ok((at as usize, id))
}

async fn logs(call: Call, params: LogsParams) -> Result<Reply<FlowLogPage>, ApiError> {
    let (from, mut after) = position(params.cursor.as_deref())?;
    let (call, flows) = call
        .flows(params.context, (Object::Flow, Operation::Read))
        .await?;
    let view = flows.client().status(FlowId(params.id)).await?;
    if let Some(job) = &params.job
        && view.job(job).is_none()
    {
        let message = format!("the flow {} has no job {job}", params.id);
        return Err(ApiError::new(Code::NotFound, message));
    }
    let sources = sources(&view, params.job.as_deref(), |id| flows.client().job_id(id));
    let (mut lines, mut next) = (Vec::new(), None);
    for (at, source) in sources.iter().enumerate().skip(from) {
        if lines.len() >= MOST_LINES || at - from >= MOST_JOBS {
            next = Some(format!("{at}."));
            break;
        }
        let room = MOST_LINES - lines.len();
        let last = read(&call, source, after.take(), room, &mut lines).await?;
        if let Some(last) = last {
            next = Some(format!("{at}.{last}"));
            break;
        }
    }
    Ok(Reply::new(&FlowLogPage { lines, next }))
}

/// Adds lines of a job. Returns the last one if more may follow.
async fn read(
    call: &Call,
    source: &Source,
    after: Option<String>,
    room: usize,
    lines: &mut Vec<FlowLogLine>,
) -> Result<Option<String>, ApiError> {
    let found = call.client.broker().log_lines(&source.id, after.as_deref());
    let found = found.await?;
    if found.is_empty() && (after.is_some() || !source.is_ended) {
        return Ok(None);
    }
    let record = call.client.status(&source.id).await?;
    let secrets = record.env_vars.secrets();
    let masked = |bytes: &[u8]| String::from_utf8_lossy(&secrets.mask_bytes(bytes)).into_owned();
    if found.is_empty() {
        // Its worker forwards no lines.
        for (stream, bytes) in [("stdout", &record.stdout), ("stderr", &record.stderr)] {
            let text = masked(bytes);
            let left = MOST_LINES.saturating_sub(lines.len());
            lines.extend(text.lines().take(left).map(|line| FlowLogLine {
                job: source.name.clone(),
                id: None,
                at: None,
                stream: stream.to_owned(),
                line: line.to_owned(),
            }));
        }
        return Ok(None);
    }
    let is_cut = found.len() > room;
    let mut last = None;
    for line in found.into_iter().take(room) {
        last = Some(line.id.clone());
        lines.push(FlowLogLine {
            job: source.name.clone(),
            id: Some(line.id),
            at: Some(time::iso(line.at_ms)),
            line: masked(&line.line),
            stream: line.stream,
        });
    }
    Ok(last.filter(|_| is_cut))
}
