//! Rules for all methods of the table.

use std::path::Path;

use meshwork::Client;
use meshwork::context::{Node, new_key};
use meshwork_model::keys::context::ActorId;
use serde_json::{Value, json};

use super::method::Params;
use super::{ApiError, Code, METHODS, Method, call_on, docs, find};

/// Numbers at the edges of the types that programs and servers have for them.
const NUMBERS: [&str; 13] = [
    "0",
    "1",
    "-1",
    "2147483647",
    "2147483648",
    "2713623236",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "1e300",
];

/// Properties of the parameters of a method in the document, and the names of those that must be given.
fn properties(method: &Method) -> (Vec<(String, Value)>, Vec<String>) {
    let document = docs::openrpc();
    let methods = document["methods"].as_array().unwrap();
    let is_it = |it: &&Value| it["name"] == method.name;
    let described = methods.iter().find(is_it).unwrap();
    let params = described["params"].as_array().unwrap();
    let name = |param: &Value| param["name"].as_str().unwrap().to_owned();
    let required = params.iter().filter(|param| param["required"] == true);
    let all = params
        .iter()
        .map(|param| (name(param), resolved(&param["schema"])));
    (all.collect(), required.map(name).collect())
}

/// A schema, or what it refers to.
fn resolved(schema: &Value) -> Value {
    let any = schema["anyOf"].as_array().and_then(|all| all.first());
    let reference = any.unwrap_or(schema)["$ref"].as_str();
    match reference.and_then(|path| docs::openrpc().pointer(&path[1..])) {
        Some(found) => found.clone(),
        None => schema.clone(),
    }
}

fn has_type(schema: &Value, kind: &str) -> bool {
    match &schema["type"] {
        Value::String(one) => one == kind,
        Value::Array(all) => all.iter().any(|one| one == kind),
        _ => schema["anyOf"]
            .as_array()
            .is_some_and(|all| all.iter().any(|one| has_type(one, kind))),
    }
}

async fn call(client: &Client, method: &Method, params: &str) -> Result<Value, ApiError> {
    let params: Params = serde_json::from_str(params).unwrap();
    let called = call_on((client, Some(ActorId(1))), method, params).await;
    called.map(|result| serde_json::from_str(result.get()).unwrap())
}

#[tokio::test]
async fn a_wrong_type_names_its_field() {
    let client = Client::in_memory();
    let mut tried = 0;
    for method in METHODS.iter() {
        for (name, _) in properties(method).0 {
            // They are any JSON.
            if matches!(&*name, "payload" | "inputs" | "input") {
                continue;
            }
            let given = format!("{{{name:?}:[[[]]]}}");
            let error = call(&client, method, &given).await.unwrap_err();
            let at = error.message.strip_prefix(&name).unwrap_or_default();
            assert!(
                error.code == Code::InvalidParams && at.starts_with([':', '[']),
                "{} {name}: {error:?}",
                method.name
            );
            tried += 1;
        }
    }
    assert!(tried > 200, "{tried}");
    for (method, params, message) in [
        (
            "job.create",
            r#"{"type":"osis","script":"1","retries":"3"}"#,
            "retries: invalid type: string \"3\", expected a whole number from 0 to 4294967295",
        ),
        (
            "job.create",
            r#"{"type":"osis","script":"1","timeout":{}}"#,
            "timeout: invalid type: map, expected seconds as a number, or a text as 500ms, 90s, 10m, 1h30m",
        ),
        (
            "batch.add",
            r#"{"id":"b","jobs":[{"type":"osis","script":"1"},{"type":"osis","env":{"A":1}}]}"#,
            "jobs[1].env.A: invalid type: integer `1`, expected a string",
        ),
        (
            "batch.add",
            r#"{"id":"b","jobs":[{"script":"1"}]}"#,
            "jobs[0].type: give the type of the job",
        ),
        (
            "batch.create",
            r#"{"on_done":{"type":"osis","script":"1","at":"1970-01-01","delay":1}}"#,
            "on_done.at and delay: give one of them",
        ),
        (
            "schedule.put",
            r#"{"name":"s","every":60,"job":{"type":"osis"}}"#,
            "job.script: give a script, or a payload",
        ),
        ("job.get", "{}", "missing field `id`"),
    ] {
        let error = call(&client, find(method).unwrap(), params)
            .await
            .unwrap_err();
        assert_eq!(error.message, message);
    }
}

