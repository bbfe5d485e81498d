//! `meshwork action gateway`, as programs that speak HTTP see it.

use std::io::Read;
use std::net::TcpStream;

use crate::common::http::{JSON, came, connect, gateway, get, post, service, text};
use crate::common::{Ground, eventually, on_all_data};
use meshwork_test_servers::servers::RealServer;
use rustix::process::Signal;
use serde_json::Value;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const TASK: &str = "01900000-0000-7000-8000-000000000001";

on_all_data! {
    fn a_request_is_answered_by_an_action(ground: &Ground) {
        for dialect in ["streams", "lists"] {
            let service = service(ground, dialect);
            let (gateway, address) = gateway(ground, &["--dialect", dialect], None);
            let parent = format!("00-{TRACE}-b7ad6b7169203331-01");
            let headers = format!("{JSON}traceparent: {parent}\r\nx-task-id: {TASK}\r\n");
            let answer = post(&address, "/actions/demo/batch/count", &headers, "{\"items\":[1,2,3]}");
            assert_eq!((answer.status, answer.body.as_str()), (200, "{\"count\":3}"), "{}", answer.head);
            assert_eq!(answer.header("content-type"), Some("application/json"));
            // The same trace, and the action's span.
            let given = answer.header("traceparent").unwrap();
            assert!(given.starts_with(&format!("00-{TRACE}-")) && given != parent, "{given}");
            // A type may be written with dots, and what the client says nothing of is new.
            let answer = post(&address, "/actions/demo/batch.count", JSON, "{\"items\":[]}");
            assert_eq!((answer.status, answer.body.as_str()), (200, "{\"count\":0}"));
            assert!(answer.header("traceparent").is_some());
            if dialect == "streams" {
                let tree = eventually("it is traced", || ground.run(&["action", "trace", TASK, "--json"]).jsons().pop());
                assert_eq!((&tree["from"], &tree["parent"]), (&Value::from("gateway"), &Value::from("b7ad6b7169203331")));
            }
            gateway.stop();
            service.stop();
        }
    }

    fn failures_have_their_codes(ground: &Ground) {
        let service = service(ground, "streams");
        let (gateway, address) = gateway(ground, &["--wait", "1", "--max-body", "1000", "--service", "demo", "--service", "absent"], None);
        let long = format!("{{\"x\":\"{}\"}}", "x".repeat(2_000));
        for (path, headers, body, status, code) in [
            ("/actions/demo/fail", JSON, "{}", 500, "HANDLER_EXECUTION_ERROR"),
            ("/actions/demo/none", JSON, "{}", 500, "HANDLER_EXECUTION_ERROR"),
            ("/actions/absent/run", JSON, "{}", 504, "NO_ANSWER"),
            ("/actions/other/run", JSON, "{}", 404, "UNKNOWN_SERVICE"),
            ("/actions/demo/fail", JSON, "[1]", 400, "BAD_BODY"),
            ("/actions/demo/fail", JSON, "{", 400, "BAD_BODY"),
            ("/actions/demo/fail", JSON, "", 400, "BAD_BODY"),
            ("/actions/demo/fail", JSON, &long, 413, "TOO_LARGE"),
            ("/actions/demo/a%20b", JSON, "{}", 400, "BAD_PATH"),
            ("/actions/demo//b", JSON, "{}", 400, "BAD_PATH"),
            ("/actions/demo/%ff", JSON, "{}", 400, "BAD_PATH"),
            ("/other", JSON, "{}", 404, "NO_SUCH_PATH"),
            ("/healthz", JSON, "{}", 405, "METHOD_NOT_ALLOWED"),
            ("/actions/demo/fail", "content-type: text/plain\r\n", "{}", 415, "NO_JSON"),
            ("/actions/demo/fail", "", "{}", 415, "NO_JSON"),
            ("/actions/demo/fail", "content-type: application/json\r\nx-task-id: 7\r\n", "{}", 400, "BAD_ID"),
        ] {
            let answer = post(&address, path, headers, body);
            assert_eq!((answer.status, answer.code().as_str()), (status, code), "{path} {body}: {}", answer.body);
        }
        let failed = post(&address, "/actions/demo/fail", JSON, "{}").json();
        assert!(failed["error"]["message"].as_str().unwrap().contains("boom"), "{failed}");
        let not_so = get(&address, "/actions/demo/fail");
        assert_eq!((not_so.status, &*not_so.code()), (405, "METHOD_NOT_ALLOWED"));
        assert_eq!(not_so.header("allow"), Some("post"));
        for path in ["/healthz", "/readyz"] {
            assert_eq!(get(&address, path).status, 200, "{path}");
        }
        gateway.stop();
        service.stop();
    }

    fn a_token_is_asked_for_if_there_is_one(ground: &Ground) {
        let service = service(ground, "streams");
        let (gateway, address) = gateway(ground, &[], Some("sesame"));
        let with = |token: &str| {
            let headers = format!("{JSON}{token}");
            post(&address, "/actions/demo/batch/count", &headers, "{\"items\":[]}")
        };
        for token in ["", "authorization: Bearer other\r\n", "authorization: Basic sesame\r\n", "authorization: Bearer\r\n"] {
            let refused = with(token);
            assert_eq!((refused.status, refused.header("www-authenticate")), (401, Some("bearer")), "{token}");
            assert!(!refused.body.contains("sesame"));
        }
        assert_eq!(with("authorization: Bearer sesame\r\n").status, 200);
        assert_eq!(with("authorization: bearer sesame\r\n").status, 200);
        // A probe has none.
        assert_eq!(get(&address, "/healthz").status, 200);
        gateway.stop();
        service.stop();
    }

    /// One is under way: another is turned away at once. When the gateway is stopped, the one is answered.
    fn what_is_under_way_is_bounded_and_answered(ground: &Ground) {
        let service = service(ground, "streams");
        let (gateway, address) = gateway(ground, &["--concurrency", "1", "--shutdown-timeout", "600"], None);
        // Neither one that says nothing nor one that may say more holds up the end.
        let _silent = TcpStream::connect(&address).unwrap();
        let mut idle = connect(&address, &format!("GET /healthz HTTP/1.1\r\nhost: {address}\r\n\r\n"));
        idle.read_exact(&mut [0; 16]).unwrap();
        let slow = connect(&address, &text(&address, "/actions/demo/slow", JSON, "{}"));
        eventually("it has begun", || ground.path("began").exists().then_some(()));
        let busy = post(&address, "/actions/demo/batch/count", JSON, "{\"items\":[]}");
        assert_eq!((busy.status, busy.code().as_str(), busy.header("retry-after")), (503, "BUSY", Some("1")));
        gateway.signal(Signal::TERM);
        eventually("it takes no more", || TcpStream::connect(&address).is_err().then_some(()));
        ground.file("go_on", "");
        let answer = came(slow);
        assert_eq!((answer.status, answer.body.as_str()), (200, "{}"));
        let printed = gateway.ended().ok().jsons();
        assert_eq!(printed.last().unwrap()["event"], "stopped");
        service.stop();
    }

    /// Its call is given up, and its slot is free.
    fn who_leaves_makes_room(ground: &Ground) {
        let service = service(ground, "streams");
        let (gateway, address) = gateway(ground, &["--concurrency", "1"], None);
        let slow = connect(&address, &text(&address, "/actions/demo/slow", JSON, "{}"));
        eventually("it has begun", || ground.path("began").exists().then_some(()));
        drop(slow);
        eventually("there is room", || {
            let answer = post(&address, "/actions/demo/batch/count", JSON, "{\"items\":[]}");
            (answer.status == 200).then_some(())
        });
        ground.file("go_on", "");
        gateway.stop();
        service.stop();
    }

    fn a_body_that_does_not_come_is_not_waited_for(ground: &Ground) {
        let words = ["--service", "demo", "--read-timeout", "0.5"];
        let (gateway, address) = gateway(ground, &words, None);
        let half = text(&address, "/actions/demo/run", JSON, "{\"a\":1}");
        let slow = connect(&address, &half[..half.len() - 1]);
        let answer = came(slow);
        assert_eq!((answer.status, answer.code().as_str()), (408, "SLOW_BODY"));
        gateway.stop();
    }

    fn an_address_that_is_taken_is_said(ground: &Ground) {
        ground.run(&["action", "gateway", "--read-timeout", "0"]).exits(2);
        ground.run(&["action", "gateway", "--allow-host", "a b"]).exits(2);
        ground.run(&["action", "gateway", "--allow-origin", "app.example"]).exits(2);
        ground.run(&["action", "gateway", "--addr", "nowhere"]).exits(2);
        ground.run(&["action", "gateway", "--max-body", "1"]).exits(2);
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap().to_string();
        let said = ground.run(&["action", "gateway", "--addr", &address, "--insecure-no-auth"]).exits(6).stderr;
        assert!(said.contains("cannot serve actions"), "{said}");
    }
}

/// A store that stands still holds nobody up for longer than is waited for an answer.
#[test]
fn sending_counts_too() {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let ground = Ground::url(server.url());
    let (gateway, address) = gateway(&ground, &["--wait", "0.5", "--service", "demo"], None);
    server
        .say::<()>(&["CLIENT", "PAUSE", "60000", "WRITE"])
        .unwrap();
    let answer = post(&address, "/actions/demo/run", JSON, "{}");
    assert_eq!((answer.status, answer.code().as_str()), (504, "NO_ANSWER"));
    assert!(answer.body.contains("after 500 ms"), "{}", answer.body);
    server.say::<()>(&["CLIENT", "UNPAUSE"]).unwrap();
    gateway.stop();
}
