//! Audit trails: an entry comes before its change, and a file (`meshwork context audit --to`) has each entry once, whenever
//! the command is killed.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use meshwork_test_servers::plain::Plain;
use meshwork_test_servers::servers::RealServer;

use crate::common::{Ground, eventually, on_both};

fn change(ground: &Ground, how: &str) {
    let word = ["context", how, "7", "reader", "1"];
    ground.run(&word).ok();
}

#[test]
fn a_file_has_each_entry_once() {
    on_both(|ground| {
        ground.run(&["context", "create", "--id", "7"]).ok();
        let to_file = ["context", "audit", "7", "--to", "trail.jsonl"];
        let file = ground.path("trail.jsonl");
        ground.run(&to_file).ok();
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);

        // A killed process left a part of its last line.
        change(ground, "grant");
        ground.run(&to_file).ok();
        let whole = fs::read_to_string(&file).unwrap();
        fs::write(&file, &whole[..whole.len() - 10]).unwrap();
        let follow = ground.start(&[&to_file[..], &["-f"]].concat());
        eventually("the line is complete again", || {
            (fs::read_to_string(&file).unwrap() == whole).then_some(())
        });
        let busy = ground.run(&to_file).exits(2).stderr;
        assert!(
            busy.contains("trail.jsonl is being written by another process"),
            "{busy}"
        );
        change(ground, "revoke");
        eventually("a new entry comes", || {
            let lines = fs::read_to_string(&file).unwrap();
            (lines.lines().count() > whole.lines().count()).then_some(())
        });
        follow.kill();

        ground.run(&to_file).ok();
        let listed = ground.run(&["context", "audit", "7", "--json"]).ok().stdout;
        assert_eq!(fs::read_to_string(&file).unwrap(), listed);
    });
}

#[test]
fn a_file_of_another_kind_stays_as_it_is() {
    on_both(|ground| {
        ground.run(&["context", "create", "--id", "7"]).ok();
        for text in [
            "hello",
            "hello\n",
            "{\"a\":1}",
            "{\"a\":1}\n",
            "{\"id\":\"x\"}\n",
        ] {
            let file = ground.file("other", text);
            let said = ground
                .run(&["context", "audit", "7", "--to", "other"])
                .exits(2)
                .stderr;
            assert!(
                said.contains("other contains something else than an audit trail"),
                "{said}"
            );
            assert_eq!(fs::read_to_string(file).unwrap(), text);
        }
        let said = ground
            .run(&["context", "audit", "7", "--to", "no/such/folder"])
            .exits(2)
            .stderr;
        assert!(said.contains("cannot write no/such/folder"), "{said}");
        let both = ["context", "audit", "7", "--to", "other", "--limit", "3"];
        ground.run(&both).exits(2);
    });
}

/// Changes by the command in context 7, in which job 1 has failed, 2 is delayed and 3 waits.
pub(super) const COMMANDS: [&str; 22] = [
    "job enqueue a.rhai",
    "run a.rhai",
    "job cancel 2 --no-wait",
    "job cancel 2 --force",
    "job cancel --all --yes",
    "job retry 1",
    "job retry --all --yes",
    "job run-now 2",
    "job set 2 --priority high",
    "job delete 2",
    "job delete --all --yes",
    "job approve budget",
    "dead retry 1",
    "dead retry --all --yes",
    "dead delete 1",
    "dead delete --all --yes",
    "queue pause osis",
    "queue resume osis",
    "queue drain osis --no-wait",
    "queue limit set osis 5",
    "queue weight osis k 3",
    "queue purge osis --yes",
];

/// The same by the API, without the context.
pub(super) const CALLS: [(&str, &str); 17] = [
    ("job.create", r#""type": "osis", "script": "1""#),
    ("job.create", r#""type": "osis", "script": "1", "id": "77""#),
    ("job.cancel", r#""id": "2""#),
    ("job.retry", r#""id": "1""#),
    ("job.run_now", r#""id": "2""#),
    ("job.set", r#""id": "2", "priority": "high""#),
    ("job.delete", r#""id": "2""#),
    ("job.cancel_many", r#""type": "osis""#),
    ("dead.retry", r#""id": "1""#),
    ("dead.delete", r#""id": "1""#),
    ("dead.retry_many", r#""type": "osis""#),
    ("dead.delete_many", r#""type": "osis""#),
    ("queue.pause", r#""queue": "osis""#),
    ("queue.resume", r#""queue": "osis""#),
    ("queue.drain", r#""queue": "osis""#),
    ("queue.limit", r#""queue": "osis", "length": 5"#),
    ("queue.purge", r#""queue": "osis""#),
];

/// Returns what a change could change.
fn seen(ground: &Ground) -> Vec<String> {
    let reads = ["job list", "dead list", "queue limit show"];
    let read = |words: &str| {
        let words: Vec<_> = words.split(' ').collect();
        let args = [&words[..], &["--context", "7", "--json"]].concat();
        ground.run(&args).ok().stdout
    };
    reads.map(read).into()
}

/// Makes context 7: job 1 has failed, 2 is delayed and 3 waits.
pub(super) fn prepare(ground: &Ground) {
    let create = ["context", "create", "--id", "7", "--layout", "prefix"];
    ground.run(&create).ok();
    ground.file("fails.rhai", "throw 1");
    let enqueue = |more: &[&str]| {
        let job = ["job", "enqueue", "fails.rhai", "--context", "7"];
        ground.run(&[&job[..], more].concat()).ok()
    };
    enqueue(&[]);
    enqueue(&["--delay", "1h"]);
    let worker = ground.worker(&["--context", "7", "--type", "osis"]);
    ground.run(&["job", "wait", "1", "--context", "7"]).exits(1);
    worker.stop();
    enqueue(&[]);
}

/// The command, the API and the pages may be killed at any moment: so the entry comes first.
#[test]
fn without_an_entry_nothing_changes() {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let ground = &Ground::url(server.url());
    prepare(ground);
    // A user of the server who may not write the trail.
    let mut plain = Plain::connect(&server.url()).unwrap();
    let user = [
        "ACL", "SETUSER", "poor", "on", ">pw", "~*", "&*", "+@all", "-xadd",
    ];
    plain.ask::<()>(&user).unwrap();
    let poor = Ground::url(server.url().replace("redis://", "redis://poor:pw@"));
    poor.file("a.rhai", "1");
    let key = ground.path(".config/meshwork/actor.key");
    let key = ["--actor-key", key.to_str().unwrap()];
    let before = seen(ground);
    assert_eq!(before[0].lines().count(), 3, "{before:?}");
    for command in COMMANDS {
        let words: Vec<_> = command.split(' ').collect();
        let words = [&words[..], &["--context", "7"], &key].concat();
        poor.run(&words).exits(3);
        assert_eq!(seen(ground), before, "{command}");
    }
    for (method, params) in CALLS {
        let params = format!("{{{params}, \"context\": 7}}");
        poor.run(&[&["rpc", method, &params][..], &key].concat())
            .exits(3);
        assert_eq!(seen(ground), before, "{method}");
    }
    let done = ground.run(&["dead", "retry", "--all", "--yes", "--context", "7"]);
    assert!(done.ok().stdout.contains("queued"));
    assert_ne!(seen(ground), before);
    let entries = ground
        .run(&["context", "audit", "7", "--json"])
        .ok()
        .jsons();
    assert_eq!(entries.last().unwrap()["what"], "retry jobs");
}
