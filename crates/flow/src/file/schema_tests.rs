//! The JSON Schema says the same as the reader: the same options, and the same answer to the same files.

use meshwork_model::schedule::policy::CatchUp;
use serde_json::{Map, Value, json};

use super::{SCHEMA, read, work};

/// The faults that a schema finds: types, options, patterns, bounds, choices. As much as the flow's schema uses.
fn faults(schema: &Value, value: &Value, root: &Value, place: &str, out: &mut Vec<String>) {
    let mut wrong = |what: &str| out.push(format!("{place}: {what}"));
    if *schema == Value::Bool(false) {
        return wrong("not allowed");
    }
    if let Some(path) = schema["$ref"].as_str() {
        let target = root.pointer(path.trim_start_matches('#')).unwrap();
        return faults(target, value, root, place, out);
    }
    if let Some(types) = schema.get("type") {
        let types = types
            .as_array()
            .cloned()
            .unwrap_or_else(|| vec![types.clone()]);
        let fits = |name: &Value| match name.as_str().unwrap() {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "integer" => value.is_i64() || value.is_u64(),
            "boolean" => value.is_boolean(),
            other => panic!("the type {other}"),
        };
        if !types.iter().any(fits) {
            return wrong("type");
        }
    }
    if let Some(list) = schema["enum"].as_array()
        && !list.contains(value)
    {
        wrong("enum");
    }
    if schema
        .get("not")
        .is_some_and(|not| not["enum"].as_array().unwrap().contains(value))
    {
        wrong("not");
    }
    if let (Some(pattern), Some(text)) = (schema["pattern"].as_str(), value.as_str())
        && !matches(pattern, text)
    {
        wrong("pattern");
    }
    if let Some(number) = value.as_i64() {
        let low = schema["minimum"]
            .as_i64()
            .is_some_and(|least| number < least);
        let high = schema["maximum"].as_i64().is_some_and(|most| number > most);
        if low || high {
            wrong("range");
        }
    }
    structure(schema, value, root, place, out);
}

/// The faults of the options of a map, and of the items of a list.
fn structure(schema: &Value, value: &Value, root: &Value, place: &str, out: &mut Vec<String>) {
    if let Some(choices) = schema["oneOf"].as_array() {
        let fits = |choice: &&Value| {
            let typed = choice.get("type");
            let required = choice["required"].as_array().into_iter().flatten();
            typed.is_none_or(|name| (name == "string") == value.is_string())
                && required
                    .into_iter()
                    .all(|key| value.get(key.as_str().unwrap()).is_some())
        };
        if choices.iter().filter(fits).count() != 1 {
            out.push(format!("{place}: oneOf"));
        }
    }
    for (key, more) in schema["dependentSchemas"].as_object().into_iter().flatten() {
        if value.get(key).is_some() {
            faults(more, value, root, place, out);
        }
    }
    for key in schema["required"].as_array().into_iter().flatten() {
        if value.get(key.as_str().unwrap()).is_none() {
            out.push(format!("{place}: required"));
        }
    }
    if schema["minProperties"]
        .as_u64()
        .is_some_and(|least| (value.as_object().map_or(0, Map::len) as u64) < least)
    {
        out.push(format!("{place}: size"));
    }
    for (key, value) in value.as_object().into_iter().flatten() {
        let at = format!("{place}.{key}");
        match (
            schema["properties"].get(key),
            &schema["additionalProperties"],
        ) {
            (Some(known), _) => faults(known, value, root, &at, out),
            (None, Value::Bool(false)) => out.push(format!("{at}: unknown")),
            (None, Value::Null) => {}
            (None, other) => faults(other, value, root, &at, out),
        }
        if let Some(names) = schema.get("propertyNames") {
            faults(names, &json!(key), root, &at, out);
        }
    }
    for item in value.as_array().into_iter().flatten() {
        if let Some(items) = schema.get("items") {
            faults(items, item, root, place, out);
        }
    }
}

