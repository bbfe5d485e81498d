//! Runners of Hero's supervisor: the workers of jobs outside contexts.

use meshwork_model::worker_request::WorkerRequest;
use serde::{Deserialize, Serialize};
use std::time::Duration;

use super::jobs::NoParams;
use crate::api::call::Call;
use crate::api::error::{ApiError, Code};

/// Longest wait until a worker has obeyed.
const WAIT: Duration = Duration::from_secs(10);

/// A runner.
#[derive(Debug, Deserialize)]
pub(super) struct RunnerParams {
    #[serde(alias = "actor_id", alias = "runner_id", alias = "id")]
    name: String,
}

/// State of a runner.
#[derive(Debug, Serialize)]
pub(super) enum Status {
    Running,
    Stopped,
}

async fn names(call: &Call) -> Result<Vec<String>, ApiError> {
    let found = call.found().await?;
    let names = found.workers.iter().filter_map(|it| it.worker.clone());
    Ok(names.collect())
}

pub(super) async fn list(call: Call, _: NoParams) -> Result<Vec<String>, ApiError> {
    names(&call).await
}

pub(super) async fn status(call: Call, params: RunnerParams) -> Result<Status, ApiError> {
    Ok(match names(&call).await?.contains(&params.name) {
        true => Status::Running,
        false => Status::Stopped,
    })
}

pub(super) async fn stop(call: Call, params: RunnerParams) -> Result<(), ApiError> {
    if !names(&call).await?.contains(&params.name) {
        let message = format!("there is no runner {:?}", params.name);
        return Err(ApiError::new(Code::NotFound, message));
    }
    let stopped = call
        .client
        .request_worker(&params.name, WorkerRequest::Stop, WAIT);
    Ok(stopped.await?)
}
