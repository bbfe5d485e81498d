//! Methods of jobs.

use std::time::Duration;

use meshwork::model::job::Job;
use meshwork::model::name::JobId;
use meshwork::view::{JobSummary, JobView};
use meshwork::{Cancelled, Deleted, Error, JobFilter, Retried, RunNow};
use meshwork_model::api_key::Scope;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::new_job::NewJobParams;
use crate::api::call::Call;
use crate::api::error::{ApiError, Code};
use crate::api::method::{HttpVerb, Method, Reply};
use crate::api::params::{self, Span, moment, parse, parse_some};

/// Longest wait of a call for the end of a job; longer ones are repeated by the caller.
const MAX_WAIT: Duration = Duration::from_secs(300);
/// Pages of records that one call of `job.list` reads at most.
const MAX_PAGES: usize = 8;

/// The methods.
pub(in crate::api) fn methods() -> Vec<Method> {
    use HttpVerb::{Delete, Get, Post};
    use Scope::{Admin, User, Viewer};
    vec![
        Method::new(
            ("job.create", User),
            (Post, "/v1/jobs"),
            "Enqueue a job, and wait for its end if `wait` is given",
            create,
        )
        .also(&["job.submit", "job.enqueue"])
        .creates()
        .waits(),
        Method::new(
            ("job.run", User),
            (Post, "/v1/jobs/run"),
            "Enqueue a job and wait for its end",
            run,
        )
        .waits(),
        Method::new(
            ("job.get", Viewer),
            (Get, "/v1/jobs/{id}"),
            "Read a job",
            get,
        ),
        Method::new(
            ("job.list", Viewer),
            (Get, "/v1/jobs"),
            "Search jobs; reads records page by page, in no order",
            list,
        ),
        Method::new(
            ("job.result", Viewer),
            (Get, "/v1/jobs/{id}/result"),
            "Wait for the end of a job, and read it",
            result,
        )
        .waits(),
        Method::new(
            ("job.cancel", User),
            (Post, "/v1/jobs/{id}/cancel"),
            "Cancel a job; a running one gets a request to stop",
            cancel,
        )
        .also(&["job.stop"]),
        Method::new(
            ("job.retry", User),
            (Post, "/v1/jobs/{id}/retry"),
            "Run a job again that has ended",
            retry,
        ),
        Method::new(
            ("job.run_now", User),
            (Post, "/v1/jobs/{id}/run_now"),
            "Run a delayed job now",
            run_now,
        ),
        Method::new(
            ("job.delete", Admin),
            (Delete, "/v1/jobs/{id}"),
            "Delete a job that does not run",
            delete,
        ),
    ]
}

/// The id of a job.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "JobParams")]
struct IdParams {
    /// Id of the job.
    id: String,
}

impl IdParams {
    fn id(&self) -> JobId {
        // Ids of foreign clients are any text.
        JobId::foreign(self.id.clone())
    }
}

/// A job that was enqueued.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename = "CreatedJob")]
struct Created {
    /// Id of the job; of the first one if a unique name is in use.
    id: String,
    /// The job, if its end was waited for and it has ended.
    #[schemars(with = "Option<JobView<'static>>")]
    job: Option<Box<serde_json::value::RawValue>>,
}

async fn create(call: Call, params: NewJobParams) -> Result<Reply<Created>, ApiError> {
    let wait = params.wait;
    let id = enqueue(&call, params).await?;
    let job = match wait {
        None => None,
        Some(wait) => ended(&call, &id, wait.0).await?,
    };
    if wait.is_some() && job.is_none() {
        call.accepted();
    }
    let job = match &job {
        None => None,
        Some(job) => Some(
            serde_json::value::to_raw_value(&JobView::from(job))
                .map_err(|error| ApiError::new(Code::Internal, error.to_string()))?,
        ),
    };
    let id = id.to_string();
    Ok(Reply::new(&Created { id, job }))
}

async fn run(call: Call, params: NewJobParams) -> Result<Reply<JobView<'static>>, ApiError> {
    let wait = params.wait.map_or(MAX_WAIT, |span| span.0);
    let id = enqueue(&call, params).await?;
    finished(&call, &id, wait).await
}

/// Enqueues a job. The same id or idempotency key with the same parameters is the same job.
async fn enqueue(call: &Call, params: NewJobParams) -> Result<JobId, ApiError> {
    let is_named = params.id().is_some();
    let mut request = params.request()?;
    let id = call.idempotent_id().filter(|_| !is_named);
    if let Some(id) = &id {
        request = request.id(parse("Idempotency-Key", id)?);
    }
    if let Some(trace) = &call.trace {
        request = request.trace(trace.clone());
    }
    if is_named || id.is_some() {
        request = request.request_digest(&call.digest);
    }
    match call.client.enqueue(request).await {
        Err(Error::JobExists { id }) => {
            let job = call.client.status(&id).await?;
            match job.request_digest.as_ref() == Some(&call.digest) {
                true => Ok(id),
                false => Err(Error::JobExists { id }.into()),
            }
        }
        answer => Ok(answer?),
    }
}

