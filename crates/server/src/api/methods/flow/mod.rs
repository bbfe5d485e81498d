//! Methods that read flows, and submit them.

pub(in crate::api) mod change;
pub(in crate::api) mod deploy;
pub(in crate::api) mod logs;

use std::collections::BTreeMap;

use meshwork::flow::{self, FlowView, Given, Plan, parse_inputs, set_inputs};
use meshwork::spread::Spread;
use meshwork::view::{FlowDag, FlowSummary};
use meshwork_model::access::{Object, Operation};
use meshwork_model::api_key::Scope;
use meshwork_model::flow::Work;
use meshwork_model::keys::context::FlowId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::api::call::Call;
use crate::api::error::{ApiError, Code};
use crate::api::method::{HttpVerb, Method, Reply};
use meshwork_ops::params::{Span, parse, parse_some};
use meshwork_ops::warnings::{self, Warned};
use meshwork_ops::{Paging, With};

use super::job::MAX_WAIT;

/// The methods.
pub(in crate::api) fn methods() -> Vec<Method> {
    use HttpVerb::{Get, Post};
    use Scope::{User, Viewer};
    vec![
        Method::new(
            ("flow.submit", User),
            (Post, "/v1/flows"),
            "Submit a flow: the text of its file with those of its scripts, or the name of a deployed one",
            submit,
        )
        .also(&["flow.start"])
        .in_contexts(),
        Method::new(
            ("flow.get", Viewer),
            (Get, "/v1/flows/{id}"),
            "Read the state of a flow and of its jobs; with `wait` at its end",
            get,
        )
        .in_contexts()
        .waits(),
        Method::new(
            ("flow.list", Viewer),
            (Get, "/v1/flows"),
            "List flows, the last submitted first",
            list,
        )
        .in_contexts(),
        Method::new(
            ("flow.dag", Viewer),
            (Get, "/v1/flows/{id}/dag"),
            "Read the graph of a flow",
            dag,
        )
        .in_contexts(),
    ]
}

/// A flow.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "FlowParams")]
pub(super) struct IdParams {
    /// Number of the flow.
    pub(super) id: u32,
    /// Its context; the only one of the store if none is given.
    pub(super) context: Option<u32>,
}

/// A flow to be submitted.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "FlowSubmitParams")]
struct SubmitParams {
    /// Text of the flow's file. Give this or `deployed`.
    flow: Option<String>,
    /// Name of that file in errors: a flow is TOML if it ends with `.toml`, else YAML. Default: `flow.yaml`.
    name: Option<String>,
    /// Texts of the scripts and nested flows that it names, by path. The server reads no file.
    #[serde(default)]
    files: BTreeMap<String, String>,
    /// Name of a deployed flow.
    deployed: Option<String>,
    /// Inputs by name, as texts. Where the default is a number, bool, list or map, the text is JSON.
    #[serde(default)]
    set: BTreeMap<String, String>,
    /// Inputs by name. One in `set`, too, has the value of `set`.
    #[schemars(with = "Option<BTreeMap<String, serde_json::Value>>")]
    inputs: Option<Box<RawValue>>,
    /// Its context. Default: a part of the spread queue that `spread` or the file names, else the only context of the store.
    context: Option<u32>,
    /// Spread queue, instead of the file's: the flow runs whole in the shorter of two of its parts.
    spread: Option<String>,
}

/// A flow that was submitted.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename = "Flow")]
struct Submitted {
    /// Number of the flow.
    id: u32,
    /// Its context.
    context: u32,
}

impl SubmitParams {
    fn inputs(&self) -> Result<Vec<(String, Given)>, ApiError> {
        let inputs = self.inputs.as_ref();
        let given = inputs.map(|inputs| parse_inputs(inputs.get().as_bytes()));
        let given = given.transpose();
        let mut given = given
            .map_err(|error| ApiError::invalid(format!("inputs: {error}")))?
            .unwrap_or_default();
        let set = self.set.clone().into_iter();
        given.extend(set.map(|(name, text)| (name, Given::Text(text))));
        Ok(given)
    }

    /// Reads the plan from the texts; `None` for a deployed flow.
    fn plan(&self) -> Result<Option<Plan>, ApiError> {
        match (&self.flow, &self.deployed) {
            (Some(text), None) => read(self.name.as_deref(), text, &self.files).map(Some),
            (None, Some(_)) => Ok(None),
            _ => Err(ApiError::invalid("give flow or deployed, one of them")),
        }
    }
}

/// Reads the plan of a file's text.
pub(super) fn read(
    name: Option<&str>,
    text: &str,
    files: &BTreeMap<String, String>,
) -> Result<Plan, ApiError> {
    let plan = flow::parse(name.unwrap_or("flow.yaml"), text, files);
    plan.map_err(|faults| ApiError::invalid(faults.to_string()))
}

