//! Methods of jobs.

use std::time::Duration;

use meshwork::view::WhyView;
use meshwork::{Error, JobRequest};
use meshwork_model::access::{Object, Operation};
use meshwork_model::api_key::Scope::{Admin, User, Viewer};
use meshwork_model::job::Job;
use meshwork_model::name::JobId;
use meshwork_model::route::Route;
use meshwork_model::spec::JobSpec;
use meshwork_ops::change::Action;
use meshwork_ops::job::{self, CancelParams, Changed, IdParams, JobAnswer, READ};
use meshwork_ops::warnings::{self, Warned};
use meshwork_ops::{OpError, Place, Wait, With, job_list};
use schemars::JsonSchema;
use serde::Serialize;

use super::new_job;
use super::spread;
use crate::api::call::Call;
use crate::api::error::{ApiError, Code};
use crate::api::method::HttpVerb::{Delete, Get, Post};
use crate::api::method::{Method, Reply};
use meshwork_ops::params::parse;

/// Longest wait of a call for the end of a job or a flow; longer ones are repeated by the caller.
pub(super) const MAX_WAIT: Duration = Duration::from_secs(300);

/// The methods.
pub(in crate::api) fn methods() -> Vec<Method> {
    let first = [
        Method::new(
            ("job.create", User),
            (Post, "/v1/jobs"),
            "Enqueue a job, and wait for its end if `wait` is given",
            create,
        )
        .also(&["job.submit", "job.enqueue"])
        .creates()
        .goes_on()
        .keyed()
        .waits(),
        Method::new(
            ("job.run", User),
            (Post, "/v1/jobs/run"),
            "Enqueue a job and wait for its end",
            run,
        )
        .keyed()
        .waits(),
        Method::of(
            ("job.get", Viewer),
            (Get, "/v1/jobs/{id}"),
            "Read a job",
            job::get,
        ),
        Method::of(
            ("job.ids", Viewer),
            (Get, "/v1/job_ids/{id}"),
            "Find the jobs whose ids begin with a text of at least four characters, at most 10",
            job::ids,
        ),
        Method::of(
            ("job.list", Viewer),
            (Get, "/v1/jobs"),
            "List jobs: with `state` in order, from the lists of the store; else a search of all records, in no order",
            job_list::list,
        ),
        Method::new(
            ("job.why", Viewer),
            (Get, "/v1/jobs/{id}/why"),
            "Read why a job waits, or why it failed",
            why,
        ),
        Method::new(
            ("job.result", Viewer),
            (Get, "/v1/jobs/{id}/result"),
            "Wait for the end of a job, and read it",
            result,
        )
        .waits(),
    ];
    first.into_iter().chain(changes()).collect()
}

/// Changes of jobs.
fn changes() -> [Method; 6] {
    [
        Method::new(
            ("job.cancel", User),
            (Post, "/v1/jobs/{id}/cancel"),
            "Cancel a job; a running one gets a request to stop",
            cancel,
        )
        .also(&["job.stop"])
        .goes_on(),
        Method::of(
            ("job.retry", User),
            (Post, "/v1/jobs/{id}/retry"),
            "Run a job again that has ended",
            |store, params| job::change(store, params, Action::Retry),
        ),
        Method::of(
            ("job.run_now", User),
            (Post, "/v1/jobs/{id}/run_now"),
            "Run a delayed job now",
            |store, params| job::change(store, params, Action::RunNow),
        ),
        Method::of(
            ("job.set", User),
            (Post, "/v1/jobs/{id}/set"),
            "Change the priority, the delay or the timeout of a job that waits",
            job::set,
        ),
        Method::of(
            ("job.delete", Admin),
            (Delete, "/v1/jobs/{id}"),
            "Delete a job that does not run",
            |store, params| job::change(store, params, Action::Delete),
        ),
        Method::of(
            ("job.cancel_many", User),
            (Post, "/v1/jobs/cancel"),
            "Cancel the open jobs of a page of `job.list`; running ones get a request to stop",
            job_list::cancel_many,
        ),
    ]
}

/// A job to be enqueued: its place, and the wait for its end.
type NewJob = With<Wait, With<Place, JobSpec>>;

/// A job that was enqueued.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename = "Job")]
struct Created {
    /// Id of the job; of the first one if a unique name is in use.
    id: String,
    /// The job, if its end was waited for and it has ended.
    job: Option<JobAnswer>,
}

async fn create(call: Call, params: NewJob) -> Result<Reply<Warned<Created>>, ApiError> {
    let wait = params.beside.wait;
    let (call, id, route) = enqueue(call, params).await?;
    let warnings = warnings::of_stored(&call.client, [&route], call.is_of_agent).await;
    let job = match wait {
        None => None,
        Some(wait) => ended(&call, &id, wait.0).await?,
    };
    if wait.is_some() && job.is_none() {
        call.accepted();
    }
    let job = job.map(|job| JobAnswer::ended(job, &call));
    let id = id.to_string();
    let answer = Created { id, job };
    Ok(Reply::new(&Warned { answer, warnings }))
}

