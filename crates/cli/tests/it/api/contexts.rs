//! Contexts over the API: the roles of the key's actor decide.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::rights::key;
use super::{Server, bearer};
use crate::common::{Ground, eventually, on_both};
use meshwork_test_servers::servers::{RealCluster, RealServer};

/// Context 1 of actor 1 (admin, executor) and 2 (reader); actor 3 is a member of context 2 alone.
fn people(ground: &Ground) {
    ground.run(&["context", "create"]).ok();
    let grant = ["actor", "grant-node", "1", "--scope", "admin"];
    ground.run(&grant).ok();
    for name in ["rob", "eve"] {
        ground
            .run(&["actor", "create", "--key", &format!("{name}.key")])
            .ok();
    }
    ground.run(&["context", "create", "--key", "eve.key"]).ok();
    ground.run(&["context", "grant", "1", "reader", "2"]).ok();
}

/// Calls whose events and audit entries name the key.
fn noted_calls(ground: &Ground, send: &dyn Fn(&str, &str, Value) -> (u16, Value)) {
    let (_, next) = send(
        "POST",
        "/v1/jobs",
        json!({"type": "osis", "script": "1", "context": 1, "depends_on": ["7"], "delay": "1h"}),
    );
    let next = next["id"].as_str().unwrap().to_owned();
    let (status, cancelled) = send(
        "POST",
        &format!("/v1/jobs/{next}/cancel"),
        json!({"context": 1}),
    );
    assert_eq!((status, &cancelled["result"]), (200, &json!("cancelled")));
    let (_, page) = send("GET", "/v1/jobs?context=1", json!({}));
    assert_eq!(page["jobs"].as_array().unwrap().len(), 2, "{page}");
    let (_, events) = send(
        "GET",
        &format!("/v1/jobs/{next}/events?context=1"),
        json!({}),
    );
    assert!(events.to_string().contains("actor 1 api:ann"), "{events}");
    let (status, queue) = send("POST", "/v1/queues/osis/pause", json!({"context": 1}));
    assert_eq!((status, &queue["paused"]), (200, &json!(true)), "{queue}");
    // It is a queue of that context alone.
    assert_eq!(send("GET", "/v1/queues/osis", json!({})).0, 404);
    let (_, queues) = send("GET", "/v1/queues?context=1", json!({}));
    assert!(queues.to_string().contains("osis"), "{queues}");
    let audit = ground.run(&["context", "audit", "1", "--json"]).ok().stdout;
    for what in ["enqueue job", "cancel job", "pause queue"] {
        assert!(audit.contains(what), "{what}: {audit}");
    }
    assert!(audit.contains("actor 1 api:ann"), "{audit}");
}

#[test]
fn jobs_of_contexts_are_those_of_the_keys_actor() {
    on_both(|ground| {
        people(ground);
        let ann = bearer(&key(ground, "ann", &["--scope", "admin", "--actor", "1"]));
        let server = Server::start(ground, &[]);
        let worker = ground.worker(&["--context", "1", "--type", "osis"]);
        let send = |verb: &str, path: &str, body: Value| {
            let answer = server.send(verb, path, &ann, &body.to_string());
            (answer.status, answer.json())
        };
        let job =
            json!({"type": "osis", "script": "6 * 7", "context": 1, "id": "7", "wait": "60s"});
        let (status, made) = send("POST", "/v1/jobs", job.clone());
        assert_eq!(
            (status, &made["job"]["output"]),
            (201, &json!(42)),
            "{made}"
        );
        let id = made["id"].as_str().unwrap().to_owned();
        assert!(id.ends_with("job:1:7"), "{id}");
        // The number makes the call repeatable.
        assert_eq!(send("POST", "/v1/jobs", job).1["id"], json!(id));
        let other = json!({"type": "osis", "script": "1", "context": 1, "id": "7"});
        assert_eq!(send("POST", "/v1/jobs", other).0, 409);
        for name in ["7", "1:7", &id] {
            assert_eq!(
                send("GET", &format!("/v1/jobs/{name}?context=1"), json!({})).1,
                made["job"],
                "{name}"
            );
        }
        assert_eq!(send("GET", "/v1/jobs/7", json!({})).0, 404);
        assert_eq!(
            ground
                .run(&["rpc", "job.get", "{\"id\":\"7\",\"context\":1}"])
                .ok()
                .json(),
            made["job"]
        );
        let keyed = format!("{ann}idempotency-key: k\r\n");
        let body = json!({"type": "osis", "script": "1", "context": 1}).to_string();
        let answer = server.send("POST", "/v1/jobs", &keyed, &body);
        assert_eq!(
            (answer.status, answer.json()["code"].as_str()),
            (400, Some("invalid_params"))
        );
        noted_calls(ground, &send);
        worker.stop();
        server.stop();
    });
}

