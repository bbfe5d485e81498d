//! The OpenRPC 1.3.2 document.

use serde_json::{Value, json};

use super::{Schemas, info};
use crate::api::METHODS;
use crate::api::error::Code;
use crate::api::method::Method;

/// Errors that each method may answer.
const ERRORS: [(Code, &str); 9] = [
    (Code::InvalidParams, "A parameter is wrong"),
    (Code::ExecutionError, "The script failed"),
    (Code::AuthenticationRequired, "The call needs a key"),
    (
        Code::InvalidCredentials,
        "The key is wrong, expired or revoked",
    ),
    (Code::Forbidden, "The key may not call the method"),
    (Code::NotFound, "The object does not exist"),
    (
        Code::Conflict,
        "The state of the object does not allow the call",
    ),
    (Code::Timeout, "The wait is over before its event"),
    (Code::StorageError, "The store is away, or refuses the call"),
];

pub(super) fn document() -> Value {
    let schemas = Schemas::new();
    let methods: Vec<_> = METHODS
        .iter()
        .flat_map(|method| {
            let names = [method.name]
                .into_iter()
                .chain(method.aliases.iter().copied());
            names
                .map(|name| description(name, method, &schemas))
                .collect::<Vec<_>>()
        })
        .collect();
    let errors: serde_json::Map<String, Value> = ERRORS
        .iter()
        .map(|(code, message)| {
            let error = json!({"code": code.rpc(), "message": message});
            (code.as_str().to_owned(), error)
        })
        .collect();
    json!({
        "openrpc": "1.3.2",
        "info": {
            "title": info()["title"],
            "version": info()["version"],
            "description": info()["summary"],
            "license": info()["license"],
        },
        "methods": methods,
        "components": {"schemas": schemas.definitions, "errors": errors},
    })
}

fn description(name: &str, method: &Method, schemas: &Schemas) -> Value {
    let (params, result) = &schemas.methods[method.name];
    let (properties, required) = schemas.properties(params);
    let mut params: Vec<Value> = properties
        .iter()
        .map(|(name, schema)| {
            json!({
                "name": name,
                "required": required.contains(name),
                "description": schema.get("description").cloned().unwrap_or_default(),
                "schema": schema,
            })
        })
        .collect();
    // Those that must be given come first, as OpenRPC requires.
    params.sort_by_key(|param| param["required"] != true);
    let errors: Vec<_> = ERRORS
        .iter()
        .map(|(code, _)| json!({"$ref": format!("#/components/errors/{}", code.as_str())}))
        .collect();
    let summary = match name == method.name {
        true => method.summary.to_owned(),
        false => format!("Another name of {}", method.name),
    };
    json!({
        "name": name,
        "summary": summary,
        "description": format!("Needs a key of the scope `{}`.", method.scope),
        "paramStructure": "by-name",
        "params": params,
        "result": {"name": "result", "schema": result},
        "errors": errors,
    })
}
