//! Every method that reads has the same answer by the command on the store, by JSON-RPC and by REST.

use std::collections::BTreeMap;

use meshwork_server::api::{HttpVerb, METHODS, Method};
use meshwork_test_servers::servers::RealServer;
use serde_json::Value;

use super::{Server, bearer};
use crate::common::{Ground, eventually, json as of_line};

/// A call of each method that reads. In context 1 there is all that contexts have.
const READS: [(&str, &str); 39] = [
    ("actor.get", r#"{"id":1}"#),
    ("actor.list", "{}"),
    ("batch.get", r#"{"id":"b"}"#),
    ("batch.list", "{}"),
    ("context.get", r#"{"id":1}"#),
    ("context.list", "{}"),
    ("dead.get", r#"{"id":"failed"}"#),
    ("dead.groups", "{}"),
    ("dead.list", r#"{"limit":1}"#),
    ("flow.dag", r#"{"id":1,"context":1}"#),
    ("flow.deployed", r#"{"context":1}"#),
    ("flow.get", r#"{"id":1,"context":1}"#),
    ("flow.list", r#"{"context":1}"#),
    ("flow.logs", r#"{"id":1,"context":1}"#),
    ("job.events", r#"{"id":"failed"}"#),
    ("job.ids", r#"{"id":"fail"}"#),
    ("job.get", r#"{"id":"failed"}"#),
    ("job.list", r#"{"state":"failed"}"#),
    ("job.logs", r#"{"id":"failed"}"#),
    ("job.result", r#"{"id":"failed"}"#),
    ("job.source", r#"{"id":"failed"}"#),
    ("job.why", r#"{"id":"late"}"#),
    ("key.list", "{}"),
    ("message.get", r#"{"id":"1:1","context":1}"#),
    ("message.list", r#"{"context":1}"#),
    ("queue.alert", r#"{"queue":"osis"}"#),
    ("queue.get", r#"{"queue":"osis"}"#),
    ("queue.history", r#"{"queue":"osis"}"#),
    ("queue.list", "{}"),
    ("queue.parts", r#"{"queue":"python"}"#),
    ("queue.spreads", "{}"),
    ("rpc.discover", "{}"),
    ("runner.get", r#"{"id":1,"context":1}"#),
    ("runner.list", r#"{"context":1}"#),
    ("schedule.get", r#"{"name":"s"}"#),
    ("schedule.list", "{}"),
    ("worker.list", "{}"),
    ("system.info", "{}"),
    ("migration.list", "{}"),
];

/// Fields that differ from call to call, or by who asks.
const PASSING: [&str; 9] = [
    "age_ms",
    "by",
    "uptime_ms",
    "now",
    "scope",
    "actor",
    "key",
    "time",
    "last_used_at",
];

/// Returns an answer without what passes.
fn lasting(mut answer: Value) -> Value {
    match &mut answer {
        Value::Object(fields) => {
            fields.retain(|name, _| !PASSING.contains(&name.as_str()));
            for (_, value) in fields.iter_mut() {
                *value = lasting(value.take());
            }
        }
        Value::Array(items) => {
            for item in items {
                *item = lasting(item.take());
            }
        }
        _ => {}
    }
    answer
}

/// Returns the path of a call with its parameters.
fn path(method: &Method, params: &BTreeMap<String, Value>) -> String {
    let mut path = method.path.to_owned();
    let mut query = Vec::new();
    for (name, value) in params {
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        let place = format!("{{{name}}}");
        match path.contains(&place) {
            true => path = path.replace(&place, &text),
            false => query.push(format!("{name}={text}")),
        }
    }
    format!("{path}?{}", query.join("&"))
}

/// Makes one of everything.
fn prepare(ground: &Ground) {
    ground.file("a.rhai", "1");
    ground.file("fails.rhai", "print(\"hello\"); throw 1");
    ground.file(
        "f.yaml",
        "flow: f\njobs:\n  one: {script: '1', type: osis}\n",
    );
    for args in [
        "context create",
        "actor grant-node 1 --scope admin",
        "job enqueue fails.rhai --id failed",
        "job enqueue a.rhai --id late --delay 1h",
        "batch create --id b --open-for 1h",
        "schedule add s a.rhai --every 1h",
        "queue alert set osis --after 3 --job a.rhai",
        "queue spread python --parts 1",
        "flow submit f.yaml --context 1",
        "flow deploy f.yaml --context 1",
        "message send 1 hello --context 1",
        "runner register --type osis --context 1",
    ] {
        let words: Vec<_> = args.split(' ').collect();
        ground.run(&words).ok();
    }
    let worker = ground.worker(&["--type", "osis"]);
    ground.run(&["job", "wait", "failed"]).exits(1);
    worker.stop();
}

#[test]
fn each_method_that_reads_answers_the_same() {
    let Some(store) = RealServer::redis().start() else {
        return;
    };
    let ground = &Ground::url(store.url());
    prepare(ground);
    let reads = METHODS.iter().filter(|method| method.verb == HttpVerb::Get);
    let missing: Vec<_> = reads
        .map(|method| method.name)
        .filter(|name| !READS.iter().any(|(known, _)| known == name))
        .collect();
    assert!(missing.is_empty(), "add a call of {missing:?}");
    let made = ["key", "create", "k", "--scope", "admin", "--actor", "1"];
    let key = bearer(ground.run(&made).ok().stdout.trim());
    let server = Server::start(ground, &[]);
    eventually("the store was scanned", || {
        let list = server.rpc("queue.list", &Value::Object(Default::default()), &key);
        list["result"]["queues"]
            .as_array()
            .filter(|it| !it.is_empty())
            .map(|_| ())
    });
    for (name, params) in READS {
        let method = meshwork_server::api::find(name).unwrap();
        let given: BTreeMap<String, Value> = serde_json::from_str(params).unwrap();
        let near = of_line(&ground.run(&["rpc", name, params, "--json"]).ok().stdout);
        let called = server.rpc(name, &serde_json::to_value(&given).unwrap(), &key);
        let rest = server.send("GET", &path(method, &given), &key, "");
        let [near, called, rest] = [near, called["result"].clone(), rest.json()].map(lasting);
        assert_eq!(near, called, "{name} on the store, and by JSON-RPC");
        assert_eq!(rest, called, "{name} by REST, and by JSON-RPC");
    }
    server.stop();
}
