//! A tenant's key: every operation of the API works in its only context, or is refused.

use std::collections::BTreeMap;

use meshwork_server::api::{Dialect, HERO};
use meshwork_test_servers::plain::Plain;
use serde_json::{Value, json};

use super::contexts::{filled, paths_of, rest};
use super::socket::open_at;
use super::sse::{Events, refused};
use super::{Server, bearer};
use crate::common::Ground;

pub(crate) fn key(ground: &Ground, name: &str, words: &[&str]) -> String {
    let made = ground.run(&[&["key", "create", name], words].concat()).ok();
    made.stdout.trim().to_owned()
}

/// Context 1 of actor 1, and context 2 of actor 2, who is an admin of both. What is outside of context 2 has the name `node-…`, or
/// the mark `not-ours`.
pub(crate) fn tenants(ground: &Ground) {
    ground.file("outside.py", "print('not-ours')");
    for words in [
        &["context", "create", "--layout", "prefix"][..],
        &["actor", "create", "--key", "tenant.key"],
        &[
            "context",
            "create",
            "--layout",
            "prefix",
            "--key",
            "tenant.key",
        ],
        &["context", "grant", "1", "admin", "2"],
        &["actor", "grant-node", "2", "--scope", "admin"],
        &[
            "job",
            "enqueue",
            "outside.py",
            "--tag",
            "not-ours",
            "--id",
            "node-job",
            "--delay",
            "1h",
        ],
        &[
            "job",
            "enqueue",
            "outside.py",
            "--tag",
            "not-ours",
            "--context",
            "1",
            "--delay",
            "1h",
        ],
        &[
            "schedule",
            "add",
            "node-schedule",
            "--every",
            "1h",
            "outside.py",
        ],
        &[
            "queue",
            "limit",
            "set",
            "node-queue",
            "--concurrency",
            "3",
            "--create",
        ],
        &[
            "key", "create", "node-key", "--scope", "admin", "--actor", "1",
        ],
    ] {
        ground.run(words).ok();
    }
}

/// Records and lists outside of context 2 that no supervisor changes by itself within an hour.
fn outside(plain: &mut Plain) -> BTreeMap<String, Vec<u8>> {
    let kinds = [
        "hero:job:",
        "hero:q:api_keys",
        "hero:q:config",
        "hero:q:delayed",
        "hero:q:schedule",
        "actor:",
        "mw:actors",
        "mw:audit",
        "mw:contexts",
        "{ctx:1}:context:",
        "{ctx:1}:job:",
        "{ctx:1}:mw:audit",
        "{ctx:1}:mw:config",
        "{ctx:1}:mw:delayed",
        "{ctx:1}:mw:id",
        "{ctx:1}:mw:index",
    ];
    let keys: Vec<String> = plain.ask(&["KEYS", "*"]).unwrap();
    let is_kept = |key: &String| kinds.iter().any(|kind| key.starts_with(kind));
    keys.into_iter()
        .filter(is_kept)
        .map(|key| {
            let value = plain.ask(&["DUMP", &key]).unwrap();
            (key, value)
        })
        .collect()
}

/// Returns true for a text that has something from outside of context 2.
pub(crate) fn is_outside(text: &str) -> bool {
    ["not-ours", "node-job", "node-queue", "node-schedule"]
        .iter()
        .any(|mark| text.contains(mark))
}

/// Parameters of a method in all ways to name what is outside of context 2, and in none.
fn attempts(method: &Value) -> Vec<Value> {
    let mut own = filled(method);
    own.as_object_mut().unwrap().remove("context");
    let has = |name: &str| {
        let mut params = method["params"].as_array().unwrap().iter();
        params.any(|param| param["name"] == name)
    };
    let mut all = vec![own.clone()];
    let mut with = |name: &str, value: Value| {
        let mut params = own.clone();
        params[name] = value;
        all.push(params);
    };
    if has("context") {
        with("context", json!(1));
    }
    if has("spread") {
        with("spread", json!(true));
    }
    if has("queue") {
        with("queue", json!("{ctx:1}:queue:osis"));
    }
    // A queue has its name in each context.
    for name in ["id", "name", "job", "parent", "actor", "worker"]
        .into_iter()
        .filter(|name| has(name))
    {
        for value in [
            "node-job",
            "{ctx:1}:job:1:1",
            "node-queue",
            "node-schedule",
            "node-key",
            "1",
        ] {
            with(name, json!(value));
        }
        with(name, json!(1));
    }
    all
}

#[test]
fn a_tenants_key_calls_each_method_in_its_context_alone() {
    let Some(ground) = Ground::redis() else {
        return;
    };
    tenants(&ground);
    let root = bearer(&key(&ground, "not-ours-root", &["--scope", "admin"]));
    let words = ["--scope", "admin", "--context", "2", "--actor", "2"];
    let tenant = bearer(&key(&ground, "tenant", &words));
    let server = Server::start(&ground, &[]);
    let document = server.rpc("rpc.discover", &json!({}), &root)["result"].clone();
    let openapi = server.send("GET", "/v1/openapi.json", &root, "").json();
    let paths = paths_of(&openapi);
    let before = outside(&mut ground.plain());
    assert!(before.len() > 10, "{:?}", before.keys());
    let (mut own, mut forbidden) = (0, 0);
    for method in document["methods"].as_array().unwrap() {
        let name = method["name"].as_str().unwrap();
        for params in attempts(method) {
            let answer = server.rpc(name, &params, &tenant);
            if let Some(result) = answer.get("result") {
                own += 1;
                // The document has words alone.
                let is_read = name != "rpc.discover" && is_outside(&result.to_string());
                assert!(!is_read, "{name} {params}: {result}");
            }
            forbidden += usize::from(answer["error"]["code"] == -32003);
            if paths.contains_key(name) && params.get("context").is_some() {
                let status = rest(&server, &paths[name], &params, &tenant);
                assert!((400..500).contains(&status), "{name} {params}: {status}");
            }
        }
    }
    assert!(
        own > 12 && forbidden > 50,
        "{own} own, {forbidden} forbidden"
    );
    assert_eq!(outside(&mut ground.plain()), before);
    // The same look does find what is there, with a key that may.
    for (name, params) in [
        ("job.list", json!({})),
        ("schedule.list", json!({})),
        ("key.list", json!({})),
    ] {
        let answer = server.rpc(name, &params, &root)["result"].to_string();
        assert!(is_outside(&answer), "{name}: {answer}");
    }
    hero_names_are_refused(&server, &tenant);
    pages_are_those_of_the_context(&server, &tenant);
    assert_eq!(outside(&mut ground.plain()), before);
    streams_are_those_of_the_context(&ground, &server, &tenant);
    server.stop();
}

