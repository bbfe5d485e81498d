//! Methods that change flows.

use meshwork::flow::FlowView;
use meshwork::flow::run::RetryFrom;
use meshwork_model::access::{Object, Operation};
use meshwork_model::api_key::Scope;
use meshwork_model::keys::context::{ActorId, FlowId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::IdParams;
use crate::api::call::Call;
use crate::api::error::{ApiError, Code};
use crate::api::method::{HttpVerb, Method, Reply};

/// The methods.
pub(in crate::api) fn methods() -> Vec<Method> {
    use HttpVerb::{Delete, Post};
    use Scope::User;
    vec![
        Method::new(
            ("flow.cancel", User),
            (Post, "/v1/flows/{id}/cancel"),
            "Cancel a flow: pending jobs do not start, running jobs are cancelled, then compensations run",
            cancel,
        )
        .also(&["flow.stop"])
        .in_contexts()
        .goes_on(),
        Method::new(
            ("flow.retry", User),
            (Post, "/v1/flows/{id}/retry"),
            "Run an ended flow again from some of its jobs",
            retry,
        )
        .in_contexts(),
        Method::new(
            ("flow.approve", User),
            (Post, "/v1/flows/{id}/approve"),
            "Approve an approval of a flow, as the actor of the key",
            approve,
        )
        .in_contexts(),
        Method::new(
            ("flow.reject", User),
            (Post, "/v1/flows/{id}/reject"),
            "Reject an approval of a flow, as the actor of the key: the job fails",
            reject,
        )
        .in_contexts(),
        Method::new(
            ("flow.delete", User),
            (Delete, "/v1/flows/{id}"),
            "Delete a flow that has ended, with its jobs; that of another actor needs the scope admin",
            delete,
        )
        .in_contexts(),
    ]
}

/// A flow to be cancelled.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "FlowCancelParams")]
struct CancelParams {
    /// Number of the flow.
    id: u32,
    /// False to run no compensations. Default: true.
    compensate: Option<bool>,
    /// Its context; the only one of the store if none is given.
    context: Option<u32>,
}

/// Result of a change of a flow.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename = "ChangedFlow")]
struct Changed {
    /// Number of the flow.
    id: u32,
    /// The job, if one was answered.
    job: Option<String>,
    /// Outcome: `stopping`, `ended`, `retrying`, `approved`, `rejected` or `deleted`.
    result: &'static str,
}

fn changed(id: u32, result: &'static str) -> Result<Reply<Changed>, ApiError> {
    let job = None;
    Ok(Reply::new(&Changed { id, job, result }))
}

async fn cancel(call: Call, params: CancelParams) -> Result<Reply<Changed>, ApiError> {
    let (call, flows) = call
        .flows(params.context, (Object::Flow, Operation::Read))
        .await?;
    let compensate = params.compensate.unwrap_or(true);
    let stops = flows.cancel(FlowId(params.id), compensate).await?;
    if stops {
        call.accepted();
    }
    changed(params.id, if stops { "stopping" } else { "ended" })
}

/// A flow to be retried.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "FlowRetryParams")]
struct RetryParams {
    /// Number of the flow.
    id: u32,
    /// Jobs to start at, as `fetch`, or `parse[3]` for an item of a `foreach`.
    #[serde(alias = "from")]
    from_jobs: Vec<String>,
    /// True to expand each named `foreach` again, instead of running the items that did not finish.
    #[serde(default)]
    all: bool,
    /// Its context; the only one of the store if none is given.
    context: Option<u32>,
}

impl RetryParams {
    fn from(&self) -> Result<Vec<RetryFrom>, ApiError> {
        let start = |text: &String| {
            let Some((job, item)) = text.split_once('[') else {
                return Ok(match self.all {
                    true => RetryFrom::All(text.clone()),
                    false => RetryFrom::Job(text.clone()),
                });
            };
            let item = item.strip_suffix(']').and_then(|item| item.parse().ok());
            let wrong = || {
                let message = format!("from_jobs: {text:?} is no job and no item, as parse[3]");
                ApiError::invalid(message)
            };
            Ok(RetryFrom::Item(job.to_owned(), item.ok_or_else(wrong)?))
        };
        match self.from_jobs.is_empty() {
            true => Err(ApiError::invalid("from_jobs: name a job to start at")),
            false => self.from_jobs.iter().map(start).collect(),
        }
    }
}

async fn retry(call: Call, params: RetryParams) -> Result<Reply<Changed>, ApiError> {
    let from = params.from()?;
    let (_, flows) = call
        .flows(params.context, (Object::Flow, Operation::Read))
        .await?;
    flows.retry(FlowId(params.id), &from).await?;
    changed(params.id, "retrying")
}

/// An approval.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "FlowAnswerParams")]
struct AnswerParams {
    /// Number of the flow.
    id: u32,
    /// Name of the approval; the only open one if none is given.
    job: Option<String>,
    /// Its context; the only one of the store if none is given.
    context: Option<u32>,
}

async fn approve(call: Call, params: AnswerParams) -> Result<Reply<Changed>, ApiError> {
    answer(call, params, true).await
}

async fn reject(call: Call, params: AnswerParams) -> Result<Reply<Changed>, ApiError> {
    answer(call, params, false).await
}

async fn answer(call: Call, params: AnswerParams, yes: bool) -> Result<Reply<Changed>, ApiError> {
    let id = params.id;
    let (_, flows) = call
        .flows(params.context, (Object::OwnApproval, Operation::Answer))
        .await?;
    let job = match params.job {
        Some(job) => job,
        None => only_open(&flows.client().status(FlowId(id)).await?)?,
    };
    flows.answer(FlowId(id), &job, yes).await?;
    let result = if yes { "approved" } else { "rejected" };
    let job = Some(job);
    Ok(Reply::new(&Changed { id, job, result }))
}

/// The only open approval of a flow.
fn only_open(view: &FlowView) -> Result<String, ApiError> {
    let asks = view.jobs.iter().filter(|job| job.question.is_some());
    let open: Vec<&str> = asks.map(|job| job.name.as_str()).collect();
    match open[..] {
        [job] => Ok(job.to_owned()),
        [] => {
            let message = format!("no approval of the flow {} is open", view.id);
            Err(ApiError::new(Code::Conflict, message))
        }
        [..] => {
            let names = open.join(", ");
            let message = format!("job: these approvals are open: {names}; name one of them");
            Err(ApiError::invalid(message))
        }
    }
}

async fn delete(call: Call, params: IdParams) -> Result<Reply<Changed>, ApiError> {
    let (call, flows) = call
        .flows(params.context, (Object::Flow, Operation::Read))
        .await?;
    if call.access.scope() != Some(Scope::Admin) {
        let flow = flows.client().status(FlowId(params.id)).await?;
        if call.actor() != Some(ActorId(flow.caller)) {
            let name = "flow.delete of another actor's flow";
            call.access.check(Scope::Admin, name)?;
        }
    }
    // The session writes the entry of the audit trail.
    flows.delete(FlowId(params.id)).await?;
    changed(params.id, "deleted")
}
