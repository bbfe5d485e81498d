//! Many new jobs in one call.

use meshwork_model::api_key::Scope;
use meshwork_model::spec::JobSpec;
use meshwork_ops::{NewJobOutcome, enqueue_many};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::new_job::request_in;
use crate::api::call::Call;
use crate::api::error::ApiError;
use crate::api::method::{HttpVerb, Method, Reply};

/// Greatest number of jobs in one call.
const MOST_JOBS: usize = 1000;

/// The method.
pub(in crate::api) fn methods() -> Vec<Method> {
    let many = Method::new(
        ("job.create_many", Scope::User),
        (HttpVerb::Post, "/v1/jobs/many"),
        "Enqueue jobs outside of contexts, and read the outcome of each; a fault of one stores none",
        create_many,
    );
    vec![many]
}

/// Jobs to be enqueued.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "JobCreateManyParams")]
struct ManyParams {
    /// The jobs, 1 to 1000. Ids of their own let a repeated call store each once.
    jobs: Vec<JobSpec>,
}

/// Outcomes of new jobs.
#[derive(Debug, Serialize, JsonSchema)]
struct NewJobs {
    /// The outcome of each, in their order.
    jobs: Vec<NewJobOutcome>,
}

async fn create_many(call: Call, params: ManyParams) -> Result<Reply<NewJobs>, ApiError> {
    let count = params.jobs.len();
    if !(1..=MOST_JOBS).contains(&count) {
        let message = format!("jobs: give 1 to {MOST_JOBS}, not {count}");
        return Err(ApiError::invalid(message));
    }
    let mut jobs = Vec::with_capacity(count);
    for (at, spec) in params.jobs.into_iter().enumerate() {
        let field = format!("jobs[{at}]");
        let job = request_in(&call, &field, spec)?.build();
        jobs.push(job.map_err(|error| ApiError::invalid(format!("{field}: {error}")))?);
    }
    let jobs = enqueue_many(&call.client, &jobs).await?;
    Ok(Reply::new(&NewJobs { jobs }))
}
