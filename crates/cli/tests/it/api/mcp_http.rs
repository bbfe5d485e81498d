//! The Model Context Protocol over HTTP at the supervisor.

use std::io::{BufRead, BufReader};

use meshwork_test_servers::servers::RealServer;
use serde_json::{Value, json};

use super::rights::key;
use super::{Api, Server, bearer};
use crate::common::http::{Came, JSON, connect, text};
use crate::common::{Ground, json as parsed, on_both};

const ACCEPT: &str = "accept: application/json, text/event-stream\r\n";

fn post(api: &Api, headers: &str, message: &Value) -> Came {
    let headers = format!("{ACCEPT}{headers}");
    api.send("POST", "/mcp", &headers, &message.to_string())
}

fn request(id: u32, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn tool(id: u32, name: &str, arguments: Value) -> Value {
    request(
        id,
        "tools/call",
        json!({"name": name, "arguments": arguments}),
    )
}

/// The text of a tool's result.
fn text_of(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("{answer}"))
}

/// Names of the tools of a caller.
fn tools(api: &Api, headers: &str) -> Vec<String> {
    let listed = post(api, headers, &request(1, "tools/list", json!({}))).json();
    let tools = listed["result"]["tools"].as_array().unwrap().iter();
    tools
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn the_key_decides_what_an_agent_may_do() {
    on_both(|ground| {
        ground.run(&["context", "create"]).ok();
        let made = |name: &str, words: &[&str]| bearer(&key(ground, name, words));
        let viewer = made("viewer", &["--scope", "viewer"]);
        let user = made("user", &["--scope", "user", "--actor", "1"]);
        let confined = made(
            "confined",
            &["--scope", "user", "--actor", "1", "--context", "1"],
        );
        let server = Server::start(ground, &[]);
        let refused = post(&server, "", &request(1, "tools/list", json!({})));
        assert_eq!(
            (refused.status, refused.header("www-authenticate")),
            (401, Some("bearer")),
            "{}",
            refused.body
        );
        assert_eq!(
            post(
                &server,
                &bearer("mwk_none_x"),
                &request(1, "ping", json!({}))
            )
            .status,
            401
        );
        assert!(!tools(&server, &viewer).contains(&"create_job".to_owned()));
        let job = || json!({"type": "osis", "script": "1", "id": "7"});
        let withheld = post(&server, &viewer, &tool(1, "create_job", job())).json();
        let hint = withheld["error"]["data"]["hint"].as_str().unwrap();
        assert!(hint.contains("--scope user"), "{withheld}");
        assert!(tools(&server, &user).contains(&"create_job".to_owned()));
        let contexts = post(&server, &user, &tool(1, "list_contexts", json!({}))).json();
        assert!(text_of(&contexts).contains("\"id\":1"), "{contexts}");
        // The key of an actor without rights outside of contexts, and one for a context alone.
        let outside = post(&server, &user, &tool(1, "create_job", job())).json();
        assert!(
            text_of(&outside).contains("forbidden: create_job needs the scope user"),
            "{outside}"
        );
        let inside = post(&server, &confined, &tool(1, "create_job", job())).json();
        assert!(text_of(&inside).contains("\"id\":\"job:1:7\""), "{inside}");
        let found = post(
            &server,
            &confined,
            &tool(1, "search_jobs", json!({"type": "osis"})),
        )
        .json();
        assert!(text_of(&found).contains("\"id\":\"job:1:7\""), "{found}");
        server.stop();
    });
}

#[test]
fn http_is_spoken_as_the_revisions_say() {
    let Some(ground) = Ground::redis() else {
        return;
    };
    let server = Server::open(&ground);
    let from = |origin: &str| format!("origin: {origin}\r\n");
    let ping = request(1, "ping", json!({}));
    assert_eq!(
        post(&server, &from("http://evil.example"), &ping).status,
        403
    );
    assert_eq!(
        post(&server, &from(&format!("http://{}", server.address)), &ping).status,
        200
    );
    for verb in ["GET", "DELETE"] {
        assert_eq!(server.send(verb, "/mcp", "", "").status, 405, "{verb}");
    }
    let begun = post(
        &server,
        "",
        &request(1, "initialize", json!({"protocolVersion": "2025-11-25"})),
    );
    assert_eq!(begun.json()["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(begun.header("mcp-session-id").map(str::len), Some(32));
    let notified = post(
        &server,
        "",
        &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    );
    assert_eq!((notified.status, notified.body.as_str()), (202, ""));
    // Any server answers any session: another one may have begun it.
    let session = "mcp-session-id: of-another-server\r\nmcp-protocol-version: 2025-11-25\r\n";
    assert_eq!(post(&server, session, &ping).json()["result"], json!({}));
    let unknown = request(1, "resources/list", json!({}));
    assert_eq!(post(&server, session, &unknown).status, 200);
    let modern = "mcp-protocol-version: 2026-07-28\r\n";
    assert_eq!(post(&server, modern, &unknown).status, 404);
    let old = json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "1900-01-01"}});
    let refused = post(&server, modern, &request(1, "server/discover", old));
    assert_eq!(
        (refused.status, &refused.json()["error"]["code"]),
        (400, &json!(-32022))
    );
    for wrong in [
        "mcp-protocol-version: 1900-01-01\r\n".to_owned(),
        format!("mcp-session-id: {}\r\n", "x".repeat(200)),
    ] {
        assert_eq!(post(&server, &wrong, &ping).status, 400, "{wrong}");
    }
    let plain = server.send("POST", "/mcp", "", "{");
    assert_eq!(
        (plain.status, &plain.json()["error"]["code"]),
        (200, &json!(-32700))
    );
    server.stop();
}

