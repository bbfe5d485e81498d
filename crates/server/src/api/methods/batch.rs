//! Methods of batches.

use meshwork::view::BatchView;
use meshwork_model::api_key::Scope;
use meshwork_model::batch::Callback;
use meshwork_model::spec::JobSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::new_job;
use crate::api::call::Call;
use crate::api::error::{ApiError, Code};
use crate::api::method::{HttpVerb, Method, Reply};
use meshwork_ops::Paging;
use meshwork_ops::params::{MAX_LIMIT, Span, parse};
use meshwork_ops::warnings::{self, Warned};

/// The methods.
pub(in crate::api) fn methods() -> Vec<Method> {
    use HttpVerb::{Get, Post};
    use Scope::{User, Viewer};
    vec![
        Method::new(
            ("batch.create", User),
            (Post, "/v1/batches"),
            "Open a batch, with callback jobs for its end",
            create,
        )
        .creates(),
        Method::new(
            ("batch.add", User),
            (Post, "/v1/batches/{id}/jobs"),
            "Enqueue jobs of a batch, at most 1000",
            add,
        )
        .creates(),
        Method::new(
            ("batch.seal", User),
            (Post, "/v1/batches/{id}/seal"),
            "Let a batch take no more jobs",
            seal,
        ),
        Method::new(
            ("batch.get", Viewer),
            (Get, "/v1/batches/{id}"),
            "Read a batch",
            get,
        ),
        Method::new(
            ("batch.list", Viewer),
            (Get, "/v1/batches"),
            "List batches: those that have not ended, then the others, the last ended first",
            list,
        ),
        Method::new(
            ("batch.cancel", User),
            (Post, "/v1/batches/{id}/cancel"),
            "Cancel all jobs of a batch",
            cancel,
        ),
    ]
}

/// A new batch.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "BatchCreateParams")]
struct CreateParams {
    /// Id of the batch; a UUID if none is given.
    id: Option<String>,
    /// Name for people.
    name: Option<String>,
    /// Time after which the batch is sealed if nobody has sealed it.
    open_for: Option<Span>,
    /// Job for the end of all jobs.
    on_done: Option<JobSpec>,
    /// Job for the end, if all have finished.
    on_success: Option<JobSpec>,
    /// Job for the end, if one has failed.
    on_failure: Option<JobSpec>,
}

/// The id of a batch.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "BatchParams")]
struct IdParams {
    /// Id of the batch.
    id: String,
}

async fn create(call: Call, params: CreateParams) -> Result<Reply<Warned<BatchView>>, ApiError> {
    let mut request = call.client.batch();
    if let Some(id) = &params.id {
        request = request.id(parse("id", id)?);
    }
    if let Some(name) = params.name {
        request = request.name(name);
    }
    if let Some(open_for) = params.open_for {
        request = request.open_for(open_for.0);
    }
    let mut routes = Vec::new();
    for (field, kind, job) in [
        ("on_done", Callback::Done, params.on_done),
        ("on_success", Callback::Success, params.on_success),
        ("on_failure", Callback::Failure, params.on_failure),
    ] {
        if let Some(job) = job {
            let job = new_job::request_in(&call, field, job)?;
            routes.push(job.destination().clone());
            request = request.on(kind, job);
        }
    }
    let is_named = params.id.is_some();
    if is_named {
        request = request.request_digest(&call.digest);
    }
    let status = request.open().await?.status().await?;
    if is_named && status.request_digest.as_ref() != Some(&call.digest) {
        let message = format!(
            "there is a batch {} already, made with other parameters",
            status.id
        );
        return Err(
            ApiError::new(Code::Conflict, message).hint("give another id, or the same parameters")
        );
    }
    Ok(Reply::new(&Warned {
        answer: BatchView::from(&status),
        warnings: warnings::of_stored(&call.client, &routes, call.is_of_agent).await,
    }))
}

/// Jobs of a batch.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "BatchAddParams")]
struct AddParams {
    /// Id of the batch.
    id: String,
    /// The jobs, at most 1000.
    jobs: Vec<JobSpec>,
}

/// Ids of jobs that were enqueued.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename = "BatchJobs")]
struct AddedJobs {
    /// The ids, in the order of the jobs.
    ids: Vec<String>,
}

async fn add(call: Call, params: AddParams) -> Result<Reply<Warned<AddedJobs>>, ApiError> {
    if params.jobs.is_empty() || params.jobs.len() > MAX_LIMIT {
        return Err(ApiError::invalid("jobs: give 1 to 1000"));
    }
    let id = parse("id", &params.id)?;
    let jobs = params.jobs.into_iter().enumerate();
    let jobs = jobs.map(|(at, job)| new_job::request_in(&call, &format!("jobs[{at}]"), job));
    let jobs = jobs.collect::<Result<Vec<_>, _>>()?;
    let routes: Vec<_> = jobs.iter().map(|job| job.destination().clone()).collect();
    let added = call.client.batch_of(id).add(jobs).await?;
    let ids = added.iter().map(ToString::to_string).collect();
    Ok(Reply::new(&Warned {
        answer: AddedJobs { ids },
        warnings: warnings::of_stored(&call.client, &routes, call.is_of_agent).await,
    }))
}

async fn seal(call: Call, params: IdParams) -> Result<Reply<BatchView>, ApiError> {
    let batch = call.client.batch_of(parse("id", &params.id)?);
    batch.seal().await?;
    Ok(Reply::new(&BatchView::from(&batch.status().await?)))
}

async fn get(call: Call, params: IdParams) -> Result<Reply<BatchView>, ApiError> {
    let status = call.client.batch_status(&parse("id", &params.id)?).await?;
    Ok(Reply::new(&BatchView::from(&status)))
}

/// Page of batches.
#[derive(Debug, Serialize, JsonSchema)]
struct BatchPage {
    /// The batches.
    batches: Vec<BatchView>,
    /// Cursor of the next page; null after the last one.
    next: Option<String>,
}

async fn list(call: Call, page: Paging) -> Result<Reply<BatchPage>, ApiError> {
    let (limit, from) = (page.limit()?, page.offset()?);
    let (batches, more) = call.client.broker().batches(from, limit).await?;
    let batches = batches.iter().map(BatchView::from).collect();
    let next = more.then(|| (from + limit).to_string());
    Ok(Reply::new(&BatchPage { batches, next }))
}

/// The batch and the reason.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "BatchCancelParams")]
struct CancelParams {
    /// Id of the batch.
    id: String,
    /// Reason, as its jobs show it. Default: `stopped`.
    reason: Option<String>,
}

async fn cancel(call: Call, params: CancelParams) -> Result<Reply<BatchView>, ApiError> {
    let batch = call.client.batch_of(parse("id", &params.id)?);
    let reason = params.reason.as_deref().unwrap_or("stopped");
    batch.cancel(reason).await?;
    Ok(Reply::new(&BatchView::from(&batch.status().await?)))
}
