//! Jobs over the API.

use serde_json::{Value, json};

use super::Server;
use crate::common::{Ground, eventually, on_all_data};

on_all_data! {
    fn a_job_runs_and_is_seen_alike_on_all_ways(ground: &Ground) {
        let server = Server::open(ground);
        let worker = ground.worker(&["--type", "osis"]);
        let (status, made) = server.rest("POST", "/v1/jobs", &json!({"type": "osis", "script": "6 * 7", "id": "a-1", "wait": "60s"}));
        assert_eq!((status, &made["job"]["output"]), (201, &json!(42)), "{made}");
        let (status, read) = server.rest("GET", "/v1/jobs/a-1", &json!({}));
        assert_eq!((status, &read), (200, &made["job"]));
        assert_eq!(server.rpc("job.get", &json!({"id": "a-1"}), "")["result"], read);
        assert_eq!(ground.run(&["rpc", "job.get", "{\"id\":\"a-1\"}"]).ok().json(), read);
        let shown = ground.run(&["job", "show", "a-1", "--json"]).ok().json();
        for name in ["id", "status", "output", "type", "attempts", "worker", "ended_at"] {
            assert_eq!(shown[name], read[name], "{name}");
        }
        let (status, page) = server.rest("GET", "/v1/jobs?type=osis&limit=5", &json!({}));
        assert_eq!((status, page["jobs"].as_array().unwrap().len(), &page["next"]), (200, 1, &Value::Null));
        let (status, failed) = server.rest("POST", "/v1/jobs/run", &json!({"type": "osis", "script": "throw \"boom\""}));
        assert_eq!((status, &failed["status"]), (200, &json!("error")), "{failed}");
        let id = failed["id"].as_str().unwrap();
        let (status, dead) = server.rest("GET", "/v1/dead", &json!({}));
        assert_eq!((status, &dead["letters"][0]["id"]), (200, &json!(id)), "{dead}");
        let (status, retried) = server.rest("POST", &format!("/v1/dead/{id}/retry"), &json!({}));
        assert_eq!((status, &retried["result"]), (200, &json!("queued")));
        let queue = eventually("the queue is found", || {
            let (_, list) = server.rest("GET", "/v1/queues", &json!({}));
            let queues = list["queues"].as_array()?.clone();
            queues.into_iter().find(|queue| queue["queue"].as_str().unwrap().ends_with(":osis"))
        });
        assert_eq!(queue["limit"], Value::Null);
        worker.stop();
        server.stop();
    }

    /// The command and all methods give the same warnings.
    fn what_no_worker_runs_is_stored_with_a_warning(ground: &Ground) {
        let server = Server::open(ground);
        let _worker = ground.worker(&["--type", "osis"]);
        ground.file("a.txt", "1");
        for (job, words, warnings) in [
            (
                json!({"type": "pythn", "script": "1"}),
                &["--type", "pythn"][..],
                json!(["no worker runs jobs of type `pythn` now; they wait in pythn for one"]),
            ),
            (
                json!({"type": "osis", "script": "1", "group": "nope"}),
                &["--type", "osis", "--group", "nope"],
                json!(["no worker of the group `nope` runs jobs of type `osis` now; they wait in osis:group:nope for one"]),
            ),
            (json!({"type": "osis", "script": "1"}), &["--type", "osis"], Value::Null),
        ] {
            let (status, made) = server.rest("POST", "/v1/jobs", &job);
            assert_eq!((status, &made["warnings"]), (201, &warnings), "{made}");
            let printed = ground.run(&[&["enqueue", "a.txt", "--json"][..], words].concat()).ok().json();
            assert_eq!(printed["warnings"], warnings);
            let schedule = json!({"every": "1h", "job": job});
            let (status, made) = server.rest("PUT", "/v1/schedules/s", &schedule);
            assert_eq!((status, &made["warnings"]), (200, &warnings), "{made}");
            let add = ["schedule", "add", "s", "a.txt", "--every", "1h", "--replace", "--json"];
            let words = [&add[..], words].concat();
            assert_eq!(ground.run(&words).ok().json()["warnings"], warnings);
            let (_, batch) = server.rest("POST", "/v1/batches", &json!({"on_done": job}));
            assert_eq!(batch["warnings"], warnings, "{batch}");
            let path = format!("/v1/batches/{}/jobs", batch["id"].as_str().unwrap());
            let (_, added) = server.rest("POST", &path, &json!({"jobs": [job, job]}));
            assert_eq!(added["warnings"], warnings, "{added}");
        }
        server.stop();
    }

    /// One form of a job in all of them: durations with units, any value as input, debounce, and topics.
    fn a_job_has_the_same_fields_in_lines_and_calls(ground: &Ground) {
        ground.file("bindings.yaml", "bindings:\n  - {route: eu, topic: 'orders.eu.#'}\n");
        let server = Server::start(ground, &["--insecure-no-auth", "--bindings", "bindings.yaml"]);
        let job = json!({"type": "osis", "script": "INPUT", "input": {"a": [1.50]}, "timeout": "90s", "backoff": 0.5,
            "topic": "orders.eu.new", "debounce": "save=1h", "sandbox": "strict", "tags": ["t"], "caller_context": "c"});
        let of = |id: &str| {
            let mut job = job.clone();
            job["id"] = id.into();
            job
        };
        ground.file("jobs", of("line").to_string());
        ground.run(&["enqueue", "--jsonl", "jobs", "--bindings", "bindings.yaml"]).ok();
        let (status, made) = server.rest("POST", "/v1/jobs", &of("call"));
        assert_eq!(status, 201, "{made}");
        let (_, batch) = server.rest("POST", "/v1/batches", &json!({}));
        let path = format!("/v1/batches/{}/jobs", batch["id"].as_str().unwrap());
        let (status, added) = server.rest("POST", &path, &json!({"jobs": [of("batch")]}));
        assert_eq!(status, 201, "{added}");
        for id in ["line", "call", "batch"] {
            let job = ground.run(&["show", id, "--json"]).ok().json();
            assert_eq!((&job["group"], &job["timeout"]), (&json!("eu"), &json!(90)), "{job}");
            assert_eq!((&job["input"], &job["caller_context"]), (&json!("{\"a\":[1.5]}"), &json!("c")), "{job}");
            assert_eq!((&job["tags"], &job["requested_sandbox"]), (&json!(["t"]), &json!("strict")), "{job}");
            assert!(job["unique"].as_str().unwrap().ends_with("osis:save"), "{job}");
            // The last one of a name replaces the others.
            assert_eq!(job["state"], if id == "batch" { "delayed" } else { "cancelled" }, "{job}");
        }
        let schema = ground.run(&["job", "schema"]).ok().stdout;
        let schema: Value = serde_json::from_str(&schema).unwrap();
        let fields = job.as_object().unwrap().keys();
        assert!(fields.into_iter().all(|name| schema["properties"].get(name).is_some()), "{schema}");
        server.stop();
    }

    fn a_repeated_request_creates_one_job(ground: &Ground) {
        let server = Server::open(ground);
        let body = json!({"type": "osis", "script": "1", "id": "b-1"});
        let first = server.rest("POST", "/v1/jobs", &body);
        assert_eq!(first, server.rest("POST", "/v1/jobs", &body));
        let (status, other) = server.rest("POST", "/v1/jobs", &json!({"type": "osis", "script": "2", "id": "b-1"}));
        assert_eq!((status, &other["code"]), (409, &json!("conflict")));
        let keyed = |key: &str, script: &str| {
            let body = json!({"type": "osis", "script": script}).to_string();
            let answer = server.send("POST", "/v1/jobs", &format!("idempotency-key: {key}\r\n"), &body);
            (answer.status, answer.json()["id"].clone())
        };
        let (status, id) = keyed("k-1", "1");
        assert_eq!(status, 201);
        assert_eq!((keyed("k-1", "1"), keyed("\"k-1\"", "1")), ((201, id.clone()), (201, id.clone())));
        assert_eq!(keyed("k-1", "2").0, 409);
        assert_ne!(keyed("k-2", "1").1, id);
        let call = |key: &str, method: &str, params: Value| server.rpc(method, &params, &format!("idempotency-key: {key}\r\n"));
        let again = call("k-1", "job.create", json!({"type": "osis", "script": "1"}));
        assert_eq!(again["result"]["id"], id, "{again}");
        let other = call("k-1", "job.create", json!({"type": "osis", "script": "2"}));
        assert!(other["error"]["message"].as_str().unwrap().contains("with other parameters"), "{other}");
        // A key is never ignored.
        for (method, params) in [
            ("batch.create", json!({})),
            ("job.cancel", json!({"id": id})),
            ("queue.pause", json!({"queue": "osis"})),
            ("create_job", json!({"script": "1", "script_type": "osis"})),
        ] {
            let refused = call("k-1", method, params);
            let message = format!("Idempotency-Key: {method} takes none");
            assert!(refused["error"]["message"].as_str().unwrap().starts_with(&message), "{refused}");
        }
        let batch = server.send("POST", "/rpc", "idempotency-key: k-1\r\n", "[]");
        assert_eq!((batch.status, &batch.json()["code"]), (400, &json!("invalid_params")));
        assert_eq!(server.send("GET", "/v1/jobs", "idempotency-key: k-1\r\n", "").status, 200);
        assert_eq!(ground.jobs().len(), 3);
        // A job that nobody runs is not awaited for ever, and goes on.
        let (status, late) = server.rest("POST", "/v1/jobs", &json!({"type": "osis", "script": "1", "wait": 0.05}));
        assert_eq!((status, &late["job"]), (202, &Value::Null));
        let path = format!("/v1/jobs/{}", late["id"].as_str().unwrap());
        let (status, timeout) = server.rest("GET", &format!("{path}/result?wait=50ms"), &json!({}));
        assert_eq!((status, &timeout["code"]), (408, &json!("timeout")));
        let (status, cancelled) = server.rest("POST", &format!("{path}/cancel"), &json!({}));
        assert_eq!((status, &cancelled["result"]), (200, &json!("cancelled")));
        assert_eq!(server.rest("DELETE", &path, &json!({})).0, 200);
        assert_eq!(server.rest("GET", &path, &json!({})).0, 404);
        server.stop();
    }

    fn a_batch_whose_id_is_in_use_is_the_same_one_or_a_conflict(ground: &Ground) {
        let server = Server::open(ground);
        let done = json!({"type": "osis", "script": "1", "id": "then"});
        let body = json!({"id": "nightly", "name": "n", "on_done": done});
        let first = server.rest("POST", "/v1/batches", &body);
        assert_eq!((first.0, &first.1["id"]), (201, &json!("nightly")));
        assert_eq!(server.rest("POST", "/v1/batches", &body), first);
        let other_job = json!({"type": "osis", "script": "2", "id": "then"});
        for other in [
            json!({"id": "nightly"}),
            json!({"id": "nightly", "name": "m", "on_done": done}),
            json!({"id": "nightly", "name": "n", "on_done": other_job}),
        ] {
            let (status, refused) = server.rest("POST", "/v1/batches", &other);
            let message = "there is a batch nightly already, made with other parameters";
            assert_eq!((status, &refused["detail"]), (409, &json!(message)));
        }
        assert_eq!(server.rest("GET", "/v1/batches/nightly", &json!({})).1, first.1);
        // One that was made without the API cannot be compared.
        ground.run(&["batch", "create", "--id", "mine"]).ok();
        assert_eq!(server.rest("POST", "/v1/batches", &json!({"id": "mine"})).0, 409);
        server.stop();
    }

    fn bad_requests_name_their_fault(ground: &Ground) {
        let server = Server::open(ground);
        for (verb, path, body, status, part) in [
            ("POST", "/v1/jobs", "{", 400, "no JSON object"),
            ("POST", "/v1/jobs", "[]", 400, "no JSON object"),
            ("POST", "/v1/jobs", "{}", 400, "type"),
            ("POST", "/v1/jobs", "{\"type\":\"osis\"}", 400, "script"),
            ("POST", "/v1/jobs", "{\"type\":\"osis\",\"script\":\"1\",\"colour\":1}", 400, "colour"),
            ("POST", "/v1/jobs", "{\"type\":\"o s\",\"script\":\"1\"}", 400, "type"),
            ("POST", "/v1/jobs", "{\"type\":\"osis\",\"script\":\"1\",\"delay\":\"soon\"}", 400, "seconds"),
            ("POST", "/v1/jobs", "{\"type\":\"osis\",\"script\":\"1\",\"retries\":\"3\"}", 400, "retries: "),
            ("POST", "/v1/jobs", "{\"type\":\"osis\",\"script\":\"1\",\"id\":\"..\"}", 400, "step of a path"),
            ("POST", "/v1/jobs", "{\"type\":\"osis\",\"script\":\"1\",\"id\":\".\"}", 400, "step of a path"),
            ("POST", "/v1/jobs", "{\"type\":\"osis\",\"script\":\"1\",\"id\":\"\"}", 400, "empty"),
            ("POST", "/v1/jobs", "{\"type\":\"osis\",\"script\":\"1\",\"id\":\"%2e%2e\"}", 400, "'%'"),
            ("POST", "/v1/jobs/x/cancel?id=y", "{}", 400, "twice"),
            ("POST", "/v1/queues/emials/pause", "{}", 404, "emials does not exist"),
            ("POST", "/v1/queues/emials/drain", "{}", 404, "emials does not exist"),
            ("PUT", "/v1/queues/emials/limits", "{\"length\":1}", 404, "emials does not exist"),
            ("GET", "/v1/jobs?limit=0", "", 400, "limit"),
            ("GET", "/v1/jobs?limit=many", "", 400, "many"),
            ("GET", "/v1/jobs?cursor=x", "", 400, "cursor"),
            ("GET", "/v1/jobs?state=lost", "", 400, "lost"),
            ("GET", "/v1/jobs?state=queued", "", 400, "queue"),
            ("GET", "/v1/jobs?state=ended&tag=a", "", 400, "tag"),
            ("GET", "/v1/jobs?state=ended&cursor=x", "", 400, "cursor"),
            ("GET", "/v1/jobs?state=ended&cursor=d.1.YQ", "", 400, "cursor"),
            ("GET", "/v1/jobs?state=running&queue=o%20s", "", 400, "queue"),
            ("GET", "/v1/jobs/none/why", "", 404, "none"),
            ("GET", "/v1/jobs/none", "", 404, "none"),
            ("GET", "/v2/jobs", "", 404, "/v1"),
            ("PATCH", "/v1/jobs", "{}", 405, "methods"),
            ("PUT", "/v1/queues/osis/limits", "{\"rate\":\"often\"}", 400, "rate"),
            ("GET", "/v1/batches/none", "", 404, "none"),
            ("GET", "/v1/schedules/none", "", 404, "none"),
        ] {
            let answer = server.send(verb, path, "", body);
            let problem = answer.json();
            assert_eq!(answer.status, status, "{verb} {path} {body}: {problem}");
            assert_eq!(answer.header("content-type"), Some("application/problem+json"));
            assert!(problem["detail"].as_str().unwrap().contains(part), "{verb} {path} {body}: {problem}");
        }
        let plain = server.send("POST", "/v1/jobs", "content-type: text/plain\r\n", "{}");
        assert!([400, 415].contains(&plain.status), "{}", plain.status);
        assert!(ground.jobs().is_empty());
        server.stop();
    }

    fn a_queue_that_does_not_exist_is_refused_with_a_similar_one(ground: &Ground) {
        let server = Server::open(ground);
        let none = json!({});
        let calls = |name: &str| [
            ("GET", format!("/v1/queues/{name}"), none.clone()),
            ("GET", format!("/v1/queues/{name}/history"), none.clone()),
            ("POST", format!("/v1/queues/{name}/pause"), none.clone()),
            ("POST", format!("/v1/queues/{name}/resume"), none.clone()),
            ("POST", format!("/v1/queues/{name}/purge"), none.clone()),
            ("PUT", format!("/v1/queues/{name}/limits"), json!({"length": 10})),
            ("GET", format!("/v1/jobs?queue={name}"), none.clone()),
            ("GET", format!("/v1/jobs?state=queued&queue={name}"), none.clone()),
            ("GET", format!("/v1/jobs?state=running&queue={name}"), none.clone()),
            ("POST", "/v1/jobs/cancel".to_owned(), json!({"queue": name})),
            ("GET", format!("/v1/dead?queue={name}"), none.clone()),
            ("POST", "/v1/dead/retry".to_owned(), json!({"queue": name})),
        ];
        for (verb, path, body) in calls("emials") {
            let (status, problem) = server.rest(verb, &path, &body);
            assert_eq!(status, 404, "{verb} {path}: {problem}");
            assert!(problem["detail"].as_str().unwrap().contains("queue emials"), "{path}: {problem}");
            assert!(problem["hint"].is_string(), "{path}: {problem}");
        }
        let job = json!({"type": "emails", "script": "1"});
        assert_eq!(server.rest("POST", "/v1/jobs", &job).0, 201);
        for (verb, path, body) in calls("emials") {
            let (status, problem) = server.rest(verb, &path, &body);
            assert_eq!(status, 404, "{verb} {path}: {problem}");
            let near = "emials (did you mean `emails`?)";
            assert!(problem["detail"].as_str().unwrap().contains(near), "{path}: {problem}");
        }
        // A queue with jobs, and one that only has settings.
        let create = json!({"create": true, "length": 9});
        assert_eq!(server.rest("PUT", "/v1/queues/later/limits", &create).0, 200);
        for (verb, path, body) in calls("emails").into_iter().chain(calls("later")) {
            let (status, answer) = server.rest(verb, &path, &body);
            assert_eq!(status, 200, "{verb} {path}: {answer}");
        }
        server.stop();
    }

    fn requests_of_json_rpc_follow_its_rules(ground: &Ground) {
        let server = Server::open(ground);
        let send = |text: &str| server.send("POST", "/", "", text);
        let code = |text: &str| send(text).json()["error"]["code"].clone();
        for (text, expected) in [
            ("{", -32700),
            ("1", -32600),
            ("{}", -32600),
            ("[]", -32600),
            (r#"{"jsonrpc":"1.0","method":"system.info","id":1}"#, -32600),
            (r#"{"jsonrpc":"2.0","method":"system.info","id":{}}"#, -32600),
            (r#"{"jsonrpc":"2.0","method":"none","id":1}"#, -32601),
            (r#"{"jsonrpc":"2.0","method":"job.get","params":[1,2],"id":1}"#, -32602),
            (r#"{"jsonrpc":"2.0","method":"job.get","params":{"id":"none"},"id":1}"#, -32004),
        ] {
            assert_eq!(code(text), json!(expected), "{text}");
        }
        let many = |count: usize| {
            let one = r#"{"jsonrpc":"2.0","method":"system.info","id":1}"#;
            send(&format!("[{}]", vec![one; count].join(","))).json()
        };
        assert_eq!(many(100).as_array().unwrap().len(), 100);
        assert_eq!(many(101)["error"]["code"], -32600);
        let mixed = send(r#"[{"jsonrpc":"2.0","method":"system.info"},7,{"jsonrpc":"2.0","method":"system.info","id":null}]"#).json();
        assert_eq!((mixed.as_array().unwrap().len(), &mixed[0]["error"]["code"], &mixed[1]["id"]), (2, &json!(-32600), &Value::Null));
        let silent = send(r#"{"jsonrpc":"2.0","method":"system.info"}"#);
        assert_eq!((silent.status, silent.body.as_str()), (204, ""));
        let answer = server.send("GET", "/", "", "");
        assert_eq!((answer.status, answer.header("allow")), (405, Some("post")));
        let deep = format!(r#"{{"jsonrpc":"2.0","method":"job.create","params":{{"type":"osis","payload":{}{}}},"id":1}}"#, "[".repeat(100_000), "]".repeat(100_000));
        assert!(send(&deep).status < 500);
        server.stop();
    }
}
