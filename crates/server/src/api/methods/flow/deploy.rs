//! Methods of deployed flows.

use std::collections::BTreeMap;

use meshwork_model::access::{Object, Operation};
use meshwork_model::api_key::Scope;
use meshwork_model::name::ScheduleName;
use meshwork_model::time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{check_targets, read};
use crate::api::call::Call;
use crate::api::error::ApiError;
use crate::api::method::{HttpVerb, Method, Reply};
use meshwork_ops::params::parse;
use meshwork_ops::warnings::{self, Warned};
use meshwork_ops::{Paging, With};

/// The methods.
pub(in crate::api) fn methods() -> Vec<Method> {
    use HttpVerb::{Delete, Get, Post};
    use Scope::{User, Viewer};
    vec![
        Method::new(
            ("flow.deploy", User),
            (Post, "/v1/deployed-flows"),
            "Store a flow under its name, with its schedule, in place of an earlier one; flows that run are not changed",
            deploy,
        )
        .in_contexts(),
        Method::new(
            ("flow.undeploy", User),
            (Delete, "/v1/deployed-flows/{name}"),
            "Remove a deployed flow with its schedule; flows that run are not changed",
            undeploy,
        )
        .in_contexts(),
        Method::new(
            ("flow.deployed", Viewer),
            (Get, "/v1/deployed-flows"),
            "List the deployed flows, the last deployed first",
            deployed,
        )
        .in_contexts(),
    ]
}

/// A flow to be deployed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "FlowDeployParams")]
struct DeployParams {
    /// Text of the flow's file.
    flow: String,
    /// Name of that file in errors: a flow is TOML if it ends with `.toml`, else YAML. Default: `flow.yaml`.
    name: Option<String>,
    /// Texts of the scripts and nested flows that it names, by path. The server reads no file.
    #[serde(default)]
    files: BTreeMap<String, String>,
    /// Its context; the only one of the store if none is given.
    context: Option<u32>,
}

/// A flow that was deployed.
#[derive(Debug, Serialize, JsonSchema)]
struct DeployedFlow {
    /// Its name.
    name: String,
    /// Number of deployments of the name.
    deployments: u64,
    /// Time of its next start (RFC 3339); null without a schedule, and for one that is paused.
    next_at: Option<String>,
    /// True if its schedule is paused.
    paused: bool,
}

async fn deploy(call: Call, params: DeployParams) -> Result<Reply<Warned<DeployedFlow>>, ApiError> {
    let needs = (Object::Flow, Operation::Create);
    let (call, flows) = call.flows(params.context, needs).await?;
    let plan = read(params.name.as_deref(), &params.flow, &params.files)?;
    check_targets(&call, &plan)?;
    let name: ScheduleName = parse("flow", &plan.name)?;
    let deployments = flows.deploy(&plan).await?;
    let schedule = match plan.schedule {
        Some(_) => flows.client().scheduled(&name).await?,
        None => None,
    };
    let next = schedule.as_ref().and_then(|it| it.next);
    let warnings = warnings::of_flow(&flows, &call.client, &plan).await;
    // The flow is stored: an error here is none of the call.
    Ok(Reply::new(&Warned {
        answer: DeployedFlow {
            name: name.to_string(),
            deployments,
            next_at: next.map(time::iso),
            paused: schedule.is_some() && next.is_none(),
        },
        warnings: warnings.unwrap_or_default(),
    }))
}

/// A deployed flow.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "FlowUndeployParams")]
struct UndeployParams {
    /// Name of the flow.
    name: String,
    /// Its context; the only one of the store if none is given.
    context: Option<u32>,
}

/// A deployed flow that was removed.
#[derive(Debug, Serialize, JsonSchema)]
struct UndeployedFlow {
    /// Its name.
    name: String,
    /// `undeployed`.
    result: &'static str,
}

async fn undeploy(call: Call, params: UndeployParams) -> Result<Reply<UndeployedFlow>, ApiError> {
    let needs = (Object::Flow, Operation::Delete);
    let (_, flows) = call.flows(params.context, needs).await?;
    flows.undeploy(&parse("name", &params.name)?).await?;
    Ok(Reply::new(&UndeployedFlow {
        name: params.name,
        result: "undeployed",
    }))
}

/// A page of deployed flows.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "FlowDeployedParams")]
struct ListParams {
    /// Their context; the only one of the store if none is given.
    context: Option<u32>,
}

/// A deployed flow.
#[derive(Debug, Serialize, JsonSchema)]
struct Deployment {
    /// Its name.
    name: String,
    /// Number of deployments of the name.
    deployments: u64,
    /// Time of the last one (RFC 3339).
    deployed_at: String,
    /// The actor who deployed it.
    by: Option<u32>,
}

/// Page of deployed flows.
#[derive(Debug, Serialize, JsonSchema)]
struct DeployedPage {
    /// The flows, the last deployed first.
    flows: Vec<Deployment>,
    /// Cursor of the next page; null after the last one.
    next: Option<String>,
}

async fn deployed(
    call: Call,
    params: With<Paging, ListParams>,
) -> Result<Reply<DeployedPage>, ApiError> {
    params.beside.limit()?;
    let needs = (Object::Flow, Operation::Read);
    let (_, flows) = call.flows(params.context, needs).await?;
    let (page, next) = params.beside.page(flows.client().deployments().await?)?;
    let flows = page.into_iter().map(|it| Deployment {
        name: it.name.to_string(),
        deployments: it.deployments,
        deployed_at: time::iso(it.at),
        by: it.by.map(|actor| actor.0),
    });
    let flows = flows.collect();
    Ok(Reply::new(&DeployedPage { flows, next }))
}
