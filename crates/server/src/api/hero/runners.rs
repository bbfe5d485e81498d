//! Runners of Hero's supervisor: the workers of jobs outside contexts.

use meshwork_model::worker_request::WorkerRequest;
use serde::Deserialize;
use std::collections::BTreeSet;
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

/// Returns the names of the workers. One of several types has an entry for each.
async fn names(call: &Call) -> Result<BTreeSet<String>, ApiError> {
    let found = call.found().await?;
    let names = found.workers.iter().filter_map(|it| it.worker.clone());
    Ok(names.collect())
}

/// Refuses a runner that does not exist.
async fn check(call: &Call, name: &str) -> Result<(), ApiError> {
    match names(call).await?.contains(name) {
        true => Ok(()),
        false => {
            let message = format!("there is no runner {name:?}");
            Err(ApiError::new(Code::NotFound, message).hint("list_runners lists them"))
        }
    }
}

pub(super) async fn list(call: Call, _: NoParams) -> Result<BTreeSet<String>, ApiError> {
    names(&call).await
}

/// A runner that has stopped is none.
pub(super) async fn status(call: Call, params: RunnerParams) -> Result<&'static str, ApiError> {
    check(&call, &params.name).await?;
    Ok("Running")
}

pub(super) async fn stop(call: Call, params: RunnerParams) -> Result<(), ApiError> {
    check(&call, &params.name).await?;
    let stopped = call
        .client
        .request_worker(&params.name, WorkerRequest::Stop, WAIT);
    Ok(stopped.await?)
}
