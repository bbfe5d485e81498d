//! The OpenRPC 1.3.2 document.

use serde_json::{Map, Value, json};

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
    let mut document = json!({
        "openrpc": "1.3.2",
        "info": {
            "title": info()["title"],
            "version": info()["version"],
            "description": info()["summary"],
            "license": info()["license"],
        },
        "methods": methods,
    });
    let is_object = |schema: &Value| schema.get("properties").is_some();
    let definitions = schemas.definitions.into_iter();
    let (mut objects, others): (Map<_, _>, Map<_, _>) =
        definitions.partition(|(_, schema)| is_object(schema));
    objects.values_mut().for_each(give_defaults);
    document["components"] = json!({"schemas": objects});
    write_out(&mut document, &others);
    document
}

/// Writes schemas of no objects where they are used: generators of clients make types of objects alone.
fn write_out(value: &mut Value, others: &Map<String, Value>) {
    match value {
        Value::Object(fields) => {
            let name = fields.get("$ref").and_then(Value::as_str);
            let name = name.and_then(|path| path.rsplit('/').next());
            if let Some(Value::Object(schema)) = name.and_then(|name| others.get(name)) {
                fields.remove("$ref");
                for (name, value) in schema {
                    fields.entry(name).or_insert_with(|| value.clone());
                }
            }
            fields
                .values_mut()
                .for_each(|value| write_out(value, others));
        }
        Value::Array(all) => all.iter_mut().for_each(|value| write_out(value, others)),
        _ => {}
    }
}

/// Gives fields that may be missing their default: some generators require all fields without one.
fn give_defaults(schema: &mut Value) {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let properties = schema["properties"].as_object_mut();
    for (name, property) in properties.into_iter().flatten() {
        let is_list = property["type"] == "array";
        let is_missing = !required.iter().any(|it| it == name);
        if let (true, Value::Object(fields)) = (is_missing, property) {
            let default = if is_list { json!([]) } else { Value::Null };
            fields.entry("default").or_insert(default);
        }
    }
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
        .map(|(code, message)| json!({"code": code.rpc(), "message": message}))
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
