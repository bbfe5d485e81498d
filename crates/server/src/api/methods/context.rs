//! Methods of contexts and actors.

use std::collections::BTreeSet;

use meshwork::context::{Caller, ContextError, ContextHandle};
use meshwork::view::{ActorView, ContextSummary, ContextView};
use meshwork_model::access::{Object, Operation};
use meshwork_model::api_key::Scope;
use meshwork_model::keys::context::ActorId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::call::Call;
use crate::api::error::ApiError;
use crate::api::method::{HttpVerb, Method, Reply};
use meshwork_ops::Paging;

/// The methods.
pub(in crate::api) fn methods() -> Vec<Method> {
    use HttpVerb::Get;
    use Scope::Viewer;
    vec![
        Method::new(
            ("context.get", Viewer),
            (Get, "/v1/contexts/{id}"),
            "Read a context with the roles of the actors",
            get,
        )
        .in_contexts(),
        Method::new(
            ("context.list", Viewer),
            (Get, "/v1/contexts"),
            "List the contexts that the actor of the key may read",
            list,
        )
        .in_contexts(),
        Method::new(
            ("actor.get", Viewer),
            (Get, "/v1/actors/{id}"),
            "Read an actor",
            actor,
        )
        .in_contexts(),
        Method::new(
            ("actor.list", Viewer),
            (Get, "/v1/actors"),
            "List the actors: those of the contexts that the actor of the key may read, or all for who may read outside of contexts",
            actors,
        )
        .in_contexts(),
    ]
}

/// A context.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "ContextParams")]
struct ContextParams {
    /// Number of the context.
    id: u32,
}

async fn get(call: Call, params: ContextParams) -> Result<Reply<ContextView>, ApiError> {
    let (context, caller) = call.context(Some(params.id)).await?;
    let record = context.show(&caller).await?;
    Ok(Reply::new(&ContextView::new(&context, &record)))
}

/// Page of contexts.
#[derive(Debug, Serialize, JsonSchema)]
struct ContextPage {
    /// The contexts, by number.
    contexts: Vec<ContextSummary>,
    /// Cursor of the next page; null after the last one.
    next: Option<String>,
}

async fn list(call: Call, params: Paging) -> Result<Reply<ContextPage>, ApiError> {
    let caller = call.trusted().await?;
    let mut all = call.node().contexts().await?;
    // The position in all of them would tell how many there are.
    all.retain(|context| call.check_context(context.id()).is_ok());
    let (page, next) = params.page(all)?;
    let slots = call.node().slots().await?;
    let mut contexts = Vec::new();
    for context in &page {
        if may_read(context, &caller).await? {
            contexts.push(ContextSummary::new(context, slots.as_ref()));
        }
    }
    Ok(Reply::new(&ContextPage { contexts, next }))
}

/// Returns true if a caller may read a context. One that was deleted meanwhile, or is damaged, must not hide the others.
async fn may_read(context: &ContextHandle, caller: &Caller) -> Result<bool, ApiError> {
    match context.may(caller, Object::Context, Operation::Read).await {
        Ok(may) => Ok(may),
        Err(ContextError::NoContext(_) | ContextError::Record(_)) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// An actor.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "ActorParams")]
struct ActorParams {
    /// Number of the actor.
    id: u32,
}

/// Returns the actors that a caller without rights outside of contexts may read: itself, and the members of the contexts that
/// it may read; `None` for a caller who may read all.
async fn visible(call: &Call) -> Result<Option<BTreeSet<ActorId>>, ApiError> {
    let caller = call.trusted().await?;
    if call.rights.outside(&call.access).await?.is_some() {
        return Ok(None);
    }
    let mut seen = BTreeSet::from([caller.id()]);
    for context in call.node().contexts().await? {
        if call.check_context(context.id()).is_err() || !may_read(&context, &caller).await? {
            continue;
        }
        let record = context.show(&caller).await?;
        seen.extend([record.admins, record.readers, record.executors].concat());
    }
    Ok(Some(seen))
}

/// Reads an actor that the caller may read.
pub(in crate::api) async fn read_actor(call: &Call, id: ActorId) -> Result<ActorView, ApiError> {
    if visible(call).await?.is_some_and(|seen| !seen.contains(&id)) {
        return Err(ContextError::NoActor(id).into());
    }
    Ok(ActorView::from(&call.node().actor(id).await?))
}

async fn actor(call: Call, params: ActorParams) -> Result<Reply<ActorView>, ApiError> {
    Ok(Reply::new(&read_actor(&call, ActorId(params.id)).await?))
}

/// Page of actors.
#[derive(Debug, Serialize, JsonSchema)]
struct ActorPage {
    /// The actors, by number.
    actors: Vec<ActorView>,
    /// Cursor of the next page; null after the last one.
    next: Option<String>,
}

async fn actors(call: Call, params: Paging) -> Result<Reply<ActorPage>, ApiError> {
    let seen = visible(&call).await?;
    let mut all = call.node().actors().await?;
    all.retain(|actor| seen.as_ref().is_none_or(|seen| seen.contains(&actor.id)));
    let (page, next) = params.page(all)?;
    let actors = page.iter().map(ActorView::from).collect();
    Ok(Reply::new(&ActorPage { actors, next }))
}
