//! The OpenAPI 3.1 document.

use serde_json::{Map, Value, json};

use super::{Schemas, info};
use crate::api::METHODS;
use crate::api::method::{HttpVerb, Method};

pub(super) fn document() -> Value {
    let mut schemas = Schemas::new();
    let mut paths = Map::new();
    for method in METHODS.iter() {
        let verb = method.verb.method().as_str().to_ascii_lowercase();
        let operation = operation(method, &schemas);
        let path = paths.entry(method.path).or_insert_with(|| json!({}));
        path[verb] = operation;
    }
    schemas.definitions.insert("Problem".to_owned(), problem());
    json!({
        "openapi": "3.1.0",
        "info": info(),
        "servers": [{"url": "/"}],
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "schemas": schemas.definitions,
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer", "description": "A key of the API: mwk_…"},
            },
        },
    })
}

/// RFC 9457 problem.
fn problem() -> Value {
    json!({
        "type": "object",
        "description": "Error of a call (RFC 9457).",
        "properties": {
            "type": {"type": "string"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string", "description": "The reason."},
            "code": {"type": "string", "description": "The kind of the error."},
            "hint": {"type": "string", "description": "The remedy."},
        },
        "required": ["type", "title", "status", "detail", "code"],
    })
}

fn operation(method: &Method, schemas: &Schemas) -> Value {
    let (params, result) = &schemas.methods[method.name];
    let (properties, required) = schemas.properties(params);
    let in_path = |name: &str| method.path.contains(&format!("{{{name}}}"));
    let mut parameters: Vec<Value> = Vec::new();
    for (name, schema) in &properties {
        let place = match (in_path(name), method.verb.has_body()) {
            (true, _) => "path",
            (false, false) => "query",
            (false, true) => continue,
        };
        parameters.push(json!({
            "name": name,
            "in": place,
            "required": place == "path" || required.contains(name),
            "description": schema.get("description").cloned().unwrap_or_default(),
            "schema": schema,
        }));
    }
    if method.keyed {
        parameters.push(json!({
            "name": "Idempotency-Key",
            "in": "header",
            "required": false,
            "description": "Makes the call repeatable: the same key and the same parameters create one object.",
            "schema": {"type": "string", "maxLength": 256},
        }));
    }
    let problem = json!({
        "description": "The call failed.",
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
    });
    let success = json!({
        "description": "The call succeeded.",
        "content": {"application/json": {"schema": result}},
    });
    let mut responses = json!({"default": problem});
    responses[method.status.to_string()] = success.clone();
    responses["202"] = success;
    let mut operation = json!({
        "operationId": method.name,
        "summary": method.summary,
        "description": format!("Needs a key of the scope `{}`. In JSON-RPC: `{}`.", method.scope, method.name),
        "tags": [method.name.split('.').next().unwrap_or_default()],
        "parameters": parameters,
        // Schema of all parameters together, for generators of clients.
        "x-params": params,
        "responses": responses,
    });
    if let Some(body) = body(method.verb, &properties, &required, in_path) {
        operation["requestBody"] = body;
    }
    operation
}

/// Schema of the body: the parameters that are not in the path.
fn body(
    verb: HttpVerb,
    properties: &Map<String, Value>,
    required: &[String],
    in_path: impl Fn(&str) -> bool,
) -> Option<Value> {
    let rest: Map<_, _> = properties
        .iter()
        .filter(|(name, _)| !in_path(name))
        .map(|(name, schema)| (name.clone(), schema.clone()))
        .collect();
    if !verb.has_body() || rest.is_empty() {
        return None;
    }
    let required: Vec<_> = required.iter().filter(|name| !in_path(name)).collect();
    let mut schema = json!({"type": "object", "properties": rest, "additionalProperties": false});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    Some(json!({
        "required": !required.is_empty(),
        "content": {"application/json": {"schema": schema}},
    }))
}