#[test]
fn objects_of_contexts_are_read_and_made() {
    on_both(|ground| {
        people(ground);
        let server = Server::open(ground);
        let post = |path: &str, body: Value| server.rest("POST", path, &body);
        let get = |path: &str| server.rest("GET", path, &json!({}));
        let (status, context) = get("/v1/contexts/1");
        assert_eq!(
            (status, &context["admins"], &context["readers"]),
            (200, &json!([1]), &json!([2]))
        );
        assert_eq!(
            ground.run(&["context", "show", "1", "--json"]).ok().json(),
            context
        );
        // Context 2 is of another actor.
        let (_, list) = get("/v1/contexts");
        assert_eq!(list["contexts"].as_array().unwrap().len(), 1, "{list}");
        assert_eq!(get("/v1/contexts/2").0, 403);
        assert_eq!(get("/v1/contexts/9").0, 404);
        let (_, actors) = get("/v1/actors");
        assert_eq!(actors["actors"].as_array().unwrap().len(), 3, "{actors}");
        assert_eq!(get("/v1/actors/2").1, actors["actors"][1]);
        assert_eq!(
            ground.run(&["actor", "list", "--json"]).ok().jsons()[1],
            actors["actors"][1]
        );
        let (status, runner) = post(
            "/v1/contexts/1/runners",
            json!({"types": ["osis", "python"], "id": 20}),
        );
        assert_eq!(
            (status, &runner["type"]),
            (200, &json!("osis,python")),
            "{runner}"
        );
        assert_eq!(
            post(
                "/v1/contexts/1/runners",
                json!({"types": ["osis"], "id": 20})
            )
            .0,
            409
        );
        assert_eq!(get("/v1/contexts/1/runners/20").1, runner);
        let mut listed = runner;
        listed["running"] = json!(false);
        listed["waiting"] = json!(0);
        assert_eq!(get("/v1/contexts/1/runners").1["runners"], json!([listed]));
        assert_eq!(
            ground
                .run(&["runner", "list", "--context", "1", "--json"])
                .ok()
                .jsons(),
            [listed]
        );
        messages_are_sent_and_cancelled(&server);
        server.stop();
    });
}

/// With runner 20 in context 1.
fn messages_are_sent_and_cancelled(server: &Server) {
    let post = |path: &str, body: Value| server.rest("POST", path, &body);
    let get = |path: &str| server.rest("GET", path, &json!({}));
    let (status, sent) = post("/v1/contexts/1/messages", json!({"to": 1, "text": "hi"}));
    assert_eq!((status, &sent["id"]), (200, &json!("1:1")), "{sent}");
    let message = eventually("the supervisor delivers it", || {
        let (_, message) = get("/v1/contexts/1/messages/1:1");
        message["mw_stored_at"].is_u64().then_some(message)
    });
    assert_eq!(
        (&message["message"], &message["envelope"]),
        (&json!("hi"), &Value::Null),
        "{message}"
    );
    // Nobody has read it.
    let (status, _) = post("/v1/contexts/1/messages/1:1/cancel", json!({}));
    assert_eq!(status, 200);
    eventually("its target ends it", || {
        let (_, message) = get("/v1/contexts/1/messages/1:1");
        (message["mw_reason"] == "cancelled").then_some(())
    });
    let jobs = json!([{"type": "python", "script": "1"}]);
    for (topic, said) in [("runner20", 200), ("runner99", 400)] {
        let new = json!({"to": 1, "jobs": jobs, "topic": topic});
        let (status, sent) = post("/v1/contexts/1/messages", new);
        assert_eq!(status, said, "{sent}");
    }
    let (_, messages) = get("/v1/contexts/1/messages?limit=1");
    assert_eq!(
        messages["messages"].as_array().unwrap().len(),
        1,
        "{messages}"
    );
}

