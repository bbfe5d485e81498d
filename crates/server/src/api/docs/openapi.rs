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
    paths.insert("/v1/events".to_owned(), json!({"get": events()}));
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

/// Response of a call that failed.
fn failure() -> Value {
    json!({
        "description": "The call failed.",
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
    })
}

/// The stream of events, which is no method: it does not end by itself.
fn events() -> Value {
    let parameter = |name: &str, description: &str| {
        json!({
            "name": name,
            "in": "query",
            "required": false,
            "description": description,
            "schema": {"type": "string"},
        })
    };
    let mut last = parameter("Last-Event-ID", "The same as `from`, as browsers send it.");
    last["in"] = json!("header");
    json!({
        "operationId": "events",
        "summary": "Stream events as server-sent events",
        "description": "Needs a key of the scope `viewer`. In JSON-RPC: `subscribe` on a WebSocket.",
        "tags": ["event"],
        "x-stream": true,
        "parameters": [
            parameter("context", "Number of a context, for the events of its jobs; without it those outside of contexts."),
            parameter("job", "Only events of this job."),
            parameter("queue", "Only events of the jobs of this queue."),
            parameter("flow", "Only events of the jobs of the flow of this number."),
            parameter("from", "Only events after this id; 0 for all that are stored. Default: new events."),
            last,
        ],
        "responses": {
            "200": {
                "description": "Events: `event`, `gap` where some are missing, and `closed`.",
                "content": {"text/event-stream": {"schema": {"type": "string"}}},
            },
            "default": failure(),
        },
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
    if method.follows {
        parameters.push(json!({
            "name": "follow",
            "in": "query",
            "required": false,
            "description": "True to stream the lines as server-sent events until the job has ended.",
            "schema": {"type": "boolean"},
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
    let mut success = json!({
        "description": "The call succeeded.",
        "content": {"application/json": {"schema": result}},
    });
    if method.follows {
        success["content"]["text/event-stream"] = json!({"schema": {"type": "string"}});
    }
    let mut responses = json!({"default": failure()});
    if method.goes_on {
        let mut accepted = success.clone();
        accepted["description"] = json!("What the call began goes on.");
        responses["202"] = accepted;
    }
    responses[method.status.to_string()] = success;
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
