//! Sandbox of jobs that messages of other nodes bring.

use crate::common::Ground;
use meshwork_test_servers::plain::Plain;
use meshwork_test_servers::servers::{RealServer, Tool, need};
use serde_json::{Value, json};

/// Enqueues a script in a context, as a message of another node brings it if `node` is given, and returns its id.
fn enqueue(ground: &Ground, plain: &mut Plain, node: Option<&str>, args: &[&str]) -> String {
    ground.file("s.py", "result = 1");
    let args = [
        &["job", "enqueue", "s.py", "--context", "7", "--retries", "0"],
        args,
    ]
    .concat();
    let id = ground.run(&args).ok().stdout.trim().to_owned();
    if let Some(node) = node {
        plain
            .ask::<i64>(&["HSET", &id, "mw_from_node", node])
            .expect("the record is a hash");
    }
    id
}

/// Waits for the end of a job, and returns its record.
fn ended(ground: &Ground, id: &str) -> Value {
    ground.run(&["job", "wait", id, "--context", "7"]);
    let show = ["job", "show", id, "--context", "7", "--json"];
    ground.run(&show).ok().json()
}

#[test]
fn a_job_of_another_node_is_strict_unless_an_admin_grants_more() {
    let (Some(_), Some(server)) = (need(Tool::Python), RealServer::redis().start()) else {
        return;
    };
    let ground = Ground::url(server.url());
    ground.run(&["context", "create", "--id", "7"]).ok();
    let mut plain = Plain::connect(&server.url_of(7)).unwrap();
    let node = "ab".repeat(32);
    for (granted, profile) in [
        (None, "strict"),
        (Some("standard"), "standard"),
        (Some("open"), "open"),
        (Some("strict"), "strict"),
    ] {
        if let Some(granted) = granted {
            let set = ["context", "set", "7", "--sandbox", granted, "--json"];
            ground.run(&set).ok();
        }
        let [foreign, unreadable] =
            [&*node, ""].map(|node| enqueue(&ground, &mut plain, Some(node), &[]));
        let own = enqueue(&ground, &mut plain, None, &[]);
        let lax = ["--sandbox", "open"];
        let lax = enqueue(&ground, &mut plain, Some(&node), &lax);
        let worker = ["--type", "python", "--context", "7", "--sandbox", "open"];
        let worker = ground.confining_worker(&worker);
        for (id, expected) in [(&foreign, profile), (&unreadable, profile), (&own, "open")] {
            let job = ended(&ground, id);
            assert_eq!(job["usage"]["sandbox"], expected, "{granted:?}: {job}");
        }
        let job = ended(&ground, &lax);
        match profile {
            "open" => assert_eq!(job["usage"]["sandbox"], "open", "{job}"),
            _ => {
                let fault = format!(
                    "the job asks for the sandbox `open`, but the origin of the job on another node requires `{profile}`"
                );
                assert_eq!(job["error"], json!(fault), "{job}");
            }
        }
        worker.stop();
    }
    let audit = ground
        .run(&["context", "audit", "7", "--json"])
        .ok()
        .jsons();
    let change = audit.iter().find(|entry| entry["object"] == "sandbox");
    let change = change.unwrap_or_else(|| panic!("{audit:?}"));
    assert_eq!(
        (&change["before"], &change["after"]),
        (&json!("strict"), &json!("standard"))
    );
}

#[test]
fn only_an_admin_grants_a_sandbox() {
    let ground = Ground::embedded().unwrap();
    ground.run(&["context", "create", "--id", "7"]).ok();
    ground.run(&["actor", "create", "--key", "bob.key"]).ok();
    let set = ["context", "set", "7", "--sandbox", "open"];
    let refused = ground.run(&[&set[..], &["--key", "bob.key"]].concat());
    assert_ne!(refused.code, Some(0), "{refused:?}");
    let unknown = ground.run(&["context", "set", "7", "--sandbox", "none"]);
    assert!(
        unknown.stderr.contains("`none` is no sandbox profile"),
        "{unknown:?}"
    );
    let nothing = ground.run(&["context", "set", "7"]);
    assert!(nothing.stderr.contains("--sandbox"), "{nothing:?}");
    let shown = ["context", "show", "7", "--json"];
    assert_eq!(ground.run(&shown).ok().json()["sandbox"], "strict");
}
