//! The end of processes that serve, while calls wait: each caller is answered, and no grace waits for another.

use std::fs::File;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

use meshwork_test_servers::halting::{Halt, Halting};
use meshwork_test_servers::servers::{Tool, shared};
use rustix::process::Signal;
use serde_json::{Value, json};
use tungstenite::protocol::frame::coding::CloseCode;

use super::sse::Events;
use super::{Server, socket};
use crate::common::http::{JSON, came, connect, service_with, text};
use crate::common::{Done, Ground, Running, eventually, json as parsed, on_all_data, wait};
use crate::ui;

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
        // The server has begun the call before, when it answers the next one.
        assert!(socket.call("system.info", &json!({}))["result"].is_object());
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
            assert!(text.contains(&id) && !text.contains("\"job\""), "{answer}");
            server.ended().ok();
            drop(agent);
        }
    }

    fn a_request_whose_body_does_not_come_has_the_grace_of_the_dashboard(ground: &Ground) {
        let (server, api, token) = ui::command(ground, &["--shutdown-timeout", SHORT.0]);
        let browser = ui::Browser::sign_in(&api, &token);
        let mut live = Events::open(&api, "/ui/live?topic=figures", &format!("cookie: {}\r\n", browser.cookie));
        live.next();
        let head = format!(
            "POST /ui/sign-in HTTP/1.1\r\nhost: {}\r\n{}content-type: application/x-www-form-urlencoded\r\n\
             content-length: 9\r\nexpect: 100-continue\r\n\r\n",
            api.address, ui::FROM_HERE
        );
        let mut request = connect(&api.address, &head);
        let mut first = [0; 12];
        request.read_exact(&mut first).unwrap();
        assert_eq!(&first, b"HTTP/1.1 100");
        ends_in_time(server);
    }

    fn a_running_action_has_the_grace_of_its_service(ground: &Ground) {
        let service = service_with(ground, "streams", &["--shutdown-timeout", SHORT.0]);
        ground.run(&["action", "send", "demo.slow"]).ok();
        eventually("it has begun", || ground.path("began").exists().then_some(()));
        let done = ends_in_time(service).ok();
        assert_eq!(done.jsons()[1]["released"], 1, "{done:?}");
    }
}

/// A grace that is not the default one, as a word and as a time.
const SHORT: (&str, Duration) = ("3", Duration::from_secs(3));

/// Servers refuse what has no answer this long before the end of their grace.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Ends a command while a call is under way, for which it waits for the time that it was given.
fn ends_in_time(running: Running) -> Done {
    ends_after(running, SHORT.1)
}

fn ends_after(running: Running, grace: Duration) -> Done {
    let began = Instant::now();
    running.signal(Signal::TERM);
    let done = running.ended();
    let took = began.elapsed();
    assert!(
        took + LAST_WORDS >= grace && took < 5 * grace,
        "{took:?}: {done:?}"
    );
    done
}

/// A store whose connections can be halted, and a place for commands that use it.
fn halting() -> Option<(Halting, Ground)> {
    let database = shared(Tool::Redis)?;
    let server = ([127, 0, 0, 1], database.server.port()).into();
    let proxy = wait(Halting::to(server)).unwrap();
    let ground = Ground::url(format!("redis://{}/{}", proxy.at(), database.number));
    Some((proxy, ground))
}

#[test]
fn a_call_that_gets_no_answer_has_the_grace_of_the_agents_server() {
    let Some((proxy, ground)) = halting() else {
        return;
    };
    let (input, mut agent) = std::io::pipe().unwrap();
    let input = File::from(std::os::fd::OwnedFd::from(input));
    let command = ground.command(&["mcp", "--shutdown-timeout", "2"]);
    let mut server = Running::with_stdin(command, input);
    let call = |method: &str, params: Value| json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params});
    // It connects at the first call.
    let list = json!({"name": "list_queues"});
    writeln!(agent, "{}", call("tools/call", list)).unwrap();
    assert_eq!(parsed(&server.line())["result"]["isError"], false);
    proxy.halt(Halt::Before(0));
    let job = json!({"name": "get_job", "arguments": {"id": "one"}});
    writeln!(
        agent,
        "{}\n{}",
        call("tools/call", job),
        call("ping", json!({}))
    )
    .unwrap();
    assert_eq!(parsed(&server.line())["id"], "ping");
    eventually("the call is under way", || proxy.is_halted().then_some(()));
    // After a longer grace, the call would have ended: its store does not answer.
    ends_after(server, Duration::from_secs(2)).ok();
}

#[test]
fn a_batch_that_gets_no_answer_has_the_grace_of_its_relay() {
    let Some((proxy, ground)) = halting() else {
        return;
    };
    let url = format!("sqlite://{}", ground.file("app.db", "").display());
    let command = |words: &[&str]| {
        let mut command = ground.command(&[&["outbox"], words].concat());
        command.env("DATABASE_URL", &url);
        command
    };
    Running::start(command(&["migrate"])).ended().ok();
    let mut relay = Running::start(command(&[
        "relay",
        "--json",
        "--poll",
        "1",
        "--shutdown-timeout",
        SHORT.0,
    ]));
    assert_eq!(parsed(&relay.line())["event"], "ready");
    proxy.halt(Halt::Before(0));
    eventually("a batch is under way", || proxy.is_halted().then_some(()));
    ends_in_time(relay).ok();
}
