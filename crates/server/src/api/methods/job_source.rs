//! The method for the script and the input of a job.

use meshwork_model::api_key::Scope;
use meshwork_model::job::Job;
use meshwork_ops::job::{IdParams, READ};
use meshwork_ops::{OpError, Store};
use schemars::JsonSchema;
use serde::Serialize;

use crate::api::method::{HttpVerb, Method};

/// The method.
pub(in crate::api) fn methods() -> Vec<Method> {
    vec![Method::of(
        ("job.source", Scope::Viewer),
        (HttpVerb::Get, "/v1/jobs/{id}/source"),
        "Read the script and the input of a job, and the jobs that it waits for or that wait for it",
        source,
    )]
}

/// Script, input and links of a job. Secrets of its environment are masked.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename = "JobSource")]
struct Source {
    /// Id of the job.
    id: String,
    /// Text of the script.
    script: String,
    /// Input of the script.
    input: Option<String>,
    /// Jobs that have to end first.
    depends_on: Vec<String>,
    /// Jobs that wait for this one.
    dependents: Vec<String>,
    /// Batch of the job.
    batch: Option<String>,
    /// Number of the flow that the job is part of.
    flow: Option<u32>,
}

async fn source(store: Store, params: IdParams) -> Result<Source, OpError> {
    let (store, id) = params.open(store, READ).await?;
    let job: Job = store.client.status(&id).await?;
    let secrets = job.env_vars.secrets();
    let masked = |bytes: &[u8]| String::from_utf8_lossy(&secrets.mask_bytes(bytes)).into_owned();
    Ok(Source {
        script: masked(&job.script),
        input: job.input.as_deref().map(masked),
        id: job.id,
        depends_on: job.depends_on,
        dependents: job.dependents,
        batch: job.batch,
        flow: job.flow,
    })
}
