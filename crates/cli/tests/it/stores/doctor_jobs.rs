//! `meshwork doctor`: what it says of a data directory, of queues, and of workers that are gone.

use std::fs;

use crate::common::{Ground, on_all_data};
use meshwork_test_servers::plain::Plain;
use meshwork_test_servers::servers::RealServer;
use serde_json::Value;

/// The finding of a check, if there is one.
fn finding(ground: &Ground, check: &str) -> Option<Value> {
    let findings = ground.run(&["doctor", "--json"]).jsons();
    findings.into_iter().find(|one| one["check"] == check)
}

/// Its level, and what it says.
fn said(ground: &Ground, check: &str) -> Option<(String, String)> {
    let finding = finding(ground, check)?;
    let text = |name: &str| finding[name].as_str().unwrap().to_owned();
    Some((text("level"), text("what")))
}

on_all_data! {
    fn queues_that_nobody_works_for_are_named(ground: &Ground) {
        const CHECK: &str = "queues without workers";
        assert_eq!(finding(ground, CHECK), None);
        // The shared server has no append-only file, which is a problem.
        let code = ground.run(&["doctor"]).code.unwrap();
        ground.file("a.rhai", "1");
        ground.run(&["job", "submit", "a.rhai", "--type", "v", "--priority", "high"]).ok();
        for _ in 0..2 {
            ground.run(&["job", "submit", "a.rhai"]).ok();
        }
        let (level, what) = said(ground, CHECK).unwrap();
        assert_eq!(level, "warning");
        assert_eq!(what, "2, such as osis (2 waiting), v:prio:0 (1 waiting)");
        let remedy = finding(ground, CHECK).unwrap()["remedy"].to_string();
        assert!(remedy.contains("meshwork worker --type osis"), "{remedy}");
        // It changes no exit code: a worker may be started later.
        ground.run(&["doctor"]).exits(code);
        let worker = ground.worker(&["--type", "osis"]);
        let (_, what) = said(ground, CHECK).unwrap();
        assert_eq!(what, "1, such as v:prio:0 (1 waiting)");
        worker.stop();
    }
}

#[test]
fn a_data_directory_is_described() {
    let ground = Ground::embedded().unwrap();
    ground.run(&["queue", "list"]).ok();
    let level_ok = |check| {
        let (level, what) = said(&ground, check).unwrap();
        assert_eq!(level, "ok", "{what}");
        what
    };
    let free = "no process; this command opens it for itself";
    assert_eq!(level_ok("owner"), free);
    assert!(level_ok("size").contains(" MB, of which the log has "));
    for check in ["leftovers", "other files"] {
        assert_eq!(finding(&ground, check), None, "{check}");
    }
    let worker = ground.worker(&["--type", "osis"]);
    let owner = level_ok("owner");
    assert!(
        owner.starts_with("process ") && owner.ends_with("this command is a client of it"),
        "{owner}"
    );
    worker.stop();
    assert_eq!(level_ok("owner"), free);
}

#[test]
fn files_that_nobody_needs_are_named() {
    let ground = Ground::embedded().unwrap();
    ground.run(&["queue", "list"]).ok();
    let data = ground.path("data");
    for name in ["appendonly.aof.rewrite", "notes.txt"] {
        fs::write(data.join(name), "x").unwrap();
    }
    let hint = |what: &str| Some(("hint".to_owned(), what.to_owned()));
    let findings = ground.run(&["doctor", "--json"]).ok().jsons();
    let what = |check: &str| {
        let found = findings.iter().find(|one| one["check"] == check)?;
        let text = |name: &str| found[name].as_str().unwrap().to_owned();
        Some((text("level"), text("what")))
    };
    assert_eq!(what("leftovers"), hint("1, such as appendonly.aof.rewrite"));
    assert_eq!(what("other files"), hint("1, such as notes.txt"));
    // The first command has opened the directory since.
    assert_eq!(finding(&ground, "leftovers"), None);
    assert_eq!(said(&ground, "other files"), hint("1, such as notes.txt"));
}

