//! The methods of the API, as `docs/openapi.json` describes them.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value};

use crate::process::Failure;

/// The document.
pub(super) struct Document {
    json: Value,
    /// The methods by object and name.
    pub(super) methods: Vec<Method>,
}

/// A method.
pub(super) struct Method {
    /// Name, as `job.create`.
    pub(super) id: String,
    pub(super) summary: String,
    /// In upper case.
    pub(super) verb: String,
    pub(super) path: String,
    /// Parameters in the path.
    pub(super) in_path: Vec<String>,
    /// Schema of the parameters; none without parameters.
    pub(super) params: Option<String>,
    /// True if a parameter must be given.
    pub(super) requires: bool,
    /// Schema of the result.
    pub(super) result: String,
    /// True if the method takes an idempotency key.
    pub(super) keyed: bool,
    /// True if the caller can wait in it.
    pub(super) waits: bool,
    /// Of a list with pages: the field with the items, and their schema.
    pub(super) items: Option<(String, String)>,
}

impl Method {
    /// Splits the name: `job` and `create`.
    pub(super) fn names(&self) -> (&str, &str) {
        self.id.split_once('.').unwrap_or(("", &self.id))
    }

    /// Returns the object as the name of a class.
    pub(super) fn class(&self) -> String {
        let mut letters = self.names().0.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        first.into_iter().chain(letters).collect()
    }
}

impl Document {
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let failed = |error: String| Failure::new(format!("{}: {error}", path.display()));
        let text = fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        let json: Value = serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
        let paths = json["paths"].as_object().into_iter().flatten();
        let operations = paths.flat_map(|(path, verbs)| {
            let verbs = verbs.as_object().into_iter().flatten();
            verbs.map(move |(verb, operation)| (path, verb, operation))
        });
        let mut methods = Vec::new();
        for (path, verb, operation) in operations {
            // Streams are no methods.
            if operation["x-stream"] != true {
                let method = method(&json, (path, verb), operation);
                let name = &operation["operationId"];
                methods.push(method.ok_or_else(|| failed(format!("{name} cannot be read")))?);
            }
        }
        methods.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(Self { json, methods })
    }

    /// Returns the document with objects that may have further fields: the Python types of closed ones need a package.
    pub(super) fn open(&self) -> Value {
        let mut json = self.json.clone();
        open(&mut json);
        json
    }
}

fn open(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|name, value| name != "additionalProperties" || *value != false);
            map.values_mut().for_each(open);
        }
        Value::Array(items) => items.iter_mut().for_each(open),
        _ => {}
    }
}

fn method(json: &Value, (path, verb): (&str, &str), operation: &Value) -> Option<Method> {
    let parameters = operation["parameters"].as_array()?;
    let params = name_of(&operation["x-params"]).filter(|name| *name != "NoParams");
    let fields = params.map(|name| &schema(json, name)["properties"]);
    let responses = operation["responses"].as_object()?;
    let (_, success) = responses.iter().find(|(status, _)| *status != "default")?;
    let result = name_of(&success["content"]["application/json"]["schema"])?;
    let has = |name: &str| fields.is_some_and(|fields| fields.get(name).is_some());
    let required = params.map(|name| &schema(json, name)["required"]);
    Some(Method {
        id: operation["operationId"].as_str()?.to_owned(),
        summary: operation["summary"].as_str()?.to_owned(),
        verb: verb.to_ascii_uppercase(),
        path: path.to_owned(),
        in_path: placed(parameters, "path").collect(),
        params: params.map(str::to_owned),
        requires: required.is_some_and(|names| names.as_array().is_some_and(|it| !it.is_empty())),
        result: result.to_owned(),
        keyed: placed(parameters, "header").any(|name| name == "Idempotency-Key"),
        waits: has("wait"),
        items: items(schema(json, result)["properties"].as_object()).filter(|_| has("cursor")),
    })
}

/// Returns the names of the parameters in a place of the request.
fn placed<'a>(parameters: &'a [Value], place: &'a str) -> impl Iterator<Item = String> + 'a {
    let found = parameters.iter().filter(move |it| it["in"] == place);
    found.filter_map(|it| it["name"].as_str().map(str::to_owned))
}

/// Returns the field of a page with its items, and their schema.
fn items(page: Option<&Map<String, Value>>) -> Option<(String, String)> {
    let item = |schema: &Value| Some(name_of(&schema["items"])?.to_owned());
    let mut lists = page?
        .iter()
        .filter_map(|(name, schema)| Some((name.clone(), item(schema)?)));
    lists.next()
}

fn schema<'a>(json: &'a Value, name: &str) -> &'a Value {
    &json["components"]["schemas"][name]
}

/// Returns the name of the schema that a reference names.
fn name_of(schema: &Value) -> Option<&str> {
    schema["$ref"]
        .as_str()?
        .strip_prefix("#/components/schemas/")
}
