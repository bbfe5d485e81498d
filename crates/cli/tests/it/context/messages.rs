//! `meshwork message` and `supervisor` beside plain clients and plain runners, on servers of their own.

use crate::common::{BOUND, Ground, Running, eventually, json as of_line, on_both};
use meshwork_test_servers::plain::Plain;
use meshwork_test_servers::servers::{RealServer, ServerOptions};
use serde_json::json;

/// A server of one's own and its contexts 7 and 8, whose messages a supervisor serves.
fn served(server: &RealServer) -> (Ground, Running) {
    let ground = Ground::url(server.url());
    for id in ["7", "8"] {
        ground.run(&["context", "create", "--id", id]).ok();
    }
    let mut supervisor = ground.start(&["supervisor", "--json", "--context", "7,8"]);
    assert_eq!(of_line(&supervisor.line())["event"], "ready");
    (ground, supervisor)
}

/// A plain runner: takes a job off its queue and writes what came of it.
fn plain_runner(server: &RealServer, queue: &str, result: &str) -> String {
    plain_runner_of(server, 8, queue, result)
}

/// The same, of another context.
fn plain_runner_of(server: &RealServer, database: u32, queue: &str, result: &str) -> String {
    let mut runner = Plain::connect(&server.url_of(database)).unwrap();
    let timeout = BOUND.as_secs().to_string();
    let (_, job): (String, String) = runner.ask(&["BRPOP", queue, &timeout]).unwrap();
    runner
        .ask::<i64>(&["HSET", &job, "status", "started"])
        .unwrap();
    runner
        .ask::<i64>(&["HSET", &job, "result", result, "status", "finished"])
        .unwrap();
    job
}

