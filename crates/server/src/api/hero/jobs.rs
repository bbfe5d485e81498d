//! Jobs by the names of Hero's APIs.

use std::time::Instant;

use meshwork::{Cancelled, Deleted, Error, JobFilter, RunNow};
use meshwork_model::job::Job;
use meshwork_model::name::JobId;
use meshwork_model::state::Status;
use serde::{Deserialize, Serialize};

use super::forms::{HeroJob, StoredJob};
use crate::api::call::Call;
use crate::api::error::{ApiError, Code};

/// Greatest number of ids of `list_jobs`, and of jobs that one call of `clear_all_jobs` deletes.
const MOST_IDS: usize = 10_000;
/// Greatest number of jobs of `jobs.list`.
const MOST_JOBS: usize = 1000;
/// Pages of records that one call reads at most.
const MOST_PAGES: usize = 1000;

/// The id of a job.
#[derive(Debug, Deserialize)]
pub(super) struct IdParams {
    #[serde(alias = "id")]
    job_id: String,
}

impl IdParams {
    fn id(&self) -> JobId {
        JobId::foreign(self.job_id.clone())
    }
}

/// Nothing, whatever is given.
#[derive(Debug, Deserialize)]
pub(super) struct NoParams {}

/// The output of a script.
#[derive(Debug, Serialize)]
pub(super) struct PlayResult {
    output: String,
}

/// Outcome of a start.
#[derive(Debug, Serialize)]
pub(super) struct Success {
    success: bool,
}

/// Lines of a log.
#[derive(Debug, Serialize)]
pub(super) struct Logs {
    logs: Option<String>,
}

/// Outcome of a job of the second generation.
#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Outcome {
    Success(String),
    Error(String),
}

/// Status of a job of the second generation.
#[derive(Debug, Serialize)]
pub(super) struct JobStatus {
    job_id: String,
    status: String,
    created_at: String,
    updated_at: String,
}

pub(super) async fn create(call: Call, job: HeroJob) -> Result<String, ApiError> {
    // There is no other way to start a job of the third generation.
    let held = job.runner_id.is_none();
    Ok(call.client.enqueue(job.request(held)?).await?.to_string())
}

pub(super) async fn start(call: Call, params: IdParams) -> Result<Success, ApiError> {
    started(&call, &params.id()).await?;
    Ok(Success { success: true })
}

pub(super) async fn start_silently(call: Call, params: IdParams) -> Result<(), ApiError> {
    started(&call, &params.id()).await
}

async fn started(call: &Call, id: &JobId) -> Result<(), ApiError> {
    match call.client.run_now(id).await? {
        RunNow::Queued | RunNow::Ready | RunNow::Waiting | RunNow::Running => Ok(()),
        RunNow::Ended => {
            let message = format!("job {id} has ended: retry it");
            Err(ApiError::new(Code::Conflict, message))
        }
        RunNow::Missing => Err(Error::JobNotFound { id: id.clone() }.into()),
    }
}

/// Enqueues a job and waits for its end.
async fn ended(call: &Call, job: HeroJob) -> Result<Job, ApiError> {
    let patience = job.patience();
    let id = call.client.enqueue(job.request(false)?).await?;
    let began = Instant::now();
    let ended = call.wait(call.client.wait(&id, patience), patience).await;
    let over = Error::JobWaitTimeout {
        id: id.clone(),
        waited: began.elapsed(),
    };
    Ok(ended.unwrap_or(Err(over))?)
}

/// Returns the output of a job that has ended.
fn outcome(job: &Job) -> Outcome {
    let text = |bytes: &Option<Vec<u8>>| {
        let bytes = bytes.as_deref().unwrap_or_default();
        String::from_utf8_lossy(bytes).into_owned()
    };
    match job.status() {
        Some(Status::Finished) => Outcome::Success(text(&job.output)),
        _ => {
            let error = job.error.as_deref().unwrap_or("the job failed");
            Outcome::Error(job.env_vars.secrets().mask(error).to_string())
        }
    }
}

fn output(job: &Job) -> Result<String, ApiError> {
    match outcome(job) {
        Outcome::Success(output) => Ok(output),
        Outcome::Error(error) => Err(ApiError::new(Code::ExecutionError, error)),
    }
}

pub(super) async fn run(call: Call, job: HeroJob) -> Result<String, ApiError> {
    output(&ended(&call, job).await?)
}

pub(super) async fn play(call: Call, job: HeroJob) -> Result<PlayResult, ApiError> {
    let output = Box::pin(run(call, job.or_osis())).await?;
    Ok(PlayResult { output })
}

pub(super) async fn run_outcome(call: Call, job: HeroJob) -> Result<Outcome, ApiError> {
    Ok(outcome(&ended(&call, job).await?))
}