/// Names of Hero's APIs work outside of contexts, or name a context.
fn hero_names_are_refused(server: &Server, tenant: &str) {
    let of_caller = [
        "fetch_nonce",
        "authenticate",
        "whoami",
        "auth.verify",
        "auth.create_key",
    ];
    for method in HERO
        .iter()
        .filter(|method| !of_caller.contains(&method.name))
    {
        let wrapped = json!({"id": 1, "context_id": 1, "script": "1", "script_type": "osis", "jobs": [1],
            "message": "x", "pubkey": ""});
        let params = match method.dialect {
            Dialect::Coordinator => json!({"params": wrapped}),
            _ => {
                json!({"job_id": "node-job", "job": {"script": "1", "script_type": "osis"}, "script": "1", "name": "x"})
            }
        };
        let answer = server.rpc(method.name, &params, tenant);
        let code = answer["error"]["code"].as_i64();
        // The reading of an actor tells nothing about those who are in no context of the key.
        let expected = if method.name == "actor.load" {
            -32004
        } else {
            -32003
        };
        assert_eq!(code, Some(expected), "{}: {answer}", method.name);
    }
    assert_eq!(
        server.rpc("whoami", &json!([]), tenant)["result"]["scope"],
        Value::Null
    );
    let info = server.rpc("system.info", &json!({}), tenant)["result"].clone();
    assert_eq!(
        (&info["context"], &info["node_scope"]),
        (&json!(2), &Value::Null)
    );
}

fn streams_are_those_of_the_context(ground: &Ground, server: &Server, tenant: &str) {
    for path in [
        "/metrics",
        "/v1/events?context=1",
        "/v1/jobs/%7Bctx:1%7D:job:1:1/logs?follow=true",
    ] {
        assert_eq!(refused(server, path, tenant), 403, "{path}");
    }
    let mut events = Events::open(server, "/v1/events", tenant);
    let mut socket = open_at(server, "rpc", tenant).ok().unwrap();
    let other = json!({"topic": "events", "context": 1});
    assert_eq!(socket.call("subscribe", &other)["error"]["code"], -32003);
    socket.subscribe(&json!({"topic": "events"}));
    // One of the calls before may have begun its drain.
    let resumed = server.rpc("queue.resume", &json!({"queue": "osis"}), tenant);
    let is_unused = resumed["error"]["code"] == -32004;
    assert!(resumed.get("result").is_some() || is_unused, "{resumed}");
    ground
        .run(&["job", "enqueue", "outside.py", "--id", "node-job-2"])
        .ok();
    let made = server.rpc(
        "job.create",
        &json!({"type": "osis", "script": "1", "id": "77"}),
        tenant,
    );
    let id = made["result"]["id"]
        .as_str()
        .unwrap_or_else(|| panic!("{made}"));
    assert_eq!(id, "{ctx:2}:job:2:77");
    let first = events.until(id, "enqueue");
    assert!(
        first.iter().all(|event| event.data["job"] == id),
        "{first:?}"
    );
    let first = socket.next();
    assert_eq!(first["params"]["item"]["job"], id, "{first}");
}

fn pages_are_those_of_the_context(server: &Server, tenant: &str) {
    let get = |path: &str| server.send("GET", path, tenant, "");
    for path in [
        "/ui/",
        "/ui/jobs?state=delayed",
        "/ui/jobs?state=ended",
        "/ui/job?id=node-job",
        "/ui/queues",
        "/ui/queue?queue=node-queue",
        "/ui/workers",
        "/ui/dead",
        "/ui/schedules",
        "/ui/schedules?name=node-schedule",
        "/ui/flows",
        "/ui/flow?id=1",
        "/ui/batch?id=b",
        "/ui/search?q=job",
        "/ui/search?q=1%3A1",
        "/ui/live?topic=job:x&context=1",
        "/ui/log?id=1:1&context=1",
    ] {
        let (came, there) = (
            get(path),
            format!(
                "{path}{}context=1",
                if path.contains('?') { '&' } else { '?' }
            ),
        );
        assert!(
            !is_outside(&came.body) || path.contains("node-"),
            "{path}: {}",
            came.body
        );
        let came = get(&there);
        assert!(
            came.status >= 400 || path.contains("search") || path.contains("flows"),
            "{there}: {}",
            came.body
        );
        assert!(!came.body.contains("ctx:1"), "{there}: {}", came.body);
    }
    let own = get("/ui/jobs?state=ended");
    assert!(
        own.status == 200 && !own.body.contains("No context"),
        "{}",
        own.body
    );
    let none = server.send(
        "POST",
        "/ui/do/job.cancel",
        &format!("{tenant}sec-fetch-site: same-origin\r\n"),
        "id=node-job",
    );
    assert!(none.status >= 400, "{}", none.body);
}