async fn run(call: Call, params: NewJob) -> Result<Reply<JobAnswer>, ApiError> {
    let wait = params.beside.wait.map_or(MAX_WAIT, |span| span.0);
    let (call, id, _) = enqueue(call, params).await?;
    finished(&call, &id, wait).await
}

/// Enqueues a job. Returns the call in the job's context, with its id and route.
async fn enqueue(call: Call, params: NewJob) -> Result<(Call, JobId, Route), ApiError> {
    let With { beside: place, own } = params.own;
    if place.spread {
        if place.context.is_some() {
            return Err(ApiError::invalid("context and spread: give one of them"));
        }
        let queue = new_job::queue_of(&own);
        let request = request(&call, own)?;
        let route = request.destination().clone();
        let (call, id) = spread::enqueue(call, &queue, request).await?;
        return Ok((call, id, route));
    }
    let needs = (Object::Job, Operation::Create);
    let call = call.enter(place.context, needs).await?;
    let (id, route) = enqueue_in(&call, own).await?;
    Ok((call, id, route))
}

/// Returns the job, in the trace of the call.
fn request(call: &Call, spec: JobSpec) -> Result<JobRequest, ApiError> {
    let request = new_job::request(call, spec)?;
    Ok(match &call.trace {
        Some(trace) => request.trace(trace.clone()),
        None => request,
    })
}

/// The same id or idempotency key with the same parameters is the same job. Also returns its route.
async fn enqueue_in(call: &Call, spec: JobSpec) -> Result<(JobId, Route), ApiError> {
    let named = spec.id.as_deref().map(|id| call.job_id(id));
    let named = named.transpose()?;
    let is_named = named.is_some();
    let mut request = request(call, spec)?;
    let route = request.destination().clone();
    let id = call.idempotent_id().filter(|_| !is_named);
    if id.is_some() && call.entered.is_some() {
        let message = "Idempotency-Key: in a context the job's number is its name: give it as id";
        return Err(ApiError::invalid(message));
    }
    if let Some(id) = &id {
        request = request.id(parse("Idempotency-Key", id)?);
    }
    if is_named || id.is_some() {
        request = request.request_digest(&call.digest);
    }
    let by_key = id.is_some();
    match job::enqueue(call, request, named).await {
        Err(OpError::Jobs(Error::JobExists { id })) => {
            let job = call.client.status(&id).await?;
            match job.request_digest {
                Some(digest) if digest == call.digest => Ok((id, route)),
                Some(_) => Err(other_parameters(&id, by_key)),
                None => Err(Error::JobExists { id }.into()),
            }
        }
        answer => Ok((answer?, route)),
    }
}

/// Error of a name of a job that was used with other parameters.
fn other_parameters(id: &JobId, by_key: bool) -> ApiError {
    let named = match by_key {
        true => format!("this Idempotency-Key made job {id}"),
        false => format!("there is a job {id} already, made"),
    };
    let message = format!("{named} with other parameters");
    ApiError::new(Code::Conflict, message).hint("give another name, or the same parameters")
}

/// Waits for the end of a job; `None` if the time is over.
async fn ended(call: &Call, id: &JobId, wait: Duration) -> Result<Option<Job>, ApiError> {
    let wait = wait.min(MAX_WAIT);
    match call.wait(call.until_ended(id, wait), MAX_WAIT).await {
        Some(Ok(job)) => Ok(Some(job)),
        None | Some(Err(Error::JobWaitTimeout { .. })) => Ok(None),
        Some(Err(error)) => Err(error.into()),
    }
}

async fn finished(call: &Call, id: &JobId, wait: Duration) -> Result<Reply<JobAnswer>, ApiError> {
    match ended(call, id, wait).await? {
        Some(job) => Ok(Reply::new(&JobAnswer::ended(job, call))),
        None => {
            let message = format!("job {id} has not ended yet");
            let hint = "job.result waits for it again";
            Err(ApiError::new(Code::Timeout, message).hint(hint))
        }
    }
}

async fn why(call: Call, params: IdParams) -> Result<Reply<WhyView<'static>>, ApiError> {
    let (store, id) = params.open(call.store, READ).await?;
    let job = store.client.status(&id).await?;
    let states = store.client.states(std::slice::from_ref(&job)).await?;
    let waits = store.client.why(&job).await?;
    let keys = store.client.broker().keys();
    let name = |queue: &str| keys.queue_name(queue).to_owned();
    let state = states.into_iter().next().flatten();
    let why = WhyView::new(&job, state, &waits, name);
    let why = why.skipped(store.client.why_skipped(&job).await?);
    Ok(Reply::borrowed(&why))
}

async fn result(
    mut call: Call,
    params: With<Wait, IdParams>,
) -> Result<Reply<JobAnswer>, ApiError> {
    let wait = params.beside.wait.map_or(Duration::ZERO, |span| span.0);
    let (store, id) = params.own.open(call.store, READ).await?;
    call.store = store;
    finished(&call, &id, wait).await
}

async fn cancel(call: Call, params: CancelParams) -> Result<Reply<Changed>, ApiError> {
    let changed = job::cancel(call.store.clone(), params).await?;
    if changed.is_under_way() {
        call.accepted();
    }
    Ok(Reply::new(&changed))
}
