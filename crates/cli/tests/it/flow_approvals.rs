//! Answers to approvals: each is that of the holder of a key, in both layouts, on each engine.

use crate::common::{Done, Ground, eventually};
use meshwork_test_servers::servers::RealServer;

const FLOW: &str = "
flow: gates
jobs:
  ask: {approve: 'Go on?', four_eyes: true}
  named: {approve: 'Go on?', approvers: [3], needs: ask}
  last: {approve: 'Go on?', needs: named}
";

/// Runs a command as the actor of a key file.
fn by(ground: &Ground, name: &str, args: &[&str]) -> Done {
    let key = format!("{name}.key");
    ground.run(&[args, &["--context", "7", "--key", &key]].concat())
}

fn opens(ground: &Ground, flow: &str, job: &str) {
    eventually("the question is open", || {
        let view = by(ground, "ann", &["flow", "status", flow, "--json"])
            .ok()
            .json();
        let jobs = view["jobs"].as_array().unwrap();
        let open = jobs.iter().find(|it| it["question"].is_string())?;
        (open["name"] == job).then_some(())
    });
}

fn refused(ground: &Ground, name: &str, job: &str, says: &str) {
    for word in ["approve", "reject"] {
        let done = by(ground, name, &["flow", word, "1", job]);
        assert_ne!(done.code, Some(0));
        assert!(done.stderr.contains(says), "{name}: {}", done.stderr);
    }
}

/// Ann (1) submits, Bob (2) is an admin too, Rob (3) a reader, Eve (4) nobody.
fn people(ground: &Ground, layout: &str) {
    for name in ["ann", "bob", "rob", "eve"] {
        let key = format!("{name}.key");
        ground.run(&["actor", "create", "--key", &key]).ok();
    }
    let create = ["context", "create", "--id", "7", "--layout", layout];
    ground
        .run(&[&create[..], &["--key", "ann.key"]].concat())
        .ok();
    for (role, actor) in [("admin", "2"), ("reader", "3")] {
        let grant = ["context", "grant", "7", role, actor, "--key", "ann.key"];
        ground.run(&grant).ok();
    }
}

fn answers_are_those_of_keys(ground: &Ground, layout: &str) {
    people(ground, layout);
    ground.file("gates.yaml", FLOW);
    let worker = ["--context", "7", "--type", "osis", "--actor-key", "ann.key"];
    let _worker = ground.worker(&worker);
    by(ground, "ann", &["flow", "submit", "gates.yaml"]).ok();
    opens(ground, "1", "ask");
    refused(ground, "ann", "ask", "asks for another actor (`four_eyes`)");
    refused(ground, "rob", "ask", "may not answer the approval");
    refused(ground, "eve", "ask", "actor 4 may not answer the approval");
    // Nobody types the number of another one.
    let typed = ["flow", "approve", "1", "ask", "--as", "2"];
    by(ground, "ann", &typed).exits(2);
    by(ground, "bob", &["flow", "approve", "1", "ask"]).ok();
    opens(ground, "1", "named");
    refused(
        ground,
        "bob",
        "named",
        "its approvers are named in the flow",
    );
    by(ground, "rob", &["flow", "reject", "1", "named"]).ok();
    by(ground, "ann", &["flow", "status", "1", "--wait"]).exits(1);
    // Who retries a flow is a submitter too, and the first one stays it.
    by(
        ground,
        "bob",
        &["flow", "retry", "1", "--from", "ask", "--detach"],
    )
    .ok();
    opens(ground, "1", "ask");
    refused(ground, "ann", "ask", "four_eyes");
    refused(ground, "bob", "ask", "four_eyes");
    let grant = ["context", "grant", "7", "admin", "4", "--key", "ann.key"];
    ground.run(&grant).ok();
    // Without a name it answers the only open one.
    by(ground, "eve", &["flow", "approve", "1"]).ok();
    opens(ground, "1", "named");
    by(ground, "rob", &["flow", "cancel", "1"]).exits(1);
    by(ground, "ann", &["flow", "cancel", "1"]).ok();
    by(ground, "ann", &["flow", "status", "1", "--wait"]).exits(1);
    let none = by(ground, "ann", &["flow", "approve", "1"]).exits(1);
    assert!(
        none.stderr.contains("no approval of the flow 1 is open"),
        "{}",
        none.stderr
    );
    by(ground, "ann", &["flow", "delete", "1"]).ok();
    let audit = ["context", "audit", "7", "--json", "--key", "ann.key"];
    has_entries(&ground.run(&audit).ok().jsons());
    let refused = ground.run(&[&audit[..], &["--refused"]].concat()).ok();
    let refused = refused.jsons();
    for (who, says) in [("actor 1", "four_eyes"), ("actor 3", "may not cancel")] {
        let has = |row: &serde_json::Value| row["who"] == who && row.to_string().contains(says);
        assert!(refused.iter().any(has), "{who} {says}: {refused:#?}");
    }
}

/// The trail names the actors who answered.
fn has_entries(trail: &[serde_json::Value]) {
    let has = |who: &str, what: &str, says: &str| {
        let found = trail.iter().any(|entry| {
            let text = entry.to_string();
            entry["who"] == who && entry["what"] == what && text.contains(says)
        });
        assert!(found, "{who} {what} {says}: {trail:#?}");
    };
    has("actor 1", "submit", "flow:1");
    has("actor 2", "approve", "ask");
    has("actor 3", "reject", "named");
    has("actor 2", "retry", "flow:1");
    has("actor 4", "approve", "ask");
    has("actor 1", "cancel", "flow:1");
    has("actor 1", "delete", "flow:1");
}

#[test]
fn answers_are_those_of_keys_on_the_embedded_engine() {
    for layout in ["db", "prefix"] {
        let Some(ground) = Ground::embedded() else {
            return;
        };
        answers_are_those_of_keys(&ground, layout);
    }
}

#[test]
fn answers_are_those_of_keys_on_servers() {
    for server in [RealServer::redis(), RealServer::valkey()] {
        let Some(server) = server.start() else {
            continue;
        };
        answers_are_those_of_keys(&Ground::url(server.url()), "db");
    }
    for server in [RealServer::redis(), RealServer::valkey()] {
        let Some(server) = server.start() else {
            continue;
        };
        answers_are_those_of_keys(&Ground::url(server.url()), "prefix");
    }
}
