//! Jobs of contexts by the command: `job`, `run`, `worker` and `supervisor --worker`, on servers of their own and on the
//! embedded engine.

use crate::common::{Done, Ground, Running, eventually, json as of_line, on_both};
use meshwork_test_servers::plain::Plain;
use meshwork_test_servers::servers::RealServer;
use serde_json::json;

/// Runs a command as the actor of a key file.
fn as_actor(ground: &Ground, name: &str, args: &[&str]) -> Done {
    let file = format!("{name}.key");
    ground.run(&[args, &["--actor-key", &file]].concat())
}

/// Makes a context, whose creator is also its executor.
fn context(ground: &Ground, id: &str) {
    ground.run(&["context", "create", "--id", id]).ok();
}

/// Starts a worker, and returns what it says when it listens.
fn worker(ground: &Ground, args: &[&str]) -> (Running, serde_json::Value) {
    let mut worker = ground.start(&[&["worker", "--json"], args].concat());
    let said = of_line(&worker.line());
    assert_eq!(said["event"], "listening");
    (worker, said)
}

#[test]
fn a_job_is_enqueued_run_and_shown() {
    on_both(|ground| {
        context(ground, "7");
        ground.file("sum.rhai", "1 + 2");
        let (runs, said) = worker(ground, &["--type", "osis", "--context", "7"]);
        assert_eq!((&said["context"], &said["runner"]), (&json!(7), &json!(1)));
        let id = ground
            .run(&["job", "enqueue", "sum.rhai", "--context", "7"])
            .ok()
            .stdout;
        assert_eq!(id, "job:1:1\n");
        for name in ["1", "1:1", "job:1:1"] {
            let done = ground.run(&["job", "wait", name, "--context", "7"]).ok();
            assert_eq!(done.stdout.trim(), "3", "{name}");
        }
        let shown = ground
            .run(&["job", "show", "1", "--context", "7", "--json"])
            .ok()
            .json();
        assert_eq!(
            (&shown["id"], &shown["caller"]),
            (&json!("job:1:1"), &json!("1"))
        );
        // A job of Hero of this name is another one.
        ground.run(&["job", "show", "job:1:1"]).exits(5);
        let named = [
            "job",
            "enqueue",
            "sum.rhai",
            "--id",
            "12:2001",
            "--depends-on",
            "1",
            "--wait",
            "--context",
            "7",
        ];
        assert_eq!(ground.run(&named).ok().stdout.trim(), "3");
        assert_eq!(
            ground
                .run(&["run", "sum.rhai", "--context", "7"])
                .ok()
                .stdout
                .trim(),
            "3"
        );
        let listed = ground
            .run(&["job", "list", "--context", "7", "--json"])
            .ok()
            .jsons();
        assert_eq!(listed.len(), 3);
        runs.stop().ok();
        // One that starts again is the same runner; a second one beside it is another.
        let (first, said) = worker(ground, &["--type", "osis", "--context", "7"]);
        assert_eq!(said["runner"], 1);
        let (second, said) = worker(ground, &["--type", "osis", "--context", "7"]);
        assert_eq!(said["runner"], 2);
        let taken = ground
            .run(&["worker", "--context", "7", "--runner", "2"])
            .exits(2)
            .stderr;
        assert!(taken.contains("there is a"), "{taken}");
        first.stop().ok();
        second.stop().ok();
        let (named, said) = worker(ground, &["--context", "7", "--runner", "2"]);
        assert_eq!(said["types"], json!(["osis"]));
        named.stop().ok();
        let trail = ground.run(&["context", "audit", "7", "--json"]).ok().stdout;
        assert!(
            trail.contains("enqueue job") && trail.contains("job:12:2001"),
            "{trail}"
        );
    });
}

#[test]
fn a_script_runs_in_this_process_at_the_first_use() {
    let Some(ground) = Ground::embedded() else {
        return;
    };
    ground.file("sum.rhai", "1 + 2");
    ground.run(&["context", "create"]).ok();
    assert_eq!(
        ground
            .run(&["run", "sum.rhai", "--context", "1"])
            .ok()
            .stdout
            .trim(),
        "3"
    );
}