/// The patterns of the schema: a test of the whole text each.
fn matches(pattern: &str, text: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let begins = |with: fn(char) -> bool| text.starts_with(with);
    match pattern {
        "^[A-Za-z0-9_-]{1,64}$" => {
            (1..=64).contains(&text.len()) && text.chars().all(|c| word(c) || c == '-')
        }
        "^(skip|one|all|all:[0-9]+)$" => text.parse::<CatchUp>().is_ok(),
        "^[A-Za-z0-9._:/-]{1,64}$" => text.parse::<meshwork_model::job::Tag>().is_ok(),
        "^[a-z][a-z0-9_]{0,63}$" => {
            let lower = |c: char| word(c) && !c.is_ascii_uppercase();
            begins(|c| c.is_ascii_lowercase()) && text.len() <= 64 && text.chars().all(lower)
        }
        "^[A-Za-z][A-Za-z0-9_]{0,63}$" => {
            begins(|c| c.is_ascii_alphabetic()) && text.len() <= 64 && text.chars().all(word)
        }
        "^[A-Za-z_][A-Za-z0-9_]*$" => {
            begins(|c| c.is_ascii_alphabetic() || c == '_') && text.chars().all(word)
        }
        "^[A-Za-z0-9_-]{1,64}(:group:[A-Za-z0-9_-]{1,64})?$" => {
            text.parse::<meshwork_model::spread::SpreadName>().is_ok()
        }
        "^([0-9]+|([0-9]+(ms|s|m|h|d))+)$" => meshwork_model::time::parse_span(text).is_some(),
        "^([a-z][a-z0-9_-]{0,31}/)?[1-9][0-9]*$" => {
            text.parse::<meshwork_model::peer::MessageTarget>().is_ok()
        }
        other => panic!("the pattern {other}"),
    }
}

#[test]
fn the_schema_has_the_options_of_the_reader() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let keys = |at: &str| -> Vec<String> {
        let mut keys: Vec<String> = schema
            .pointer(at)
            .unwrap()
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect();
        keys.sort();
        keys
    };
    for (at, known) in [
        ("/properties", read::FLOW),
        ("/properties/schedule/properties", read::SCHEDULE),
        ("/$defs/job/properties", read::JOB),
        ("/$defs/job/properties/wait/properties", work::WAIT),
    ] {
        let mut known: Vec<&str> = known.to_vec();
        known.sort_unstable();
        assert_eq!(keys(at), known, "{at}");
    }
}