/// Returns the context of a new flow: the parameters go before the file.
async fn place(
    call: &Call,
    params: &SubmitParams,
    plan: Option<&Plan>,
) -> Result<Option<u32>, ApiError> {
    let spread = parse_some("spread", params.spread.as_deref())?;
    let name = match (params.context, spread) {
        (Some(_), Some(_)) => {
            return Err(ApiError::invalid("context and spread: give one of them"));
        }
        (Some(context), None) => return Ok(Some(context)),
        (None, spread) => spread.or_else(|| plan?.spread.clone()),
    };
    let Some(name) = name else {
        return Ok(None);
    };
    let spread = Spread::open(&call.node(), &call.caller()?, name).await?;
    Ok(Some(spread.shorter_part().await?.id().get()))
}

/// Refuses a flow that sends jobs to other contexts, for the key of one.
pub(super) fn check_targets(call: &Call, plan: &Plan) -> Result<(), ApiError> {
    let Some(own) = call.access.context() else {
        return Ok(());
    };
    for job in &plan.jobs {
        if let Work::Run(run) = &job.work
            && let Some(to) = run
                .context
                .as_ref()
                .filter(|to| to.node.is_some() || to.context != own)
        {
            let message = format!(
                "job {}: this key is for context {own} alone, and not for context {to}",
                job.name
            );
            return Err(ApiError::new(Code::Forbidden, message));
        }
    }
    plan.flows
        .values()
        .try_for_each(|plan| check_targets(call, plan))
}

async fn submit(call: Call, params: SubmitParams) -> Result<Reply<Warned<Submitted>>, ApiError> {
    let plan = params.plan();
    let of_file = plan.as_ref().ok().and_then(Option::as_ref);
    let context = place(&call, &params, of_file).await?;
    let needs = (Object::Flow, Operation::Create);
    let (call, flows) = call.flows(context, needs).await?;
    // The role is checked before the texts.
    let (given, plan) = (params.inputs()?, plan?);
    let mut plan = match (plan, &params.deployed) {
        (Some(plan), _) => plan,
        (None, name) => {
            let name = name.as_deref().unwrap_or_default();
            let plan = flows.client().deployed(&parse("deployed", name)?).await?;
            let none = || ApiError::new(Code::NotFound, format!("no flow {name} is deployed"));
            plan.ok_or_else(none)?
        }
    };
    check_targets(&call, &plan)?;
    let set = set_inputs(&mut plan, given);
    set.map_err(|error| ApiError::invalid(format!("inputs: {error}")))?;
    let id = flows.submit(&plan).await?.0;
    let context = flows.client().context().get();
    let warnings = warnings::of_flow(&flows, &call.client, &plan).await;
    // The flow is stored: an error here is none of the call.
    Ok(Reply::new(&Warned {
        answer: Submitted { id, context },
        warnings: warnings.unwrap_or_default(),
    }))
}

/// A flow, and a wait for its end.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "FlowGetParams")]
struct GetParams {
    /// Number of the flow.
    id: u32,
    /// Its context; the only one of the store if none is given.
    context: Option<u32>,
    /// Time to wait for its end, at most 5 minutes. A flow that has not ended then is returned as it is. Default: 0.
    wait: Option<Span>,
}

async fn get(call: Call, params: GetParams) -> Result<Reply<FlowView>, ApiError> {
    let (call, flows) = call
        .flows(params.context, (Object::Flow, Operation::Read))
        .await?;
    let (client, id) = (flows.client(), FlowId(params.id));
    if let Some(Span(wait)) = params.wait {
        let ended = client.wait(id, |flow| call.tell_flow(flow));
        if let Some(view) = call.wait(ended, wait.min(MAX_WAIT)).await {
            return Ok(Reply::new(&view?));
        }
    }
    Ok(Reply::new(&client.status(id).await?))
}

/// A page of flows.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "FlowListParams")]
struct ListParams {
    /// Only flows of this name, and those that a schedule of this name has started: the latest 1000 of them.
    name: Option<String>,
    /// Their context; the only one of the store if none is given.
    context: Option<u32>,
}

/// Page of flows.
#[derive(Debug, Serialize, JsonSchema)]
struct FlowPage {
    /// The flows, the last submitted first.
    flows: Vec<FlowSummary>,
    /// Cursor of the next page; null after the last one.
    next: Option<String>,
}

async fn list(call: Call, params: With<Paging, ListParams>) -> Result<Reply<FlowPage>, ApiError> {
    let (limit, from) = (params.beside.limit()?, params.beside.offset()?);
    let (_, flows) = call
        .flows(params.context, (Object::Flow, Operation::Read))
        .await?;
    let (flows, next) = match &params.name {
        None => {
            let (page, more) = flows.client().page(from, limit).await?;
            (page, more.then(|| (from + limit).to_string()))
        }
        Some(name) => {
            let named = flows.client().list_named(name).await?;
            params.beside.page(named)?
        }
    };
    Ok(Reply::new(&FlowPage { flows, next }))
}

async fn dag(call: Call, params: IdParams) -> Result<Reply<FlowDag>, ApiError> {
    let (_, flows) = call
        .flows(params.context, (Object::Flow, Operation::Read))
        .await?;
    Ok(Reply::new(&flows.client().dag(FlowId(params.id)).await?))
}
