//! Flows over the API.

use serde_json::{Value, json};

use super::Server;
use crate::common::{eventually, on_both};

const FLOW: &str = "
flow: sums
inputs: {n: 2}
jobs:
  one: {run: scripts/one.rhai, with: {n: '{{ inputs.n }}'}}
  ask: {approve: 'Go on?', needs: one}
  two: {script: 'print(\"hello\"); 6 * 7', type: osis, needs: ask}
outputs: {answer: '{{ two.result }}'}
";

fn body() -> Value {
    json!({"flow": FLOW, "files": {"scripts/one.rhai": "40 + 2"}, "inputs": {"n": 3}})
}

/// Waits until a flow is in this state.
fn until(server: &Server, id: u64, is: impl Fn(&Value) -> bool) -> Value {
    eventually("the flow goes on", || {
        let (status, view) = server.rest("GET", &format!("/v1/flows/{id}"), &json!({}));
        assert_eq!(status, 200, "{view}");
        is(&view).then_some(view)
    })
}

fn asks(view: &Value) -> bool {
    view["jobs"][1]["question"].is_string()
}

/// Flows that are rejected and cancelled, and their pages.
fn other_ends(server: &Server) {
    let post = |path: &str, body: Value| server.rest("POST", path, &body);
    let (_, made) = post("/v1/flows", body());
    let id = made["id"].as_u64().unwrap();
    until(server, id, asks);
    assert_eq!(
        post(&format!("/v1/flows/{id}/reject"), json!({"job": "ask"})).0,
        200
    );
    until(server, id, |view| view["status"] == "error");
    let (_, made) = post("/v1/flows", body());
    let id = made["id"].as_u64().unwrap();
    assert_eq!(post(&format!("/v1/flows/{id}/cancel"), json!({})).0, 202);
    until(server, id, |view| view["status"] == "error");
    let (_, page) = server.rest("GET", "/v1/flows?limit=1", &json!({}));
    assert_eq!(
        (&page["flows"][0]["id"], &page["next"]),
        (&json!(id), &json!("1")),
        "{page}"
    );
    let (_, named) = server.rest("GET", "/v1/flows?name=sums&cursor=1", &json!({}));
    assert_eq!(
        (named["flows"].as_array().unwrap().len(), &named["next"]),
        (1, &Value::Null),
        "{named}"
    );
}

#[test]
fn a_flow_runs_from_its_texts() {
    on_both(|ground| {
        ground.run(&["context", "create"]).ok();
        let server = Server::open(ground);
        let worker = ground.worker(&["--context", "1", "--type", "osis"]);
        let post = |path: &str, body: Value| server.rest("POST", path, &body);
        let (status, made) = post("/v1/flows", body());
        assert_eq!((status, &made), (200, &json!({"id": 1, "context": 1})));
        let view = until(&server, 1, asks);
        assert!(view["created_at"].is_string() && view["jobs"][0]["started_at"].is_string());
        assert!(
            view["jobs"][0]["ended_at"].is_string() && view["ended_at"].is_null(),
            "{view}"
        );
        let (status, dag) = server.rest("GET", "/v1/flows/1/dag", &json!({}));
        assert_eq!(
            (status, &dag["levels"]),
            (200, &json!([["one"], ["ask"], ["two"]])),
            "{dag}"
        );
        assert_eq!(dag["completed"], json!(["one"]));
        let (status, answered) = post("/v1/flows/1/approve", json!({}));
        assert_eq!(
            (status, &answered["result"], &answered["job"]),
            (200, &json!("approved"), &json!("ask"))
        );
        let view = until(&server, 1, |view| view["status"] == "finished");
        assert_eq!(view["outputs"]["answer"], 42, "{view}");
        assert!(view["ended_at"].is_string(), "{view}");
        let shown = ground.run(&["flow", "status", "1", "--json"]).ok().json();
        assert_eq!(shown, view);
        assert_eq!(
            ground.run(&["rpc", "flow.get", "{\"id\":1}"]).ok().json(),
            view
        );
        let drawn = ground.run(&["flow", "graph", "1"]).ok().stdout;
        assert!(drawn.contains("✓ one (osis)"), "{drawn}");
        let bars = ground
            .run(&["flow", "status", "1", "--waterfall"])
            .ok()
            .stdout;
        assert!(bars.starts_with("✓ one") && bars.contains('█'), "{bars}");
        let (status, logs) = server.rest("GET", "/v1/flows/1/logs?job=two", &json!({}));
        assert_eq!(
            (status, &logs["lines"][0]["line"], &logs["next"]),
            (200, &json!("hello"), &Value::Null),
            "{logs}"
        );
        let (status, again) = post("/v1/flows/1/retry", json!({"from": ["two"]}));
        assert_eq!(
            (status, &again["result"]),
            (200, &json!("retrying")),
            "{again}"
        );
        until(&server, 1, |view| view["status"] == "finished");
        // The script of the change writes the entry. The author has no key here: the caller is the server's actor.
        let audit = ground.run(&["context", "audit", "--json"]).ok().stdout;
        assert!(
            audit.matches("\"what\":\"retry\"").count() == 1 && audit.contains("\"actor 1\""),
            "{audit}"
        );
        let (status, gone) = server.rest("DELETE", "/v1/flows/1", &json!({}));
        assert_eq!(
            (status, &gone["result"]),
            (200, &json!("deleted")),
            "{gone}"
        );
        assert_eq!(server.rest("GET", "/v1/flows/1", &json!({})).0, 404);
        other_ends(&server);
        worker.stop();
        server.stop();
    });
}

#[test]
fn a_flow_with_a_fault_is_refused() {
    on_both(|ground| {
        ground.run(&["context", "create"]).ok();
        let secret = ground.file("one.rhai", "1");
        let server = Server::open(ground);
        let absolute = format!("flow: a\njobs:\n  one: {{run: {}}}\n", secret.display());
        for (flow, says) in [
            ("flow: a\njobs:\n  one: {run: one.rhai}\n", "one.rhai"),
            (&absolute, "leaves the folder"),
            (
                "flow: a\njobs:\n  one: {run: ../one.rhai}\n",
                "leaves the folder",
            ),
            (
                "flow: a\njobs:\n  one: {flow: ../../etc/passwd}\n",
                "leaves the folder",
            ),
            ("flow: [", "flow.yaml"),
        ] {
            let (status, problem) = server.rest("POST", "/v1/flows", &json!({"flow": flow}));
            assert_eq!(status, 400, "{problem}");
            assert!(
                problem["detail"].as_str().unwrap().contains(says),
                "{problem}"
            );
        }
        for body in [json!({}), json!({"flow": "x", "deployed": "y"})] {
            assert_eq!(server.rest("POST", "/v1/flows", &body).0, 400, "{body}");
        }
        assert_eq!(
            server
                .rest("POST", "/v1/flows", &json!({"deployed": "none"}))
                .0,
            404
        );
        let inputs = json!({"flow": FLOW, "files": {"scripts/one.rhai": "1"}, "inputs": {"m": 1}});
        assert_eq!(server.rest("POST", "/v1/flows", &inputs).0, 400);
        let (_, page) = server.rest("GET", "/v1/flows", &json!({}));
        assert_eq!(page["flows"], json!([]));
        server.stop();
    });
}
