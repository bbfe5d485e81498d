//! Methods of workers.

use std::time::Duration;

use meshwork::WorkerInfo;
use meshwork_model::api_key::Scope;
use meshwork_model::worker_request::WorkerRequest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::call::Call;
use crate::api::error::{ApiError, Code};
use crate::api::method::{HttpVerb, Method, Reply};
use meshwork_ops::Paging;
use meshwork_ops::params::Span;

/// Default of the wait until a worker has obeyed: the renewal of a usual lease takes less.
const WAIT: Duration = Duration::from_secs(30);
/// Longest wait.
const MAX_WAIT: Duration = Duration::from_secs(300);

/// The methods.
pub(in crate::api) fn methods() -> Vec<Method> {
    use HttpVerb::{Get, Post};
    use Scope::{Admin, Viewer};
    vec![
        Method::new(
            ("worker.list", Viewer),
            (Get, "/v1/workers"),
            "List the workers, as the last scan found them",
            list,
        ),
        Method::new(
            ("worker.quiet", Admin),
            (Post, "/v1/workers/{worker}/quiet"),
            "Let a worker claim no more jobs",
            quiet,
        )
        .waits(),
        Method::new(
            ("worker.stop", Admin),
            (Post, "/v1/workers/{worker}/stop"),
            "Shut a worker down, after its running jobs",
            stop,
        )
        .waits(),
    ]
}

/// Page of workers.
#[derive(Debug, Serialize, JsonSchema)]
struct WorkerList {
    /// The workers. A worker of several types has an entry for each.
    workers: Vec<WorkerInfo>,
    /// Cursor of the next page; null after the last one.
    next: Option<String>,
    /// Age of the scan that found them, in milliseconds.
    age_ms: u64,
}

/// A worker.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "WorkerParams")]
struct WorkerParams {
    /// The worker, as in `worker` of the list.
    worker: String,
    /// Time to wait until it has obeyed, at most 5 minutes. Default: 30 s.
    wait: Option<Span>,
}

/// A worker that has obeyed.
#[derive(Debug, Serialize, JsonSchema)]
struct Obeyed {
    /// The worker.
    worker: String,
    /// Its state: `quiet` or `stopping`.
    result: &'static str,
}

async fn list(call: Call, page: Paging) -> Result<Reply<WorkerList>, ApiError> {
    let found = call.found().await?;
    let (workers, next) = page.page(found.workers.iter().cloned())?;
    Ok(Reply::new(&WorkerList {
        workers,
        next,
        age_ms: found.age_ms(),
    }))
}

async fn quiet(call: Call, params: WorkerParams) -> Result<Reply<Obeyed>, ApiError> {
    obey(call, params, WorkerRequest::Quiet, "quiet").await
}

async fn stop(call: Call, params: WorkerParams) -> Result<Reply<Obeyed>, ApiError> {
    obey(call, params, WorkerRequest::Stop, "stopping").await
}

async fn obey(
    call: Call,
    params: WorkerParams,
    request: WorkerRequest,
    result: &'static str,
) -> Result<Reply<Obeyed>, ApiError> {
    let found = call.found().await?;
    let is_meant = |it: &&WorkerInfo| it.worker.as_deref() == Some(params.worker.as_str());
    if found.workers.iter().find(is_meant).is_none() {
        let message = format!("there is no worker {:?} of Meshwork", params.worker);
        return Err(ApiError::new(Code::NotFound, message).hint("worker.list lists the workers"));
    }
    let wait = params.wait.map_or(WAIT, |span| span.0.min(MAX_WAIT));
    let obeys = |wait| call.client.request_worker(&params.worker, request, wait);
    match call.wait(obeys(wait), MAX_WAIT).await {
        Some(obeyed) => obeyed?,
        // The request would stay: another one of no time withdraws it.
        None => obeys(Duration::ZERO).await?,
    }
    let worker = params.worker;
    Ok(Reply::new(&Obeyed { worker, result }))
}
