//! Schemas of tools: those of their methods in the part of JSON Schema that every client understands.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::api::Method;

/// Formats of Rust's integers, which validators do not know, with their greatest numbers. Greater ones are exact in no
/// client of JavaScript.
const INTEGERS: [(&str, u64); 3] = [
    ("uint8", u8::MAX as u64),
    ("uint16", u16::MAX as u64),
    ("uint32", u32::MAX as u64),
];

/// Returns the schema of the parameters of a method, in one piece: no references, no formats, and no null beside the type of a
/// parameter, since it may be left out.
pub(super) fn of(method: &Method) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut generator = settings.for_deserialize().into_generator();
    let mut schema = method.params(&mut generator).to_value();
    simplify(&mut schema);
    schema
}

fn simplify(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    for name in ["title", "$schema"] {
        object.remove(name);
    }
    if object.get("default").is_some_and(Value::is_null) {
        object.remove("default");
    }
    if let Some(format) = object.remove("format") {
        let known = INTEGERS.iter().find(|(name, _)| format == *name);
        if let Some((_, most)) = known {
            object.entry("maximum").or_insert(json!(most));
        }
    }
    without_null(object);
    for name in [
        "properties",
        "anyOf",
        "oneOf",
        "items",
        "additionalProperties",
    ] {
        match object.get_mut(name) {
            Some(Value::Array(schemas)) => schemas.iter_mut().for_each(simplify),
            Some(Value::Object(schemas)) if name == "properties" => {
                schemas.values_mut().for_each(simplify);
            }
            Some(one) => simplify(one),
            None => {}
        }
    }
}

/// Takes null out of the types of a parameter that may be left out.
fn without_null(object: &mut Map<String, Value>) {
    let types = object.get_mut("type").and_then(Value::as_array_mut);
    if let Some(types) = types {
        types.retain(|name| name != "null");
        if let [only] = &types[..] {
            let only = only.clone();
            object.insert("type".to_owned(), only);
        }
    }
    let Some(any) = object.get_mut("anyOf").and_then(Value::as_array_mut) else {
        return;
    };
    any.retain(|schema| schema["type"] != "null");
    if any.len() > 1 {
        return;
    }
    let only = any.pop();
    object.remove("anyOf");
    if let Some(Value::Object(only)) = only {
        for (name, value) in only {
            // The description of the parameter is more exact than that of its type.
            object.entry(name).or_insert(value);
        }
    }
}
