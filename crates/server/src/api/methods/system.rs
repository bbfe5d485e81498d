//! Methods of the server itself.

use meshwork_model::api_key::Scope;
use meshwork_model::keys::context::ContextId;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;

use super::queue::NoParams;
use crate::api::call::Call;
use crate::api::docs;
use crate::api::error::ApiError;
use crate::api::method::{HttpVerb, Method, Reply};

/// The methods.
pub(in crate::api) fn methods() -> Vec<Method> {
    use HttpVerb::Get;
    use Scope::Viewer;
    vec![
        Method::new(
            ("system.info", Viewer),
            (Get, "/v1/system"),
            "Read the version of the server, its namespace, and the scope of the caller",
            info,
        )
        .of_caller(),
        Method::new(
            ("rpc.discover", Viewer),
            (Get, "/v1/openrpc.json"),
            "Read the OpenRPC document of the API",
            discover,
        )
        .of_caller(),
    ]
}

/// The server, and the caller.
#[derive(Debug, Serialize, JsonSchema)]
struct Info {
    /// Release of Meshwork.
    version: &'static str,
    /// First part of all keys.
    namespace: String,
    /// Name of the caller's key; null without keys.
    key: Option<String>,
    /// Scope of the caller.
    scope: &'static str,
    /// Actor as which the caller acts in contexts.
    actor: Option<u32>,
    /// The only context in which the caller may call; null for no such limit.
    context: Option<u32>,
    /// Scope of the caller outside of contexts; null if it has no rights there.
    node_scope: Option<&'static str>,
}

async fn info(call: Call, _: NoParams) -> Result<Reply<Info>, ApiError> {
    let scope = call.access.scope().unwrap_or(Scope::Viewer).as_str();
    let node = call.rights.outside(&call.access).await?;
    Ok(Reply::new(&Info {
        version: env!("CARGO_PKG_VERSION"),
        namespace: call.client.broker().keys().namespace().to_string(),
        key: call.access.key_name().map(ToString::to_string),
        scope,
        actor: call.actor().map(|actor| actor.0),
        context: call.access.context().map(ContextId::get),
        node_scope: node.map(Scope::as_str),
    }))
}

async fn discover(_: Call, _: NoParams) -> Result<Reply<OpenRpc>, ApiError> {
    let document = RawValue::from_string(docs::openrpc().to_string());
    let failed =
        |error: serde_json::Error| ApiError::new(crate::api::Code::Internal, error.to_string());
    Ok(Reply::borrowed(&document.map_err(failed)?))
}

/// OpenRPC document.
#[derive(Debug, Serialize, JsonSchema)]
struct OpenRpc {
    /// Version of OpenRPC.
    openrpc: String,
    /// Name and version of the API.
    info: serde_json::Value,
    /// The methods.
    methods: Vec<serde_json::Value>,
}