/// Waits for the end of a job; `None` if the time is over.
async fn ended(call: &Call, id: &JobId, wait: Duration) -> Result<Option<Job>, ApiError> {
    match call.client.wait(id, wait.min(MAX_WAIT)).await {
        Ok(job) => Ok(Some(job)),
        Err(Error::JobWaitTimeout { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

async fn finished(
    call: &Call,
    id: &JobId,
    wait: Duration,
) -> Result<Reply<JobView<'static>>, ApiError> {
    match ended(call, id, wait).await? {
        Some(job) => Ok(Reply::borrowed(&JobView::from(&job))),
        None => {
            let message = format!("job {id} has not ended yet");
            let hint = "job.result waits for it again";
            Err(ApiError::new(Code::Timeout, message).hint(hint))
        }
    }
}

async fn get(call: Call, params: IdParams) -> Result<Reply<JobView<'static>>, ApiError> {
    let job = call.client.status(&params.id()).await?;
    Ok(Reply::borrowed(&JobView::from(&job)))
}

/// The wait for a job.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "JobResultParams")]
struct ResultParams {
    /// Id of the job.
    id: String,
    /// Time to wait for its end, at most 5 minutes. Default: 0.
    wait: Option<Span>,
}

async fn result(call: Call, params: ResultParams) -> Result<Reply<JobView<'static>>, ApiError> {
    let wait = params.wait.map_or(Duration::ZERO, |span| span.0);
    finished(&call, &JobId::foreign(params.id), wait).await
}

/// A search.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "JobListParams")]
struct ListParams {
    /// Only jobs of this type.
    #[serde(rename = "type")]
    script_type: Option<String>,
    /// Only jobs of this group.
    group: Option<String>,
    /// Only jobs of this queue.
    queue: Option<String>,
    /// Only jobs in this state: `queued`, `delayed`, `waiting`, `running`, `finished`, `failed`, `cancelled` or `stale`.
    status: Option<String>,
    /// Only jobs of this concurrency key.
    key: Option<String>,
    /// Only jobs with this label.
    tag: Option<String>,
    /// Only jobs of this batch.
    batch: Option<String>,
    /// Only jobs that this one enqueued.
    parent: Option<String>,
    /// Only jobs that were created at this time or later (RFC 3339).
    since: Option<String>,
    /// Only jobs that were created before this time (RFC 3339).
    until: Option<String>,
    /// Greatest number of jobs, 1 to 1000. Default: 100. A page may have fewer, although more follow.
    limit: Option<usize>,
    /// `next` of the page before.
    cursor: Option<String>,
}

/// Page of jobs.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename = "JobPage")]
struct JobPage<'a> {
    /// The jobs, in no order.
    jobs: Vec<JobSummary<'a>>,
    /// Cursor of the next page; null after the last one.
    next: Option<String>,
}

impl ListParams {
    fn filter(&self, call: &Call) -> Result<JobFilter, ApiError> {
        let keys = call.client.broker().keys();
        let queue = self.queue.as_deref();
        let queue = queue.map(|name| keys.parse_work_queue(name)).transpose();
        let at = |name: &str, text: Option<&str>| text.map(|it| moment(name, it)).transpose();
        Ok(JobFilter {
            script_type: parse_some("type", self.script_type.as_deref())?,
            group: parse_some("group", self.group.as_deref())?,
            queue: queue.map_err(|error| ApiError::invalid(error.to_string()))?,
            status: parse_some("status", self.status.as_deref())?,
            key: self.key.clone(),
            tags: parse_some("tag", self.tag.as_deref())?
                .into_iter()
                .collect(),
            batch: parse_some("batch", self.batch.as_deref())?,
            parent: self.parent.clone().map(JobId::foreign),
            since_ms: at("since", self.since.as_deref())?,
            until_ms: at("until", self.until.as_deref())?,
            ..JobFilter::default()
        })
    }
}

/// Position in a search: a page of records, and the jobs of it that were given already.
fn position(cursor: Option<&str>) -> Result<(u64, usize), ApiError> {
    let Some(cursor) = cursor else {
        return Ok((0, 0));
    };
    let parts = cursor.split_once('.');
    parts
        .and_then(|(page, skip)| Some((page.parse().ok()?, skip.parse().ok()?)))
        .ok_or_else(|| ApiError::invalid("cursor: give `next` of the page before"))
}