fn a_job_message_comes_back(server: ServerOptions) {
    let Some(server) = server.start() else { return };
    let (ground, _supervisor) = served(&server);
    ground.file("load.py", "result = 1");
    let waits = ground.start(&[
        "message",
        "send",
        "8",
        "--job",
        "load.py",
        "--context",
        "7",
        "--wait",
        "--json",
    ]);
    let job = plain_runner(&server, "queue:python", r#"{"rows": "5"}"#);
    assert_eq!(job, "job:1:1");
    let result = waits.ended().ok().json();
    assert_eq!(
        (&result["status"], &result["mw_re"]),
        (&json!("processed"), &json!("1:1"))
    );
    assert_eq!(result["job"][0]["result"], json!({"rows": "5"}));
    let mut plain = Plain::connect(&server.url_of(7)).unwrap();
    let status: String = plain.ask(&["HGET", "message:1:1", "status"]).unwrap();
    assert_eq!(status, "processed");
    let inbox: Vec<String> = plain.ask(&["LRANGE", "msg_in", "0", "-1"]).unwrap();
    assert_eq!(inbox.len(), 1);
}

#[test]
fn a_job_message_comes_back_on_redis() {
    a_job_message_comes_back(RealServer::redis());
}

#[test]
fn a_job_message_comes_back_on_valkey() {
    a_job_message_comes_back(RealServer::valkey());
}

#[test]
fn a_plain_client_sends_a_message_by_hand() {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let (ground, _supervisor) = served(&server);
    ground
        .run(&["context", "set", "8", "--unsigned", "accept"])
        .ok();
    let mut plain = Plain::connect(&server.url_of(7)).unwrap();
    let job = r#"{"id": 2001, "caller_id": 1, "script": "1", "script_type": "v"}"#;
    let fields = [
        "HSET",
        "message:1:101",
        "message_type",
        "job",
        "target_context",
        "8",
        "job",
        job,
        "created_at",
        "0",
    ];
    let now: (u64, u64) = plain.ask(&["TIME"]).unwrap();
    let now = now.0.to_string();
    let mut fields = fields.to_vec();
    fields[9] = &now;
    plain.ask::<i64>(&fields).unwrap();
    plain
        .ask::<i64>(&["LPUSH", "msg_out", "message:1:101"])
        .unwrap();
    assert_eq!(plain_runner(&server, "queue:v", "fine"), "job:1:2001");
    let done = ground
        .run(&["message", "wait", "1:101", "--context", "7", "--json"])
        .ok()
        .json();
    assert_eq!(done["job"][0]["result"], json!({"result": "fine"}));
    assert_eq!(done["job"][0]["id"], 2001);
    // What names no message is dropped, and noted.
    plain.ask::<i64>(&["LPUSH", "msg_out", "queue:v"]).unwrap();
    eventually("it is dropped", || {
        let trail = ground
            .run(&["context", "audit", "7", "--json"])
            .ok()
            .jsons();
        trail
            .into_iter()
            .find(|it| it["what"] == "drop" && it["object"] == "queue:v")
    });
    unsigned_messages_are_refused(&ground, &mut plain, &now);
}

#[test]
fn a_plain_client_and_a_plain_runner_share_a_context() {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let (ground, _supervisor) = served(&server);
    let mut plain = Plain::connect(&server.url_of(7)).unwrap();
    let job = r#"{"id": 2001, "caller_id": 1, "script": "1", "script_type": "v"}"#;
    let message = ["HSET", "message:1:101", "message_type", "job", "job", job];
    plain.ask::<i64>(&message).unwrap();
    let push = ["LPUSH", "msg_out", "message:1:101"];
    plain.ask::<i64>(&push).unwrap();
    assert_eq!(plain_runner_of(&server, 7, "queue:v", "fine"), "job:1:2001");
    let wait = ["message", "wait", "1:101", "--context", "7", "--json"];
    let done = ground.run(&wait).ok().json();
    assert_eq!(done["job"][0]["result"], json!({"result": "fine"}));
    // In another context, the same message needs a signature.
    let message = [&message[..], &["target_context", "8"]].concat();
    let other: Vec<_> = message
        .iter()
        .map(|word| word.replace("message:1:101", "message:1:102"))
        .collect();
    let other: Vec<_> = other.iter().map(String::as_str).collect();
    plain.ask::<i64>(&other).unwrap();
    let push = ["LPUSH", "msg_out", "message:1:102"];
    plain.ask::<i64>(&push).unwrap();
    let wait = ["message", "wait", "1:102", "--context", "7"];
    let refused = ground.run(&wait).exits(1).stdout;
    assert!(refused.contains("unsigned: own"), "{refused}");
}

#[test]
fn a_deleted_message_is_gone() {
    on_both(|ground| {
        for id in ["7", "8"] {
            ground.run(&["context", "create", "--id", id]).ok();
        }
        ground
            .run(&["message", "send", "8", "hello", "--context", "7"])
            .ok();
        let gone = ["message", "delete", "1:1", "--context", "7"];
        let deleted = ground.run(&[&gone[..], &["--json"]].concat()).ok().json();
        assert_eq!(deleted, json!({"message": "1:1", "outcome": "deleted"}));
        let missing = ground.run(&gone).exits(5).stderr;
        assert!(missing.contains("there is no message:1:1"), "{missing}");
        let listed = ground.run(&["message", "list", "--context", "7", "--json"]);
        assert_eq!(listed.ok().stdout, "");
        let trail = ground
            .run(&["context", "audit", "7", "--json"])
            .ok()
            .jsons();
        let entry = trail.iter().find(|it| it["what"] == "delete").unwrap();
        assert_eq!(
            (&entry["who"], &entry["object"]),
            (&json!("actor 1"), &json!("message:1:1"))
        );
    });
}

/// By a context that takes none.
fn unsigned_messages_are_refused(ground: &Ground, plain: &mut Plain, now: &str) {
    ground
        .run(&["context", "set", "8", "--unsigned", "refuse"])
        .ok();
    plain
        .ask::<i64>(&[
            "HSET",
            "message:1:102",
            "message_type",
            "chat",
            "target_context",
            "8",
            "created_at",
            now,
        ])
        .unwrap();
    plain
        .ask::<i64>(&["LPUSH", "msg_out", "message:1:102"])
        .unwrap();
    let done = ground
        .run(&["message", "wait", "1:102", "--context", "7"])
        .exits(1);
    assert!(done.stdout.contains("unsigned: refuse"), "{}", done.stdout);
    ground
        .run(&["message", "send", "8", "signed", "--context", "7"])
        .ok();
    eventually("the signed one comes", || {
        ground
            .run(&["message", "read", "--context", "8", "--json"])
            .ok()
            .jsons()
            .pop()
    });
}

/// The words of a line, those between quotes as one.
fn words(line: &str) -> Vec<String> {
    let parts = line.split('"').enumerate();
    let words = parts.flat_map(|(at, part)| match at % 2 {
        1 => vec![part.to_owned()],
        _ => part.split_whitespace().map(str::to_owned).collect(),
    });
    words.collect()
}

#[test]
fn the_tour_of_the_documentation_runs() {
    let page = include_str!("../../../../../docs/contexts.md");
    let block = |page: &str| {
        let block = page.split("```console\n").nth(1).unwrap();
        block.split("```").next().unwrap().to_owned()
    };
    let jobs = block(page.split("## Jobs\n").nth(1).unwrap());
    let tour = format!("{}{jobs}", block(page));
    let ground = Ground::embedded().unwrap();
    ground.file("sum.rhai", "1 + 2");
    let mut steps = 0;
    for step in tour.split("$ meshwork ").skip(1) {
        let (command, expected) = step.split_once('\n').unwrap();
        let done = ground.run(&words(command)).ok();
        let lines = |text: &str| {
            text.lines()
                .map(|line| line.trim_end().to_owned())
                .collect::<Vec<_>>()
        };
        // Lines that are not the same each time are not in the tour.
        if !expected.is_empty() {
            assert_eq!(lines(&done.stdout), lines(expected), "{command}");
        }
        steps += 1;
    }
    assert!(steps >= 13, "{steps} steps");
}