/// True: the options of a job, false: a flow; the JSON; true: it is good.
const CASES: &[(bool, &str, bool)] = &[
    (
        false,
        r#"{"flow": "f", "jobs": {"a": {"run": "a.py"}}}"#,
        true,
    ),
    (false, r#"{"flow": "f", "jobs": {}}"#, false),
    (false, r#"{"flow": "f"}"#, false),
    (false, r#"{"jobs": {"a": {"run": "a.py"}}}"#, false),
    (
        false,
        r#"{"flow": 1, "jobs": {"a": {"run": "a.py"}}}"#,
        false,
    ),
    (
        false,
        r#"{"flow": "f", "on": "push", "jobs": {"a": {"run": "a.py"}}}"#,
        false,
    ),
    (
        false,
        r#"{"flow": "f", "env": {"A": "x"}, "jobs": {"a": {"run": "a.py"}}}"#,
        true,
    ),
    (
        false,
        r#"{"flow": "f", "env": {"A": 1}, "jobs": {"a": {"run": "a.py"}}}"#,
        false,
    ),
    (
        false,
        r#"{"flow": "f", "env": {"FLOW_ID": "1"}, "jobs": {"a": {"run": "a.py"}}}"#,
        false,
    ),
    (
        false,
        r#"{"flow": "f", "timeout": 30, "jobs": {"a": {"run": "a.py"}}}"#,
        true,
    ),
    (
        false,
        r#"{"flow": "f", "timeout": "1h30m", "jobs": {"a": {"run": "a.py"}}}"#,
        true,
    ),
    (
        false,
        r#"{"flow": "f", "fail_fast": "no", "jobs": {"a": {"run": "a.py"}}}"#,
        false,
    ),
    (
        false,
        r#"{"flow": "f", "inputs": {"x": null, "y": [1]}, "jobs": {"a": {"run": "a.py"}}}"#,
        true,
    ),
    (
        false,
        r#"{"flow": "f", "jobs": {"item": {"run": "a.py"}}}"#,
        false,
    ),
    (
        false,
        r#"{"flow": "f", "jobs": {"A": {"run": "a.py"}}}"#,
        false,
    ),
    (
        false,
        r#"{"flow": "f", "tags": ["a", "team:b"], "jobs": {"a": {"run": "a.py"}}}"#,
        true,
    ),
    (
        false,
        r#"{"flow": "f", "tags": ["a b"], "jobs": {"a": {"run": "a.py"}}}"#,
        false,
    ),
    (
        false,
        r#"{"flow": "f", "schedule": "@daily", "jobs": {"a": {"run": "a.py"}}}"#,
        true,
    ),
    (
        false,
        r#"{"flow": "f", "schedule": {"every": "30s", "overlap": "allow", "catch_up": "all:5"}, "jobs": {"a": {"run": "a.py"}}}"#,
        true,
    ),
    (
        false,
        r#"{"flow": "f", "schedule": {"tz": "UTC"}, "jobs": {"a": {"run": "a.py"}}}"#,
        false,
    ),
    (
        false,
        r#"{"flow": "f", "schedule": {"cron": "@daily", "every": "30s"}, "jobs": {"a": {"run": "a.py"}}}"#,
        false,
    ),
    (
        false,
        r#"{"flow": "f", "schedule": {"cron": "@daily", "overlap": "no"}, "jobs": {"a": {"run": "a.py"}}}"#,
        false,
    ),
    (
        false,
        r#"{"flow": "f", "spread": "python:group:io", "jobs": {"a": {"run": "a.py"}}}"#,
        true,
    ),
    (
        false,
        r#"{"flow": "f", "spread": "python:prio:0", "jobs": {"a": {"run": "a.py"}}}"#,
        false,
    ),
    (
        false,
        r#"{"flow": "f", "spread": 4, "jobs": {"a": {"run": "a.py"}}}"#,
        false,
    ),
    (
        false,
        r#"{"flow": "f", "spread": "python", "schedule": "@daily", "jobs": {"a": {"run": "a.py"}}}"#,
        false,
    ),
    (
        false,
        r#"{"flow": "f", "jobs": {"a": {"run": "a.py"}}, "on_failure": {"b": {"run": "a.py"}}, "finally": {"c": {"run": "a.py", "if": true}}}"#,
        true,
    ),
    (
        false,
        r#"{"flow": "f", "jobs": {"a": {"run": "a.py"}}, "finally": ["a"]}"#,
        false,
    ),
    (
        true,
        r#"{"run": "a.py", "matrix": {"os": ["x"], "n": "[1, 2]", "exclude": [{"os": "x", "n": 2}]}}"#,
        true,
    ),
    (true, r#"{"run": "a.py", "matrix": {"os": 3}}"#, false),
    (
        true,
        r#"{"run": "a.py", "matrix": {"os": [1], "exclude": [3]}}"#,
        false,
    ),
    (true, r#"{"run": "a.py", "tags": "nightly"}"#, true),
    (true, r#"{"approve": "Go?", "tags": [""]}"#, false),
    (true, r#"{"run": "a.py", "tags": [1]}"#, false),
    (true, r#"{"script": "1", "type": "osis"}"#, true),
    (true, r#"{"script": "1"}"#, false),
    (
        true,
        r#"{"run": "a.py", "script": "1", "type": "osis"}"#,
        false,
    ),
    (true, r#"{}"#, false),
    (true, r#"{"run": "a.py", "retry": 1}"#, false),
    (
        true,
        r#"{"run": "a.py", "retries": 100, "backoff": "5s", "timeout": "7d"}"#,
        true,
    ),
    (true, r#"{"run": "a.py", "retries": 101}"#, false),
    (true, r#"{"run": "a.py", "retries": "1"}"#, false),
    (true, r#"{"run": "a.py", "needs": "b"}"#, true),
    (
        true,
        r#"{"run": "a.py", "needs": ["b"], "if": true, "foreach": [1], "concurrency": 2}"#,
        true,
    ),
    (
        true,
        r#"{"run": "a.py", "foreach": 3, "concurrency": 0}"#,
        false,
    ),
    (true, r#"{"run": "a.py", "context": 0}"#, false),
    (true, r#"{"run": "a.py", "context": 8}"#, true),
    (true, r#"{"run": "a.py", "context": "bob/8"}"#, true),
    (true, r#"{"run": "a.py", "context": "Bob"}"#, false),
    (true, r#"{"run": "a.py", "priority": "urgent"}"#, false),
    (
        true,
        r#"{"approve": "Go?", "approvers": [12], "four_eyes": true}"#,
        true,
    ),
    (true, r#"{"approve": "Go?", "approvers": ["x"]}"#, false),
    (true, r#"{"wait": {"for": "2h"}}"#, true),
    (true, r#"{"wait": {"message": "done", "from": 3}}"#, true),
    (true, r#"{"wait": {"message": "done"}}"#, false),
    (
        true,
        r#"{"wait": {"for": "2h", "until": "2026-01-31"}}"#,
        false,
    ),
    (true, r#"{"wait": "2h"}"#, false),
];

#[test]
fn the_schema_answers_as_the_reader() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.py"), "result = 1\n").unwrap();
    let file = folder.path().join("f.yaml");
    for (of_job, text, good) in CASES {
        let value: Value = serde_json::from_str(text).unwrap();
        let flow = if *of_job { job(value) } else { value };
        // JSON is YAML.
        std::fs::write(&file, flow.to_string()).unwrap();
        let read = super::load(&file);
        let mut found = Vec::new();
        faults(&schema, &flow, &schema, "", &mut found);
        assert_eq!(read.is_ok(), *good, "{flow}: {read:?}");
        assert_eq!(found.is_empty(), *good, "{flow}: {found:?}");
    }
}

/// A flow with a job `b`, and a job `a` with these options.
fn job(options: Value) -> Value {
    json!({"flow": "f", "jobs": {"b": {"run": "a.py"}, "a": options}})
}
