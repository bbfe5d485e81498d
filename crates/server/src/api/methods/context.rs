//! Methods of contexts and actors.

use meshwork::context::ContextError;
use meshwork::view::{ActorView, ContextSummary, ContextView};
use meshwork_model::access::{Object, Operation};
use meshwork_model::api_key::Scope;
use meshwork_model::keys::context::ActorId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::call::Call;
use crate::api::error::ApiError;
use crate::api::method::{HttpVerb, Method, Reply};
use crate::api::params;

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
            "List the actors",
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

/// A page.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "PageParams")]
struct PageParams {
    /// Greatest number of items, 1 to 1000. Default: 100. A page may have fewer, although more follow.
    limit: Option<usize>,
    /// `next` of the page before.
    cursor: Option<String>,
}

/// Page of contexts.
#[derive(Debug, Serialize, JsonSchema)]
struct ContextPage {
    /// The contexts, by number.
    contexts: Vec<ContextSummary>,
    /// Cursor of the next page; null after the last one.
    next: Option<String>,
}

async fn list(call: Call, params: PageParams) -> Result<Reply<ContextPage>, ApiError> {
    let limit = params::limit(params.limit)?;
    let from = params::offset(params.cursor.as_deref())?;
    let caller = call.trusted().await?;
    let all = call.node().contexts().await?;
    let slots = call.node().slots().await?;
    let mut contexts = Vec::new();
    for context in all.iter().skip(from).take(limit) {
        match context.may(&caller, Object::Context, Operation::Read).await {
            Ok(true) => contexts.push(ContextSummary::new(context, slots.as_ref())),
            // Deleted meanwhile, or damaged: one context must not hide the others.
            Ok(false) | Err(ContextError::NoContext(_) | ContextError::Record(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let next = (all.len() > from + limit).then(|| (from + limit).to_string());
    Ok(Reply::new(&ContextPage { contexts, next }))
}

/// An actor.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "ActorParams")]
struct ActorParams {
    /// Number of the actor.
    id: u32,
}

async fn actor(call: Call, params: ActorParams) -> Result<Reply<ActorView>, ApiError> {
    call.trusted().await?;
    let actor = call.node().actor(ActorId(params.id)).await?;
    Ok(Reply::new(&ActorView::from(&actor)))
}

/// Page of actors.
#[derive(Debug, Serialize, JsonSchema)]
struct ActorPage {
    /// The actors, by number.
    actors: Vec<ActorView>,
    /// Cursor of the next page; null after the last one.
    next: Option<String>,
}

async fn actors(call: Call, params: PageParams) -> Result<Reply<ActorPage>, ApiError> {
    let limit = params::limit(params.limit)?;
    let from = params::offset(params.cursor.as_deref())?;
    call.trusted().await?;
    let all = call.node().actors().await?;
    let page = all.iter().skip(from).take(limit);
    let actors = page.map(ActorView::from).collect();
    let next = (all.len() > from + limit).then(|| (from + limit).to_string());
    Ok(Reply::new(&ActorPage { actors, next }))
}