#[tokio::test]
async fn an_unknown_name_leads_to_the_one_that_is_meant() {
    let client = Client::in_memory();
    for (method, params, name) in [
        ("job.create", r#"{"tpye":"osis","script":"1"}"#, "type"),
        (
            "job.create",
            r#"{"type":"osis","script":"1","retires":3}"#,
            "retries",
        ),
        ("job.list", r#"{"state":"delayd"}"#, "delayed"),
        ("job.list", r#"{"contxt":1}"#, "context"),
        (
            "job.create",
            r#"{"type":"osis","script":"1","wiat":1}"#,
            "wait",
        ),
        ("job.list", r#"{"curser":"1"}"#, "cursor"),
    ] {
        let error = call(&client, find(method).unwrap(), params).await;
        let message = error.unwrap_err().message;
        assert!(
            message.ends_with(&format!("did you mean `{name}`?")),
            "{message}"
        );
    }
    let unknown = call(&client, find("job.get").unwrap(), r#"{"id":"a","more":1}"#).await;
    let message = unknown.unwrap_err().message;
    assert!(
        message.starts_with("unknown field `more`, expected"),
        "{message}"
    );
}

/// Filters take the words of answers, both of the state and of the record.
#[tokio::test]
async fn a_job_has_one_state_and_filters_take_its_words() {
    let client = Client::in_memory();
    for (id, more) in [("late", r#","delay":"1h""#), ("gone", ""), ("next", "")] {
        let job = format!(r#"{{"type":"osis","script":"1","id":"{id}"{more}}}"#);
        call(&client, find("job.create").unwrap(), &job)
            .await
            .unwrap();
    }
    let cancel = find("job.cancel").unwrap();
    call(&client, cancel, r#"{"id":"gone"}"#).await.unwrap();
    for (id, state, status) in [
        ("late", "delayed", "dispatched"),
        ("gone", "cancelled", "error"),
        ("next", "queued", "dispatched"),
    ] {
        let id = json!(id);
        let params = json!({"id": id}).to_string();
        let job = call(&client, find("job.get").unwrap(), &params);
        let job = job.await.unwrap();
        assert_eq!(
            (&job["state"], &job["status"]),
            (&json!(state), &json!(status))
        );
        assert_eq!(job["context"], Value::Null);
        for filter in [
            json!({"state": state, "queue": "osis"}),
            json!({"status": state}),
            json!({"status": status}),
        ] {
            let params = filter.to_string();
            let list = call(&client, find("job.list").unwrap(), &params);
            let jobs = list.await.unwrap()["jobs"].as_array().unwrap().clone();
            let found = jobs.iter().find(|job| job["id"] == id);
            let found = found.unwrap_or_else(|| panic!("{filter}: {jobs:?}"));
            assert_eq!(found["state"], state, "{filter}");
        }
    }
}

#[tokio::test]
async fn a_limit_of_all_queues_lists_no_more_of_them() {
    let client = Client::in_memory();
    let names = async || {
        let list = call(&client, find("queue.list").unwrap(), "{}")
            .await
            .unwrap();
        let queues = list["queues"].as_array().unwrap().clone();
        let names = queues.iter().map(|queue| queue["queue"].clone());
        (names.collect::<Vec<_>>(), queues[0]["limit"].clone())
    };
    for priority in ["high", "normal"] {
        let job = format!(r#"{{"type":"osis","script":"1","priority":"{priority}"}}"#);
        let made = call(&client, find("job.create").unwrap(), &job)
            .await
            .unwrap();
        if priority == "high" {
            let id = format!(r#"{{"id":{}}}"#, made["id"]);
            call(&client, find("job.cancel").unwrap(), &id)
                .await
                .unwrap();
        }
    }
    let before = names().await;
    client.set_max_length(None, Some(1000)).await.unwrap();
    assert_eq!(names().await, (before.0, json!(1000)));
}

/// A value for a parameter that must be given beside the number.
fn filler(name: &str, schema: &Value) -> Value {
    match name {
        "context" | "to" => json!(1),
        "type" | "queue" => json!("osis"),
        "scope" => json!("viewer"),
        "job" => json!({"type": "osis", "script": "1"}),
        "jobs" => json!([{"type": "osis", "script": "1"}]),
        "types" | "from_jobs" => json!(["osis"]),
        _ if has_type(schema, "integer") => json!(1),
        _ => json!("7"),
    }
}

#[tokio::test]
async fn no_number_is_a_fault_of_the_store() {
    let client = Client::in_memory();
    let node = Node::of(client.broker());
    let actor = node.trust(new_key().public(), None).await.unwrap();
    let me = meshwork::context::Caller::new(actor.id, None);
    node.create_context(&me, None, None).await.unwrap();
    let (mut tried, mut faults) = (0, Vec::new());
    for method in METHODS.iter() {
        // It has the parameters of `job.create`, and waits for minutes.
        if method.name == "job.run" {
            continue;
        }
        let (properties, required) = properties(method);
        for (name, schema) in &properties {
            if name == "wait" {
                continue;
            }
            let is_cursor = matches!(&**name, "cursor" | "after" | "id");
            let is_number = ["integer", "number"]
                .iter()
                .any(|kind| has_type(schema, kind));
            if !is_number && !is_cursor {
                continue;
            }
            for number in NUMBERS {
                let given = match is_number {
                    true => vec![number.to_owned()],
                    false => ["N", "N.N", "N-N", "N/N", "r.N.YQ", "qN.N.YQ", "N:N"]
                        .map(|form| format!("{:?}", form.replace('N', number)))
                        .to_vec(),
                };
                for given in given {
                    let others = properties
                        .iter()
                        .filter(|(other, _)| other != name && required.contains(other));
                    let others = others
                        .map(|(other, schema)| format!(",{other:?}:{}", filler(other, schema)));
                    let params = format!("{{{name:?}:{given}{}}}", others.collect::<String>());
                    if let Err(error) = call(&client, method, &params).await
                        && matches!(error.code, Code::StorageError | Code::Internal)
                    {
                        faults.push(format!("{} {params}: {error:?}", method.name));
                    }
                    tried += 1;
                }
            }
        }
    }
    assert!(tried > 1000, "{tried}");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn cursors_of_logs_are_positions() {
    for cursor in ["0.x", "x.", "0.18446744073709551615-18446744073709551615"] {
        let error = super::methods::flow::logs::position(Some(cursor)).unwrap_err();
        assert!(error.message.starts_with("cursor: "), "{error:?}");
    }
}

#[test]
fn each_list_has_pages() {
    for method in METHODS
        .iter()
        .filter(|method| method.name.ends_with(".list"))
    {
        let names: Vec<_> = properties(method)
            .0
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        for name in ["limit", "cursor"] {
            assert!(
                names.iter().any(|it| it == name),
                "{} has no {name}",
                method.name
            );
        }
        let document = docs::openapi();
        let verb = document["paths"][method.path]["get"].clone();
        let result = &verb["responses"]["200"]["content"]["application/json"]["schema"];
        assert!(
            resolved_in(document, result)["properties"]["next"].is_object(),
            "{}",
            method.name
        );
    }
}

fn resolved_in(document: &Value, schema: &Value) -> Value {
    let path = schema["$ref"].as_str().unwrap();
    document.pointer(&path[1..]).unwrap().clone()
}

#[test]
fn the_page_lists_each_method() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/api.md");
    let page = std::fs::read_to_string(page).unwrap();
    let rows: Vec<_> = page.lines().filter(|line| line.starts_with('|')).collect();
    for method in METHODS.iter() {
        let (object, verb) = method.name.split_once('.').unwrap();
        let is_row = |row: &&&str| {
            let (first, rest) = row[1..].split_once('|').unwrap();
            let whole = rest.contains(&format!("`{}`", method.name));
            whole || (first.contains(&format!("`{object}`")) && rest.contains(&format!("`{verb}`")))
        };
        assert!(
            rows.iter().any(|row| is_row(&row)),
            "docs/api.md lacks {}",
            method.name
        );
    }
}

/// Generators of clients refuse `true` as a schema.
#[test]
fn no_schema_is_a_boolean() {
    fn check(at: &str, value: &Value) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let is_schema = matches!(&**name, "items" | "schema") || at == "properties";
                    assert!(!is_schema || !value.is_boolean(), "{at}.{name}");
                    check(name, value);
                }
            }
            Value::Array(all) => all.iter().for_each(|value| check(at, value)),
            _ => {}
        }
    }
    check("", docs::openapi());
    check("", docs::openrpc());
}

/// Generators of clients make variables of parameters and fields of properties.
#[test]
fn no_name_is_a_keyword_of_python() {
    const KEYWORDS: [&str; 35] = [
        "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class",
        "continue", "def", "del", "elif", "else", "except", "finally", "for", "from", "global",
        "if", "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return",
        "try", "while", "with", "yield",
    ];
    let document = docs::openrpc();
    let names = |object: &Value| {
        let names = object.as_object().into_iter().flatten();
        names.map(|(name, _)| name.clone()).collect::<Vec<_>>()
    };
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let fields = schemas
        .values()
        .flat_map(|schema| names(&schema["properties"]));
    let methods = METHODS.iter().flat_map(|method| {
        let own = properties(method).0.into_iter().map(|(name, _)| name);
        own.chain(method.name.split('.').map(str::to_owned))
    });
    for name in fields.chain(methods) {
        assert!(!KEYWORDS.contains(&name.as_str()), "{name}");
    }
}