#[test]
fn a_gate_is_opened() {
    on_both(|ground| {
        context(ground, "7");
        ground.file("sum.rhai", "1 + 2");
        let (runs, _) = worker(ground, &["--type", "osis", "--context", "7"]);
        let waits = [
            "job",
            "enqueue",
            "sum.rhai",
            "--depends-on",
            "budget",
            "--context",
            "7",
        ];
        let id = ground.run(&waits).ok().stdout;
        let status = ["job", "show", id.trim(), "--context", "7", "--json"];
        assert_eq!(
            ground.run(&status).ok().json()["status"],
            "waiting_for_prerequisites"
        );
        let opened = ground
            .run(&["job", "approve", "budget", "--context", "7"])
            .ok()
            .stdout;
        assert!(opened.contains("opened"), "{opened}");
        assert_eq!(
            ground
                .run(&["job", "wait", id.trim(), "--context", "7"])
                .ok()
                .stdout
                .trim(),
            "3"
        );
        let again = ground
            .run(&["job", "approve", "budget", "--context", "7"])
            .ok()
            .stdout;
        assert!(
            again.contains("open") && !again.contains("opened"),
            "{again}"
        );
        runs.stop().ok();
    });
}

#[test]
fn one_process_serves_two_contexts_in_both_layouts() {
    on_both(|ground| {
        context(ground, "7");
        ground
            .run(&["context", "create", "--id", "8", "--layout", "prefix"])
            .ok();
        ground.file("sum.rhai", "1 + 2");
        let (mut runs, first) = worker(ground, &["--type", "osis", "--context", "all"]);
        let second = of_line(&runs.line());
        assert_eq!(
            (&first["context"], &second["context"]),
            (&json!(7), &json!(8))
        );
        for id in ["7", "8"] {
            let enqueued = ["job", "enqueue", "sum.rhai", "--context", id, "--wait"];
            assert_eq!(ground.run(&enqueued).ok().stdout.trim(), "3");
        }
        let shown = ground
            .run(&["job", "show", "1", "--context", "8", "--json"])
            .ok()
            .json();
        assert_eq!(shown["id"], "{ctx:8}:job:1:1");
        runs.stop().ok();
    });
}