/// Parameters with which a method reaches its check of a permission.
pub(crate) fn filled(schema: &Value) -> Value {
    let mut params = Map::new();
    for param in schema["params"].as_array().unwrap() {
        let name = param["name"].as_str().unwrap();
        let kinds = &param["schema"]["type"];
        let is_number = kinds.to_string().contains("integer");
        let value = match name {
            "context" | "to" => json!(1),
            "id" if is_number => json!(1),
            "id" => json!("1:1"),
            "script" | "deployed" => json!("x"),
            "from_jobs" => json!(["x"]),
            "types" => json!(["osis"]),
            "wait" => json!("10ms"),
            "type" | "queue" if param["required"] == true => json!("osis"),
            _ if param["required"] == true => json!("x"),
            _ => continue,
        };
        params.insert(name.to_owned(), value);
    }
    Value::Object(params)
}

/// Sends the parameters as REST has them.
pub(super) fn rest(
    server: &Server,
    operation: &(String, String),
    params: &Value,
    head: &str,
) -> u16 {
    let (verb, path) = operation;
    let mut rest = params.as_object().unwrap().clone();
    let mut path: String = path
        .split('{')
        .enumerate()
        .map(|(at, part)| match part.split_once('}') {
            Some((name, after)) if at > 0 => {
                let value = rest.remove(name).unwrap();
                format!(
                    "{}{after}",
                    value.as_str().map_or(value.to_string(), str::to_owned)
                )
            }
            _ => part.to_owned(),
        })
        .collect();
    if verb == "GET" || verb == "DELETE" {
        let query: Vec<_> = rest
            .iter()
            .map(|(name, value)| format!("{name}={}", value.to_string().trim_matches('"')))
            .collect();
        path = format!("{path}?{}", query.join("&"));
    }
    server
        .send(verb, &path, head, &Value::Object(rest).to_string())
        .status
}

/// The verb and path of each method.
pub(super) fn paths_of(openapi: &Value) -> HashMap<String, (String, String)> {
    let mut paths = HashMap::new();
    for (path, verbs) in openapi["paths"].as_object().unwrap() {
        for (verb, operation) in verbs.as_object().unwrap() {
            let name = operation["operationId"].as_str().unwrap().to_owned();
            paths.insert(name, (verb.to_uppercase(), path.clone()));
        }
    }
    paths
}

fn is_of_contexts(method: &Value, paths: &HashMap<String, (String, String)>) -> bool {
    let name = method["name"].as_str().unwrap();
    let objects = ["flow.", "context.", "actor.", "runner.", "message."];
    let params = method["params"].as_array().unwrap();
    let has = params.iter().any(|param| param["name"] == "context");
    // Those of keys are about the caller, also with a context.
    let is_known = paths.contains_key(name) && !name.starts_with("key.");
    is_known && (has || objects.iter().any(|object| name.starts_with(object)))
}