async fn read(call: &Call, params: &IdParams) -> Result<Job, ApiError> {
    Ok(call.client.status(&params.id()).await?)
}

async fn read_ended(call: &Call, params: &IdParams) -> Result<Job, ApiError> {
    let job = read(call, params).await?;
    match job.status().is_some_and(Status::is_final) {
        true => Ok(job),
        false => {
            let message = format!("job {} has not ended", job.id);
            Err(ApiError::new(Code::Conflict, message))
        }
    }
}

pub(super) async fn status(call: Call, params: IdParams) -> Result<String, ApiError> {
    let job = call.client.summary(&params.id()).await?;
    Ok(meshwork::view::status_of(&job).to_owned())
}

pub(super) async fn status_object(call: Call, params: IdParams) -> Result<JobStatus, ApiError> {
    let job = call.client.summary(&params.id()).await?;
    Ok(JobStatus {
        status: meshwork::view::status_of(&job).to_owned(),
        job_id: job.id,
        created_at: job.created_at,
        updated_at: job.updated_at,
    })
}

pub(super) async fn output_of(call: Call, params: IdParams) -> Result<String, ApiError> {
    output(&read_ended(&call, &params).await?)
}

pub(super) async fn result_of(call: Call, params: IdParams) -> Result<Outcome, ApiError> {
    Ok(outcome(&read_ended(&call, &params).await?))
}

pub(super) async fn get(call: Call, params: IdParams) -> Result<StoredJob, ApiError> {
    Ok(StoredJob::from(&read(&call, &params).await?))
}

pub(super) async fn logs(call: Call, params: IdParams) -> Result<Logs, ApiError> {
    let job = read(&call, &params).await?;
    let secrets = job.env_vars.secrets();
    let lines = call.client.broker().log_lines(&params.id(), None).await?;
    let mut text = String::new();
    for line in &lines {
        text += &String::from_utf8_lossy(&secrets.mask_bytes(&line.line));
        text.push('\n');
    }
    if lines.is_empty() {
        for bytes in [&job.stdout, &job.stderr] {
            text += &String::from_utf8_lossy(&secrets.mask_bytes(bytes));
        }
    }
    let logs = (!text.is_empty()).then_some(text);
    Ok(Logs { logs })
}

pub(super) async fn stop(call: Call, params: IdParams) -> Result<(), ApiError> {
    let id = params.id();
    match call.client.cancel(&id).await? {
        Cancelled::Missing => Err(Error::JobNotFound { id }.into()),
        Cancelled::Cancelled | Cancelled::Stopping | Cancelled::Ended => Ok(()),
    }
}

pub(super) async fn delete(call: Call, params: IdParams) -> Result<(), ApiError> {
    let id = params.id();
    let refused = |why: &str| Err(ApiError::new(Code::Conflict, format!("job {id} {why}")));
    match call.client.delete(&id).await? {
        Deleted::Deleted => Ok(()),
        Deleted::Missing => Err(Error::JobNotFound { id }.into()),
        Deleted::Running => refused("runs: stop it first"),
        Deleted::OfFlow => refused("belongs to a flow: delete the flow"),
    }
}

/// Reads all jobs, page by page, until there are `most`.
async fn all(call: &Call, most: usize) -> Result<Vec<Job>, ApiError> {
    let (filter, mut from, mut jobs) = (JobFilter::default(), 0, Vec::new());
    for _ in 0..MOST_PAGES {
        let page = call.client.find(&filter, from).await?;
        jobs.extend(page.jobs);
        from = page.next;
        if from == 0 || jobs.len() >= most {
            break;
        }
    }
    jobs.truncate(most);
    Ok(jobs)
}

pub(super) async fn list_ids(call: Call, _: NoParams) -> Result<Vec<String>, ApiError> {
    let jobs = all(&call, MOST_IDS).await?;
    Ok(jobs.into_iter().map(|job| job.id).collect())
}

pub(super) async fn list(call: Call, _: NoParams) -> Result<Vec<StoredJob>, ApiError> {
    let mut found = Vec::new();
    for job in all(&call, MOST_JOBS).await? {
        // Summaries have no scripts. A job may be deleted meanwhile.
        match call.client.status(&JobId::foreign(job.id)).await {
            Ok(job) => found.push(StoredJob::from(&job)),
            Err(Error::JobNotFound { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(found)
}

pub(super) async fn clear(call: Call, _: NoParams) -> Result<(), ApiError> {
    for job in all(&call, MOST_IDS).await? {
        // Running jobs and those of flows stay.
        call.client.delete(&JobId::foreign(job.id)).await?;
    }
    Ok(())
}