async fn list(call: Call, params: ListParams) -> Result<Reply<JobPage<'static>>, ApiError> {
    let (limit, filter) = (params::limit(params.limit)?, params.filter(&call)?);
    let (mut from, mut skip) = position(params.cursor.as_deref())?;
    let (mut jobs, mut next) = (Vec::new(), None);
    for _ in 0..MAX_PAGES {
        let page = call.client.find(&filter, from).await?;
        let rest: Vec<_> = page.jobs.into_iter().skip(skip).collect();
        let room = limit - jobs.len();
        let is_cut = rest.len() > room;
        let given = room.min(rest.len());
        jobs.extend(rest.into_iter().take(room));
        (from, skip) = match is_cut {
            true => (from, skip + given),
            false => (page.next, 0),
        };
        next = (is_cut || from != 0).then(|| format!("{from}.{skip}"));
        if next.is_none() || jobs.len() == limit {
            break;
        }
    }
    let jobs = jobs.iter().map(JobSummary::from).collect();
    Ok(Reply::borrowed(&JobPage { jobs, next }))
}

/// The job and how to cancel it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "JobCancelParams")]
struct CancelParams {
    /// Id of the job.
    id: String,
    /// True to end the record of a running job at once, although its worker may go on.
    #[serde(default)]
    force: bool,
}

/// Result of a change.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Changed {
    /// Id of the object.
    pub(super) id: String,
    /// State after the call: `cancelled`, `stopping`, `ended`, `queued`, `deleted` and others.
    pub(super) result: &'static str,
}

pub(super) fn changed(id: &JobId, result: &'static str) -> Result<Reply<Changed>, ApiError> {
    let id = id.to_string();
    Ok(Reply::new(&Changed { id, result }))
}

pub(super) fn conflict(id: &JobId, why: &str) -> ApiError {
    ApiError::new(Code::Conflict, format!("job {id} {why}"))
}

fn missing(id: &JobId) -> ApiError {
    Error::JobNotFound { id: id.clone() }.into()
}

async fn cancel(call: Call, params: CancelParams) -> Result<Reply<Changed>, ApiError> {
    let id = JobId::foreign(params.id);
    let cancelled = match params.force {
        true => call.client.force_cancel(&id).await?,
        false => call.client.cancel(&id).await?,
    };
    match cancelled {
        Cancelled::Cancelled => changed(&id, "cancelled"),
        Cancelled::Stopping => {
            call.accepted();
            changed(&id, "stopping")
        }
        Cancelled::Ended => changed(&id, "ended"),
        Cancelled::Missing => Err(missing(&id)),
    }
}

async fn retry(call: Call, params: IdParams) -> Result<Reply<Changed>, ApiError> {
    let id = params.id();
    let retried = call.client.retry(&id).await?;
    self::retried(&id, retried)
}

pub(super) fn retried(id: &JobId, retried: Retried) -> Result<Reply<Changed>, ApiError> {
    match retried {
        Retried::Queued => changed(id, "queued"),
        Retried::Unfinished => Err(conflict(id, "has not ended: cancel it first")),
        Retried::OfFlow => Err(conflict(id, "belongs to a flow: retry the flow")),
        Retried::Missing => Err(conflict(id, "does not name its queue: create it again")),
    }
}

async fn run_now(call: Call, params: IdParams) -> Result<Reply<Changed>, ApiError> {
    let id = params.id();
    match call.client.run_now(&id).await? {
        RunNow::Queued => changed(&id, "queued"),
        RunNow::Ready => changed(&id, "ready"),
        RunNow::Waiting => Err(conflict(&id, "waits for other jobs")),
        RunNow::Running => Err(conflict(&id, "runs already")),
        RunNow::Ended => Err(conflict(&id, "has ended: retry it")),
        RunNow::Missing => Err(missing(&id)),
    }
}

async fn delete(call: Call, params: IdParams) -> Result<Reply<Changed>, ApiError> {
    let id = params.id();
    let deleted = call.client.delete(&id).await?;
    self::deleted(&id, deleted)
}

pub(super) fn deleted(id: &JobId, deleted: Deleted) -> Result<Reply<Changed>, ApiError> {
    match deleted {
        Deleted::Deleted => changed(id, "deleted"),
        Deleted::Running => Err(conflict(id, "runs: cancel it first")),
        Deleted::OfFlow => Err(conflict(id, "belongs to a flow: delete the flow")),
        Deleted::Missing => Err(missing(id)),
    }
}