/// The table "Message flow": a message with a job from context 7 to context 8, and its result, with our workers.
#[test]
fn a_message_has_its_job_run_and_its_result_comes_back() {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let ground = Ground::url(server.url());
    context(&ground, "7");
    context(&ground, "8");
    ground.file("load.rhai", "5");
    let mut supervisor = ground.start(&[
        "supervisor",
        "--json",
        "--context",
        "7,8",
        "--worker",
        "osis",
    ]);
    assert_eq!(of_line(&supervisor.line())["event"], "ready");
    let send = [
        "message",
        "send",
        "8",
        "--job",
        "load.rhai",
        "--context",
        "7",
        "--wait",
        "--json",
    ];
    let result = ground.run(&send).ok().json();
    assert_eq!(
        (&result["status"], &result["mw_re"]),
        (&json!("processed"), &json!("1:1"))
    );
    assert_eq!(result["job"][0]["result"], json!({"result": "5"}));
    let mut plain = Plain::connect(&server.url_of(8)).unwrap();
    let job = ["HGET", "job:1:1"];
    let field =
        |plain: &mut Plain, name: &str| plain.ask::<String>(&[&job[..], &[name]].concat()).unwrap();
    assert_eq!(field(&mut plain, "status"), "finished");
    assert_eq!(field(&mut plain, "result"), r#"{"result":"5"}"#);
    assert!(
        field(&mut plain, "updated_at").parse::<u32>().is_ok(),
        "whole seconds"
    );
    assert_eq!(
        plain
            .ask::<String>(&["HGET", "message:1:1", "status"])
            .unwrap(),
        "processed"
    );
    let mut plain = Plain::connect(&server.url_of(7)).unwrap();
    assert_eq!(
        plain
            .ask::<String>(&["HGET", "message:1:1", "status"])
            .unwrap(),
        "processed"
    );
    supervisor.stop().ok();
}

#[test]
fn who_may_not_is_refused_and_noted() {
    on_both(|ground| {
        context(ground, "7");
        for name in ["reader", "executor", "stranger"] {
            ground
                .run(&["actor", "create", "--key", &format!("{name}.key")])
                .ok();
        }
        ground.run(&["context", "grant", "7", "reader", "2"]).ok();
        ground.run(&["context", "grant", "7", "executor", "3"]).ok();
        ground.file("sum.rhai", "1 + 2");
        let later = "job enqueue sum.rhai --delay 1h --context 7";
        let later: Vec<_> = later.split(' ').collect();
        ground.run(&later).ok();
        let refused: [(&[&str], &[&str]); 6] = [
            (&later, &["reader", "executor", "stranger"]),
            (
                &["job", "cancel", "1:1", "--context", "7"],
                &["reader", "executor", "stranger"],
            ),
            (
                &["job", "delete", "1:1", "--context", "7"],
                &["reader", "executor", "stranger"],
            ),
            (
                &["job", "approve", "g", "--context", "7"],
                &["reader", "executor", "stranger"],
            ),
            (&["job", "show", "1:1", "--context", "7"], &["stranger"]),
            (
                &["worker", "--type", "osis", "--context", "7"],
                &["reader", "stranger"],
            ),
        ];
        let mut many = 0;
        for (command, names) in refused {
            for name in names {
                let said = as_actor(ground, name, command).exits(1).stderr;
                assert!(
                    said.contains("may not") && said.contains("in context 7"),
                    "{command:?}: {said}"
                );
                many += 1;
            }
        }
        as_actor(ground, "reader", &["job", "show", "1:1", "--context", "7"]).ok();
        let refused = ground
            .run(&["context", "audit", "7", "--refused", "--json"])
            .ok()
            .jsons();
        let counts = refused.iter().map(|row| row["count"].as_u64().unwrap());
        assert_eq!(counts.sum::<u64>(), many);
        ground.run(&["job", "cancel", "1", "--context", "7"]).ok();
        let trail = ground
            .run(&["context", "audit", "7", "--json"])
            .ok()
            .jsons();
        let last = trail.last().unwrap();
        assert_eq!(
            (&last["what"], &last["object"]),
            (&json!("cancel jobs"), &json!("job:1:1"))
        );
    });
}

/// Commands, their exit codes, and a word of the error.
const BAD_INPUT: [(&str, i32, &str); 16] = [
    (
        "job enqueue sum.rhai --context 0",
        2,
        "reserved for the node",
    ),
    (
        "job enqueue sum.rhai --context 9",
        5,
        "there is no context 9",
    ),
    ("job enqueue --jsonl jobs.jsonl --context 7", 2, "--jsonl"),
    ("job enqueue sum.rhai --batch b --context 7", 2, "--batch"),
    ("job enqueue sum.rhai --id x --context 7", 2, "x"),
    (
        "job enqueue sum.rhai --id 4294967296 --context 7",
        2,
        "4294967296",
    ),
    (
        "job enqueue sum.rhai --depends-on 12:1 --context 7",
        5,
        "does not exist",
    ),
    ("job show context:7 --context 7", 2, "context:7"),
    ("job show 1 --context 7", 5, "job:1:1"),
    ("job approve g", 2, "--context"),
    (
        "job approve job:1:1 --context 7",
        2,
        "a gate has any other name",
    ),
    ("run sum.rhai --each sum.rhai --context 7", 2, "--each"),
    ("worker --context 7", 2, "--type"),
    ("worker --context 7 --runner 9", 5, "there is no runner 9"),
    ("worker --type osis --context 7,x", 2, "x"),
    ("worker --type osis --runner 9", 2, "--context"),
];

#[test]
fn bad_input_is_refused_by_name() {
    let Some(ground) = Ground::embedded() else {
        return;
    };
    context(&ground, "7");
    ground.file("sum.rhai", "1 + 2");
    ground.file("jobs.jsonl", r#"{"script": "1", "type": "osis"}"#);
    let many: Vec<String> = (1..=1001).map(|id: u32| id.to_string()).collect();
    for (command, exit, word) in BAD_INPUT {
        let args: Vec<_> = command.split(' ').collect();
        let said = ground.run(&args).exits(exit).stderr;
        assert!(said.contains(word), "{command}: {said}");
    }
    let said = ground
        .run(&["worker", "--type", "osis", "--context", &many.join(",")])
        .exits(2)
        .stderr;
    assert!(said.contains("at most 1000 contexts"), "{said}");
    let jobs = ground
        .run(&["job", "list", "--context", "7", "--json"])
        .ok()
        .stdout;
    assert!(jobs.is_empty(), "nothing was changed: {jobs}");
}

#[test]
fn a_backlog_in_one_context_holds_up_no_other() {
    on_both(|ground| {
        ["7", "8"].iter().for_each(|id| context(ground, id));
        ground.file("sum.rhai", "1 + 2");
        let go = ground.path("go");
        let script = format!(
            "#!/bin/sh\nwhile [ ! -e '{}' ]; do sleep 0.05; done\n",
            go.display()
        );
        ground.file("wait.sh", script);
        let types = [
            "--type",
            "osis,exec",
            "--concurrency",
            "2",
            "--context",
            "7,8",
        ];
        let (mut runs, _) = worker(ground, &types);
        assert_eq!(of_line(&runs.line())["event"], "listening");
        let later = ["job", "enqueue", "wait.sh", "--context", "7"];
        (0..5).for_each(|_| drop(ground.run(&later).ok()));
        // Context 7 has one of two slots: the other is left for contexts that run nothing.
        let state = |id: &str| {
            let show = ["job", "show", id, "--context", "7", "--json"];
            ground.run(&show).ok().json()["status"].clone()
        };
        eventually("one runs", || (state("1") == "started").then_some(()));
        let enqueued = ["job", "enqueue", "sum.rhai", "--context", "8", "--wait"];
        assert_eq!(ground.run(&enqueued).ok().stdout.trim(), "3");
        assert_eq!(
            (state("1"), state("2")),
            (json!("started"), json!("dispatched"))
        );
        ground.file("go", "");
        ground.run(&["job", "wait", "5", "--context", "7"]).ok();
        runs.stop().ok();
    });
}

/// Servers of their own for what concerns all contexts of a store.
fn on_an_own_store(test: impl Fn(&Ground)) {
    if let Some(server) = RealServer::redis().start() {
        test(&Ground::url(server.url()));
    }
    if let Some(ground) = Ground::embedded() {
        test(&ground);
    }
}

#[test]
fn contexts_of_others_are_skipped() {
    on_an_own_store(|ground| {
        context(ground, "7");
        ground.run(&["actor", "create", "--key", "ann.key"]).ok();
        as_actor(ground, "ann", &["context", "create", "--id", "9"]).ok();
        ground.file("sum.rhai", "1 + 2");
        let mut worker = ground.start(&["worker", "--context", "all", "--type", "osis", "--json"]);
        let said = of_line(&worker.line());
        assert_eq!(
            (&said["event"], &said["context"]),
            (&json!("listening"), &json!(7))
        );
        let done = ground
            .run(&["job", "enqueue", "sum.rhai", "--wait", "--context", "7"])
            .ok();
        assert_eq!(done.stdout.trim(), "3");
        let done = worker.stop();
        assert!(done.stderr.contains("context skipped"), "{}", done.stderr);

        // A context that is named has to be the actor's, and so has at least one of all.
        let named = ["worker", "--context", "9", "--type", "osis"];
        ground.run(&named).exits(1);
        let all = ["worker", "--context", "all", "--type", "osis"];
        ground
            .run(&["context", "revoke", "7", "executor", "1"])
            .ok();
        let said = ground.run(&all).exits(2).stderr;
        assert!(said.contains("runs jobs in no context"), "{said}");
    });
}

#[test]
fn a_supervisor_skips_what_its_worker_may_not_serve() {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let ground = Ground::url(server.url());
    context(&ground, "7");
    ground.run(&["actor", "create", "--key", "ann.key"]).ok();
    as_actor(&ground, "ann", &["context", "create", "--id", "9"]).ok();
    ground.file("sum.rhai", "1 + 2");
    let mut supervisor = ground.start(&["supervisor", "--worker", "osis", "--json"]);
    let said = of_line(&supervisor.line());
    assert_eq!(
        (&said["event"], &said["contexts"]),
        (&json!("ready"), &json!([7, 9]))
    );
    let done = ground
        .run(&["job", "enqueue", "sum.rhai", "--wait", "--context", "7"])
        .ok();
    assert_eq!(done.stdout.trim(), "3");
    supervisor.stop();
}