#[test]
fn a_call_over_http_tells_of_its_progress_and_is_cancelled_in_its_session() {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let ground = Ground::url(server.url());
    let api = Server::open(&ground);
    let headers = format!("{JSON}{ACCEPT}mcp-session-id: one\r\n");
    let begin = |id: &str| {
        let mut job = tool(
            7,
            "create_job",
            json!({"type": "osis", "script": "1", "id": id, "wait": 300}),
        );
        job["params"]["_meta"] = json!({"progressToken": "t"});
        let request = text(&api.address, "/mcp", &headers, &job.to_string());
        let stream = BufReader::new(connect(&api.address, &request));
        let lines = stream.lines().map(Result::unwrap);
        let mut messages = lines.filter_map(|line| Some(parsed(line.strip_prefix("data: ")?)));
        let step = messages.next().unwrap();
        assert_eq!(
            (&step["method"], &step["params"]["progressToken"]),
            (&json!("notifications/progress"), &json!("t"))
        );
        assert_eq!(
            (&step["params"]["message"], &step["params"]["total"]),
            (&json!("queued"), &json!(100))
        );
        messages
    };
    let cancel = |session: &str| {
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
        assert_eq!(
            post(&api, &format!("mcp-session-id: {session}\r\n"), &cancel).status,
            202
        );
    };
    // Requests of another session have the same ids.
    let finished = begin("a");
    cancel("two");
    let worker = ground.worker(&["--type", "osis"]);
    let answer = finished.last().unwrap();
    assert!(text_of(&answer).contains("\"output\":1"), "{answer}");
    worker.stop();
    let cancelled = begin("b");
    cancel("one");
    let rest: Vec<_> = cancelled.collect();
    assert!(
        rest.iter().all(|message| message.get("result").is_none()),
        "{rest:?}"
    );
    ground.run(&["job", "show", "b"]).ok();
    api.stop();
}

/// The stream of a call ends without an answer when its supervisor is killed, and no client takes that for one. Another
/// supervisor answers the same call, in the same session, and the job with its id runs once.
#[test]
fn a_call_is_repeated_at_another_supervisor_after_a_kill() {
    let Some(ground) = Ground::redis() else {
        return;
    };
    let ran = ground.path("ran");
    let script = format!("with open({ran:?}, 'a') as ran:\n    ran.write('x')\nresult = 42\n");
    let job = json!({"type": "python", "script": script, "id": "once", "wait": 300});
    let mut call = tool(7, "create_job", job);
    call["params"]["_meta"] = json!({"progressToken": "t"});
    let headers = format!("{JSON}{ACCEPT}mcp-session-id: one\r\n");
    for _ in 0..3 {
        let api = Server::open(&ground);
        let request = text(&api.address, "/mcp", &headers, &call.to_string());
        let stream = BufReader::new(connect(&api.address, &request));
        let mut lines = stream.lines();
        let queued = lines.find(|line| line.as_ref().is_ok_and(|it| it.contains("queued")));
        assert!(queued.is_some());
        api.running.kill();
        // The end comes before the last chunk, which is an error of HTTP.
        let rest: Vec<_> = lines.map_while(Result::ok).collect();
        assert!(
            !rest
                .iter()
                .any(|line| line == "0" || line.contains("\"result\"")),
            "{rest:?}"
        );
    }
    let api = Server::open(&ground);
    let worker = ground.worker(&["--type", "python"]);
    let answer = post(&api, "mcp-session-id: one\r\n", &call);
    assert!(answer.body.contains("\\\"output\\\":42"), "{}", answer.body);
    assert_eq!(std::fs::read_to_string(&ran).unwrap(), "x");
    assert_eq!(ground.jobs().len(), 1);
    api.stop();
    worker.stop();
}
