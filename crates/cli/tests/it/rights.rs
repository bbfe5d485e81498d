//! A worker whose user lacks a right of the documented rule: it is not ready until it has the right again.

use crate::common::{Ground, eventually, http, json};
use meshwork_broker::doctor::rights;
use meshwork_test_servers::servers::RealServer;

const USER: &str = "mw";

/// The status of the readiness check, and its reason.
fn readiness(address: &str) -> (u16, String) {
    let request = "GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let came = http::came(http::connect(address, request));
    (came.status, came.body)
}

#[test]
fn a_worker_that_lacks_a_right_is_not_ready() {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let set = |words: &str| {
        let words: Vec<_> = ["ACL", "SETUSER", USER]
            .into_iter()
            .chain(words.split(' '))
            .collect();
        server.say::<()>(&words).unwrap();
    };
    set(&format!("on >{USER} {}", rights(&"hero".parse().unwrap())));
    let node = Ground::url(server.url());
    let login = format!("://{USER}:{USER}@");
    let ground = Ground::url(server.url().replacen("://", &login, 1));
    for ground in [&node, &ground] {
        ground.file("a.rhai", "1");
    }
    let serve = [
        "worker",
        "--json",
        "--type",
        "osis",
        "--metrics-addr",
        "127.0.0.1:0",
    ];
    let mut worker = ground.start(&serve);
    let event = json(&worker.line());
    let url = event["metrics"].as_str().unwrap();
    let address = url.strip_prefix("http://").unwrap();
    let address = address.strip_suffix("/metrics").unwrap();
    for right in ["lpush", "rpush", "hexists", "zadd", "hmget"] {
        eventually("it is ready", || {
            (readiness(address).0 == 200).then_some(())
        });
        set(&format!("-{right}"));
        node.run(&["job", "enqueue", "a.rhai", "--id", right]).ok();
        eventually("it is not ready", || {
            let (status, why) = readiness(address);
            (status == 503 && why.contains(right)).then_some(())
        });
        set(&format!("+{right}"));
        node.run(&["job", "wait", right]).ok();
    }
    let log = worker.stop().stderr;
    assert_eq!(log.matches("lacks rights").count(), 5, "{log}");
}
