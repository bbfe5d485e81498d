//! Gates of a context: jobs wait for them by name.

use meshwork_model::access::{Object, Operation};
use meshwork_model::api_key::Scope;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::call::Call;
use crate::api::error::ApiError;
use crate::api::method::{HttpVerb, Method, Reply};

/// The method.
pub(in crate::api) fn methods() -> Vec<Method> {
    let approve = Method::new(
        ("job.approve", Scope::User),
        (HttpVerb::Post, "/v1/contexts/{context}/gates/{gate}/open"),
        "Open a gate of a context permanently: jobs that wait for the gate may run",
        approve,
    );
    vec![approve.in_contexts()]
}

/// A gate.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "JobApproveParams")]
struct ApproveParams {
    /// Number of the context.
    context: u32,
    /// Name of the gate: a word in the prerequisites of a job that is not a key.
    gate: String,
}

/// A gate that is open.
#[derive(Debug, Serialize, JsonSchema)]
struct OpenedGate {
    /// Its name.
    gate: String,
    /// `opened`, or `open` if it was open before.
    result: &'static str,
}

async fn approve(call: Call, params: ApproveParams) -> Result<Reply<OpenedGate>, ApiError> {
    let needs = (Object::Flow, Operation::Update);
    let call = call.enter(Some(params.context), needs).await?;
    call.noted("open gate", &params.gate).await?;
    let opened = call.client.open_gate(&params.gate).await?;
    Ok(Reply::new(&OpenedGate {
        gate: params.gate,
        result: if opened { "opened" } else { "open" },
    }))
}
