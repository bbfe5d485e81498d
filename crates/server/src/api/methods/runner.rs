//! Methods of the runners of a context.

use meshwork::context::NewRunner;
use meshwork::view::RunnerView;
use meshwork_model::api_key::Scope;
use meshwork_model::keys::context::RunnerId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::call::Call;
use crate::api::error::ApiError;
use crate::api::method::{HttpVerb, Method, Reply};
use meshwork_ops::params::parse;
use meshwork_ops::{Paging, With};

/// The methods.
pub(in crate::api) fn methods() -> Vec<Method> {
    use HttpVerb::{Get, Post};
    use Scope::{Registrar, Viewer};
    vec![
        Method::new(
            ("runner.register", Registrar),
            (Post, "/v1/contexts/{context}/runners"),
            "Register a runner of a context: a worker that has a number",
            register,
        )
        .in_contexts(),
        Method::new(
            ("runner.get", Viewer),
            (Get, "/v1/contexts/{context}/runners/{id}"),
            "Read a runner",
            get,
        )
        .in_contexts(),
        Method::new(
            ("runner.list", Viewer),
            (Get, "/v1/contexts/{context}/runners"),
            "List the runners of a context; reads all of them",
            list,
        )
        .in_contexts(),
    ]
}

/// A new runner.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "RunnerRegisterParams")]
struct RegisterParams {
    /// Number of the context.
    context: u32,
    /// Types of scripts that it runs.
    types: Vec<String>,
    /// Number of the runner; the next free one if none is given.
    id: Option<u32>,
    /// Topic to listen to. Default: `runner` with its number.
    topic: Option<String>,
    /// Key with which the runner signs.
    pubkey: Option<String>,
    /// Address at which other nodes reach it.
    address: Option<String>,
}

async fn register(call: Call, params: RegisterParams) -> Result<Reply<RunnerView>, ApiError> {
    if params.types.is_empty() {
        return Err(ApiError::invalid("types: give at least one"));
    }
    let types = params.types.iter().map(|name| parse("types", name));
    let pubkey = params.pubkey.as_deref();
    let address = params.address.as_deref();
    let new = NewRunner {
        id: params.id.map(RunnerId),
        types: types.collect::<Result<_, _>>()?,
        local: true,
        topic: params.topic,
        pubkey: pubkey.map(|text| parse("pubkey", text)).transpose()?,
        address: address.map(|text| parse("address", text)).transpose()?,
    };
    let (context, caller) = call.context(Some(params.context)).await?;
    let runner = context.register_runner(&caller, &new).await?;
    Ok(Reply::new(&RunnerView::from(&runner)))
}

/// A runner.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "RunnerParams")]
struct IdParams {
    /// Number of the context.
    context: u32,
    /// Number of the runner.
    id: u32,
}

async fn get(call: Call, params: IdParams) -> Result<Reply<RunnerView>, ApiError> {
    let (context, caller) = call.context(Some(params.context)).await?;
    let runner = context.runner(&caller, RunnerId(params.id)).await?;
    Ok(Reply::new(&RunnerView::from(&runner)))
}

/// A context whose runners are listed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "RunnerListParams")]
struct ListParams {
    /// Number of the context.
    context: u32,
}

/// Page of the runners of a context.
#[derive(Debug, Serialize, JsonSchema)]
struct RunnerList {
    /// The runners, by number.
    runners: Vec<RunnerView>,
    /// Cursor of the next page; null after the last one.
    next: Option<String>,
}

async fn list(call: Call, params: With<Paging, ListParams>) -> Result<Reply<RunnerList>, ApiError> {
    params.beside.limit()?;
    let (context, caller) = call.context(Some(params.context)).await?;
    let all = context.runner_states(&caller).await?;
    let (page, next) = params.beside.page(all)?;
    let runners = page.iter().map(RunnerView::from).collect();
    Ok(Reply::new(&RunnerList { runners, next }))
}
