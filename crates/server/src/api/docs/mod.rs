//! The documents of the API, from its table: OpenAPI 3.1 for REST, OpenRPC 1.3.2 for JSON-RPC.

mod openapi;
mod openrpc;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, ReplaceBoolSchemas};
use serde_json::{Map, Value, json};

use super::METHODS;

/// Place of the schemas in both documents.
const SCHEMAS: &str = "/components/schemas";

static OPENAPI: LazyLock<Value> = LazyLock::new(openapi::document);
static OPENRPC: LazyLock<Value> = LazyLock::new(openrpc::document);

/// The OpenAPI document.
#[must_use]
pub fn openapi() -> &'static Value {
    &OPENAPI
}

/// The OpenRPC document.
#[must_use]
pub fn openrpc() -> &'static Value {
    &OPENRPC
}

/// Schemas of all methods.
struct Schemas {
    /// References to those of parameters and result, by method.
    methods: BTreeMap<&'static str, (Value, Value)>,
    /// The schemas by name.
    definitions: Map<String, Value>,
}

impl Schemas {
    fn new() -> Self {
        let settings = || {
            // Many generators of clients take no `true` as a schema.
            let mut no_booleans = ReplaceBoolSchemas::default();
            no_booleans.skip_additional_properties = true;
            SchemaSettings::draft2020_12()
                .with(|settings| {
                    settings.definitions_path = SCHEMAS.into();
                    settings.meta_schema = None;
                })
                .with_transform(no_booleans)
                .with_transform(RecursiveTransform(write_nullable_list))
        };
        let mut params = settings().for_deserialize().into_generator();
        let mut results = settings().for_serialize().into_generator();
        let methods = METHODS.iter().map(|method| {
            let params = method.params(&mut params).to_value();
            (
                method.name,
                (params, method.result(&mut results).to_value()),
            )
        });
        let methods = methods.collect();
        let mut definitions = params.take_definitions(true);
        definitions.append(&mut results.take_definitions(true));
        Self {
            methods,
            definitions,
        }
    }

    /// Properties of an object, with the names of those that must be given.
    fn properties(&self, schema: &Value) -> (Map<String, Value>, Vec<String>) {
        let name = schema.get("$ref").and_then(Value::as_str);
        let name = name.and_then(|path| path.rsplit('/').next());
        let schema = name
            .and_then(|name| self.definitions.get(name))
            .unwrap_or(schema);
        let properties = schema.get("properties").and_then(Value::as_object).cloned();
        let required = schema.get("required").and_then(Value::as_array);
        let required = required.into_iter().flatten().filter_map(Value::as_str);
        (
            properties.unwrap_or_default(),
            required.map(ToOwned::to_owned).collect(),
        )
    }
}

/// Writes a list that may be null as two schemas: many generators of clients take no list of types with it.
fn write_nullable_list(schema: &mut Schema) {
    let types = schema.get("type").and_then(Value::as_array);
    let is_it = types.is_some_and(|types| types.iter().any(|it| it == "array"));
    if let Some(items) = is_it.then(|| schema.remove("items")).flatten() {
        schema.remove("type");
        let either = json!([{"type": "array", "items": items}, {"type": "null"}]);
        schema.insert("anyOf".to_owned(), either);
    }
}

/// Name and version of the API.
fn info() -> Value {
    json!({
        "title": "Meshwork",
        "summary": "Jobs, queues and flows on Redis",
        "version": env!("CARGO_PKG_VERSION"),
        "license": {"name": "MIT OR Apache-2.0"},
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// Set, it writes the document.
    const WRITE: &str = "MESHWORK_WRITE_DOCS";

    #[test]
    fn the_document_is_that_of_the_table() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
        let text = lines(openapi(), &["paths", "components", "schemas"]) + "\n";
        if std::env::var_os(WRITE).is_some() {
            fs::write(&path, &text).unwrap();
        }
        let there = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            there == text,
            "docs/openapi.json is not that of the table: run the tests with {WRITE}=1"
        );
    }

    /// Writes an object with a line for each value, and so those of its objects with these names: a path and a schema have a line
    /// each, so that a change is seen.
    fn lines(value: &Value, split: &[&str]) -> String {
        let values = value.as_object().unwrap().iter();
        let values = values.map(|(name, value)| {
            let text = match split.contains(&name.as_str()) {
                true => lines(value, split),
                false => value.to_string(),
            };
            format!("{}:{text}", json!(name))
        });
        format!("{{\n{}\n}}", values.collect::<Vec<_>>().join(",\n"))
    }

    #[test]
    fn no_schema_is_there_twice() {
        let settings = || SchemaSettings::draft2020_12();
        let mut params = settings().for_deserialize().into_generator();
        let mut results = settings().for_serialize().into_generator();
        for method in METHODS.iter() {
            method.params(&mut params);
            method.result(&mut results);
        }
        let results = results.take_definitions(true);
        for name in params.take_definitions(true).keys() {
            assert!(!results.contains_key(name), "{name}");
        }
    }
}
