//! The end of processes that serve, while calls wait: each caller is answered, and no grace waits for another.

use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;
use tungstenite::protocol::frame::coding::CloseCode;

use super::{Server, socket};
use crate::common::http::{JSON, came, connect, text};
use crate::common::{Ground, Running, eventually, json as parsed, on_all_data};

/// Longer than any test takes.
const LONG: &str = "5m";

on_all_data! {
    fn waiting_calls_are_answered_at_once(ground: &Ground) {
        let server = Server::open(ground);
        let job = |id: &str| json!({"type": "osis", "script": "1", "id": id, "wait": LONG});
        let waits = |path: &str, body: &str| connect(&server.address, &text(&server.address, path, JSON, body));
        let calls = |method: &str, params: &serde_json::Value| {
            let request = json!({"jsonrpc": "2.0", "method": method, "params": params, "id": 7});
            request.to_string()
        };
        let created = waits("/v1/jobs", &job("created").to_string());
        let run = waits("/v1/jobs/run", &job("ran").to_string());
        let batch = waits("/rpc", &format!("[{},{}]", calls("job.create", &job("one")), calls("job.run", &job("two"))));
        let mut socket = socket::open(&server);
        socket.send(&calls("job.create", &job("socket")));
        for id in ["created", "ran", "one", "two", "socket"] {
            eventually("the job is stored", || (server.rest("GET", &format!("/v1/jobs/{id}"), &json!({})).0 == 200).then_some(()));
        }
        let hero = waits("/rpc", &calls("play", &json!({"script": "1"})));
        let result = waits("/rpc", &calls("job.result", &json!({"id": "created", "wait": LONG})));
        socket.send(&calls("job.result", &json!({"id": "socket", "wait": LONG})));
        eventually("all of them wait", || (ground.jobs().len() == 6).then_some(()));
        let began = Instant::now();
        server.running.signal(Signal::TERM);
        let created = came(created);
        assert_eq!((created.status, created.json()), (202, json!({"id": "created", "job": null})));
        let run = came(run);
        assert_eq!((run.status, &run.json()["code"]), (408, &json!("timeout")), "{}", run.body);
        assert!(run.body.contains("ran has not ended"), "{}", run.body);
        let batch = came(batch).json();
        assert_eq!((&batch[0]["result"]["id"], &batch[1]["error"]["code"]), (&json!("one"), &json!(-32008)), "{batch}");
        for late in [hero, result] {
            assert_eq!(came(late).json()["error"]["code"], -32008);
        }
        let mut answers = [socket.next(), socket.next()];
        answers.sort_by_key(|answer| answer.get("error").is_some());
        assert_eq!(answers[0]["result"], json!({"id": "socket", "job": null}));
        assert_eq!(answers[1]["error"]["code"], -32008);
        assert_eq!(socket.closed(), Some(CloseCode::Away));
        server.running.ended().ok();
        // The grace is 25 s, and no call needs it.
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    }

    fn graces_do_not_wait_for_one_another(ground: &Ground) {
        const GRACE: Duration = Duration::from_secs(6);
        let begun = ground.path("begun");
        let seconds = GRACE.as_secs().to_string();
        let server = Server::start(ground, &["--insecure-no-auth", "--worker", "exec", "--shutdown-timeout", &seconds]);
        let script = format!("#!/bin/sh\ntouch {}\nexec sleep 600", begun.display());
        let job = json!({"type": "exec", "script": script, "id": "long", "wait": LONG});
        let waits = connect(&server.address, &text(&server.address, "/v1/jobs", JSON, &job.to_string()));
        eventually("the job runs", || begun.exists().then_some(()));
        let began = Instant::now();
        let done = server.running.stop();
        assert!(began.elapsed() >= GRACE && began.elapsed() < 2 * GRACE, "{:?}: {done:#?}", began.elapsed());
        assert_eq!(came(waits).status, 202);
        let job = ground.run(&["job", "show", "long", "--json"]).ok().json();
        assert_eq!((&job["status"], &job["lost"]), (&json!("dispatched"), &json!(0)));
    }

    fn a_call_that_takes_longer_than_the_grace_is_refused_not_cut_off(ground: &Ground) {
        let service = crate::common::http::service(ground, "streams");
        let (gateway, address) = crate::common::http::gateway(ground, &["--shutdown-timeout", "2"], None);
        let slow = connect(&address, &text(&address, "/actions/demo/slow", JSON, "{}"));
        eventually("it has begun", || ground.path("began").exists().then_some(()));
        gateway.signal(Signal::TERM);
        let answer = came(slow);
        assert_eq!((answer.status, answer.code().as_str()), (503, "CLOSING"), "{}", answer.body);
        gateway.ended().ok();
        ground.file("go_on", "");
        service.stop();
    }

    fn an_agent_is_answered_at_the_end(ground: &Ground) {
        for by_signal in [true, false] {
            let id = format!("agent-{by_signal}");
            let (input, mut agent) = std::io::pipe().unwrap();
            let input = File::from(std::os::fd::OwnedFd::from(input));
            let mut server = Running::with_stdin(ground.command(&["mcp", "--allow-changes"]), input);
            let arguments = json!({"type": "osis", "script": "1", "id": id, "wait": LONG});
            let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "create_job", "arguments": arguments}});
            writeln!(agent, "{call}").unwrap();
            eventually("the job is stored", || ground.run(&["job", "show", &id]).code.filter(|code| *code == 0));
            let agent = match by_signal {
                true => {
                    server.signal(Signal::TERM);
                    Some(agent)
                }
                false => {
                    drop(agent);
                    None
                }
            };
            let answer = parsed(&server.line());
            let text = answer["result"]["content"][0]["text"].as_str().unwrap();
            assert!(text.contains(&id) && text.contains("null"), "{answer}");
            server.ended().ok();
            drop(agent);
        }
    }
}