#[test]
fn leases_and_workers_that_are_gone_are_named() {
    let Some(ground) = Ground::redis() else {
        return;
    };
    for check in ["expired leases", "workers that are gone"] {
        assert_eq!(finding(&ground, check), None, "{check}");
    }
    let broker = ground.broker();
    let keys = broker.keys();
    let far = 9_000_000_000_000_u64;
    for (at, id) in [(1_000, "j1"), (2_000, "j2"), (far, "runs")] {
        ground.raw(&format!("ZADD {} {at} {id}", keys.lease()));
    }
    let registration = |name: &str| format!("{}{name}", keys.presence_prefix());
    for (at, name) in [(1_000, "osis:default:w1"), (far, "osis:default:w2")] {
        ground.raw(&format!(
            "ZADD {} {at} {}",
            keys.registrations(),
            registration(name)
        ));
    }
    // Of another system, without an expiry.
    for (name, heartbeat) in [("sal:io:1", "2020-01-01"), ("sal:io:2", "2200-01-01")] {
        let value = format!("'{{\"last_heartbeat\": \"{heartbeat}T00:00:00Z\"}}'");
        ground.raw(&format!("SET {} {value}", registration(name)));
    }
    let (level, what) = said(&ground, "expired leases").unwrap();
    assert_eq!((&*level, &*what), ("warning", "2, such as j1, j2"));
    let (level, what) = said(&ground, "workers that are gone").unwrap();
    assert_eq!(level, "hint");
    assert_eq!(what, "2, such as osis:default:w1, sal:io:1");
}

/// Each context is named, and no exit code changes.
#[test]
fn messages_and_queues_of_contexts_that_nobody_serves_are_named() {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let ground = Ground::url(server.url());
    ground.run(&["context", "create", "--id", "7"]).ok();
    let prefix = ["context", "create", "--id", "8", "--layout", "prefix"];
    ground.run(&prefix).ok();
    for check in ["late messages", "unread messages"] {
        assert_eq!(finding(&ground, check), None, "{check}");
    }
    let code = ground.run(&["doctor"]).code.unwrap();
    let mut seven = Plain::connect(&server.url_of(7)).unwrap();
    let mut node = Plain::connect(&server.url_of(0)).unwrap();
    seven.ask::<()>(&["LPUSH", "queue:v", "job:1:1"]).unwrap();
    let late = ["ZADD", "{ctx:8}:mw:outbound", "1", "{ctx:8}:message:1:1"];
    node.ask::<()>(&late).unwrap();
    for _ in 0..100 {
        let unread = ["LPUSH", "{ctx:8}:msg_in", "{ctx:8}:message:1:2"];
        node.ask::<()>(&unread).unwrap();
    }
    let level_and_text = |check| said(&ground, check).unwrap();
    let (level, what) = level_and_text("late messages");
    assert_eq!(
        (&*level, &*what),
        ("warning", "1, such as context 8 (1 in mw:outbound)")
    );
    let (level, what) = level_and_text("unread messages");
    assert_eq!((&*level, &*what), ("hint", "1, such as context 8 (100)"));
    let (level, what) = level_and_text("queues without workers");
    assert_eq!(
        (&*level, &*what),
        ("warning", "context 7: 1, such as v (1 waiting)")
    );
    let remedy = finding(&ground, "queues without workers").unwrap()["remedy"].to_string();
    assert!(
        remedy.contains("meshwork worker --context 7 --type v"),
        "{remedy}"
    );
    ground.run(&["doctor"]).exits(code);
}

/// An export names what it leaves out.
#[test]
fn an_export_says_what_it_leaves_out() {
    let Some(ground) = Ground::embedded() else {
        return;
    };
    assert!(
        !ground
            .run(&["export", "out"])
            .ok()
            .stderr
            .contains("not exported")
    );
    ground.run(&["context", "create", "--id", "7"]).ok();
    let said = ground.run(&["export", "out"]).ok().stderr;
    assert!(
        said.contains("not exported: 1 context (7), with their jobs, flows, messages"),
        "{said}"
    );
}