#[test]
fn each_method_of_contexts_asks_for_a_role() {
    on_both(|ground| {
        people(ground);
        let head = |name: &str, words: &[&str]| bearer(&key(ground, name, words));
        let ann = head("ann", &["--scope", "admin", "--actor", "1"]);
        let narrow = head("narrow", &["--scope", "viewer", "--actor", "1"]);
        let reader = head("rob", &["--scope", "admin", "--actor", "2"]);
        let refused = [
            head("none", &["--scope", "admin"]),
            head("eve", &["--scope", "admin", "--actor", "3"]),
        ];
        let server = Server::start(ground, &[]);
        let document = server.rpc("rpc.discover", &json!({}), &ann)["result"].clone();
        let openapi = server.send("GET", "/v1/openapi.json", &ann, "").json();
        let paths = paths_of(&openapi);
        let methods: Vec<_> = document["methods"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|method| is_of_contexts(method, &paths))
            .collect();
        assert!(methods.len() > 35, "{}", methods.len());
        for method in methods {
            let (name, params) = (method["name"].as_str().unwrap(), filled(method));
            let code = |head: &str| server.rpc(name, &params, head)["error"]["code"].as_i64();
            let rest = |head: &str| rest(&server, &paths[name], &params, head);
            for head in &refused {
                // Anybody who is an actor may list the contexts that he may read, and their actors.
                let expected = match name {
                    "context.list" | "actor.list" if head == &refused[1] => None,
                    "actor.get" if head == &refused[1] => Some(-32004),
                    _ => Some(-32003),
                };
                assert_eq!(code(head), expected, "{name} {params}");
                assert_eq!(rest(head) == 403, expected == Some(-32003), "{name}");
            }
            let scope = method["description"]
                .as_str()
                .unwrap()
                .split('`')
                .nth(1)
                .unwrap();
            assert_eq!(code(&narrow) == Some(-32003), scope != "viewer", "{name}");
            // A reader reads and chats, and changes nothing; an approval may name him, but this flow does not exist.
            let expected = match name {
                "flow.approve" | "flow.reject" => Some(-32004),
                "message.create" => None,
                _ => (scope != "viewer").then_some(-32003),
            };
            match expected {
                Some(_) => assert_eq!(code(&reader), expected, "{name}"),
                None => assert_ne!(code(&reader), Some(-32003), "{name}"),
            }
            assert_ne!(code(&ann), Some(-32003), "{name} {params}");
            let status = rest(&ann);
            assert!(status != 403 && status < 500, "{name}: {status}");
            let done = ground.run(&["rpc", name, &params.to_string()]);
            let error = server.rpc(name, &params, &ann)["error"]["message"].clone();
            if let Some(error) = error.as_str().filter(|_| scope == "viewer") {
                assert!(
                    done.stderr.contains(error),
                    "{name}: {} {error}",
                    done.stderr
                );
            }
        }
        let audit = ground
            .run(&["context", "audit", "1", "--json", "--refused"])
            .ok()
            .stdout;
        assert!(audit.contains("actor 2 api:rob"), "{audit}");
        server.stop();
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn contexts_of_a_cluster_are_served() {
    let Some(cluster) = RealCluster::start(RealServer::redis(), 0).await else {
        return;
    };
    let ground = Ground::url(cluster.url());
    let tag = ["--namespace", "{hero}"];
    for _ in 0..3 {
        let create = [&["context", "create"], &tag[..]].concat();
        ground.run(&create).ok();
    }
    let server = Server::start(&ground, &[&tag[..], &["--insecure-no-auth"]].concat());
    let (_, contexts) = server.rest("GET", "/v1/contexts", &json!({}));
    assert_eq!(
        contexts["contexts"].as_array().map(Vec::len),
        Some(3),
        "{contexts}"
    );
    for path in ["/v1/actors", "/v1/flows?context=2", "/v1/jobs?context=3"] {
        let (status, problem) = server.rest("GET", path, &json!({}));
        assert_eq!(status, 200, "{path}: {problem}");
    }
    server.stop();
}

/// No server has a database of such a number, and each refuses it in its own words.
#[test]
fn a_number_beyond_all_databases_is_no_context() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
    let document: Value = serde_json::from_str(&std::fs::read_to_string(page).unwrap()).unwrap();
    let paths = document["paths"].as_object().unwrap();
    on_both(|ground| {
        people(ground);
        let server = Server::open(ground);
        let mut tried = 0;
        for number in ["2147483648", "2713623236", "4294967295"] {
            for (path, verbs) in paths {
                let params = verbs["get"]["parameters"].as_array();
                let named = params.into_iter().flatten();
                let takes = named.clone().any(|it| it["name"] == "context");
                if !takes && path != "/v1/contexts/{id}" {
                    continue;
                }
                let filled = match takes {
                    true => path.replace("{context}", number).replace("{id}", "7:7"),
                    false => path.replace("{id}", number),
                };
                let filled = filled
                    .replace("/flows/7:7", "/flows/7")
                    .replace("/runners/7:7", "/runners/7");
                let mut filled = filled.replace("{queue}", "osis");
                if !path.contains("{context}") && takes {
                    filled += &format!("?context={number}");
                }
                let (status, problem) = server.rest("GET", &filled, &json!({}));
                assert_eq!(
                    (status, &problem["code"]),
                    (404, &json!("not_found")),
                    "{filled}: {problem}"
                );
                tried += 1;
            }
        }
        assert!(tried >= 39, "{tried}");
        server.stop();
    });
}
