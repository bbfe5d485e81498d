//! Sandboxes by the real command: the default by origin, requests of queues and jobs, children, refusals.

use crate::common::{Ground, on_all_data};
use serde_json::{Value, json};

/// Returns a script whose result is `open` if it reaches a file of the test, else `confined`.
fn probe(ground: &Ground) -> String {
    let mark = ground.file("mark", "");
    let mark = mark.display();
    format!("import os\nresult = 'open' if os.path.exists('{mark}') else 'confined'")
}

fn show(ground: &Ground, id: &str) -> Value {
    ground.run(&["job", "show", id, "--json"]).ok().json()
}

/// Enqueues a Python script, waits for its end, and returns its record.
fn ended(ground: &Ground, script: &str, args: &[&str]) -> Value {
    ground.file("s.py", script);
    let args = [&["job", "enqueue", "s.py", "--json"], args].concat();
    let id = ground.run(&args).ok().json()["id"].clone();
    let id = id.as_str().unwrap();
    ground.run(&["job", "wait", id, "--json"]);
    show(ground, id)
}

on_all_data! {
    fn the_default_follows_the_store(ground: &Ground) {
        let worker = ground.confining_worker(&["--type", "python"]);
        let job = ended(ground, &probe(ground), &[]);
        let is_private = ground.is_private();
        assert_eq!(job["output"], if is_private { "open" } else { "confined" });
        let usage = &job["usage"];
        assert_eq!(usage["sandbox"], if is_private { "open" } else { "standard" });
        assert_eq!(usage["limits"]["processes"], if is_private { Value::Null } else { json!(256) });
        assert!(usage["peak_memory"].as_u64().is_some_and(|bytes| bytes > 1 << 20), "{usage}");
        let id = job["id"].as_str().unwrap();
        let text = ground.run(&["job", "show", id]).ok().stdout;
        assert!(text.contains("\nsandbox ") && text.contains(" user, "), "{text}");
        let events = ground.run(&["events", "--job", id, "--json"]).ok().jsons();
        assert!(events.iter().any(|event| event["event"] == "usage"), "{events:?}");
        let said = worker.stop().stderr;
        assert_eq!(said.contains("--sandbox open"), !is_private, "{said}");
    }

    fn run_confines_only_the_jobs_of_others(ground: &Ground) {
        let script = format!("add_child('result = 1', type='python')\n{}", probe(ground));
        ground.file("s.py", &script);
        let own = ground.run(&["run", "s.py", "--json"]).ok().json();
        assert_eq!(own["output"], "open");
        let confined = ["run", "s.py", "--sandbox", "standard", "--memory", "512M", "--json"];
        let confined = ground.run(&confined).ok().json();
        let confined = show(ground, confined["id"].as_str().unwrap());
        assert_eq!(confined["output"], "confined");
        assert_eq!(confined["requested_sandbox"], "standard,memory:536870912");
    }

    fn run_asks_its_own_worker_for_more_than_defaults(ground: &Ground) {
        ground.file("s.py", "result = 1");
        for profile in ["standard", "strict"] {
            let args = ["run", "s.py", "--sandbox", profile, "--disk", "2G", "--processes", "1000", "--json"];
            let job = ground.run(&args).ok().json();
            let limits = &show(ground, job["id"].as_str().unwrap())["usage"]["limits"];
            assert_eq!((&limits["disk"], &limits["processes"]), (&json!(2_u64 << 30), &json!(1000)));
        }
    }

    fn run_says_that_a_running_worker_has_a_sandbox_of_its_own(ground: &Ground) {
        ground.file("s.py", probe(ground));
        let note = "--sandbox open is for a worker that this command starts";
        let alone = ground.run(&["run", "s.py", "--sandbox", "open"]).ok();
        assert!(alone.stdout.starts_with("open") && !alone.stderr.contains(note), "{}", alone.stderr);
        let _worker = ground.confining_worker(&["--type", "python", "--sandbox", "standard"]);
        ground.file("a.txt", "");
        for (args, says) in [
            (&["--sandbox", "open"][..], true),
            (&["--sandbox", "open", "--each", "a.txt"], true),
            (&[], false),
        ] {
            let done = ground.run(&[&["run", "s.py"], args].concat()).ok();
            assert!(done.stdout.contains("confined"), "{}", done.stdout);
            assert_eq!(done.stderr.contains(note), says, "{}", done.stderr);
        }
    }

    fn run_shows_paths_to_its_own_jobs(ground: &Ground) {
        let script = probe(ground);
        ground.file("s.py", script);
        let mark = ground.path("mark").canonicalize().unwrap();
        let mark = mark.to_str().unwrap();
        let shown = ["run", "s.py", "--sandbox", "standard", "--read", mark];
        assert_eq!(ground.run(&shown).ok().stdout, "open\n");
        let unconfined = ground.run(&["run", "s.py", "--read", mark]).exits(2);
        assert!(unconfined.stderr.contains("add --sandbox standard"), "{}", unconfined.stderr);
        let missing = ground.run(&["run", "s.py", "--sandbox", "strict", "--write", "nowhere"]).exits(2);
        assert!(missing.stderr.contains("--write nowhere"), "{}", missing.stderr);
    }

    fn a_queue_and_a_job_can_only_narrow(ground: &Ground) {
        let set = ["queue", "limit", "set", "python", "--create", "--sandbox", "standard", "--cpu", "20s", "--json"];
        let set = ground.run(&set).ok().json();
        assert_eq!((&set["sandbox"], &set["run_limits"]), (&json!("standard"), &json!({"cpu": 20_000})));
        let _worker = ground.confining_worker(&["--type", "python", "--sandbox", "open", "--memory", "1G"]);
        let job = ended(ground, &probe(ground), &["--cpu", "10s"]);
        assert_eq!((&job["output"], &job["usage"]["limits"]["cpu"]), (&json!("confined"), &json!(10_000)));
        for (args, fault) in [
            (&["--sandbox", "open"][..], "the job asks for the sandbox `open`, but the queue requires `standard`"),
            (&["--cpu", "21s"], "the job asks for a cpu limit of 21 s, but the queue allows 20 s"),
            (&["--memory", "2G"], "the job asks for a memory limit of 2 GiB, but the worker allows 1 GiB"),
        ] {
            let job = ended(ground, "result = 1", &[args, &["--retries", "3"]].concat());
            assert_eq!((&job["error"], &job["dead"]), (&json!(fault), &json!("permanent")));
            assert_eq!((&job["attempts"], &job["usage"]), (&json!(1), &Value::Null));
        }
        let gone = ground.run(&["queue", "limit", "remove", "python", "--sandbox", "--json"]).ok().json();
        assert_eq!((&gone["sandbox"], &gone["run_limits"]), (&Value::Null, &json!({})));
        assert_eq!(ended(ground, &probe(ground), &[])["output"], "open");
    }

    fn a_child_is_never_laxer_than_its_parent(ground: &Ground) {
        let _confining = ground.confining_worker(&["--type", "python", "--group", "safe", "--sandbox", "standard"]);
        let script = json!(probe(ground)).to_string();
        let parent = format!(
            "a = add_child({script}, group='other')\nb = add_child({script}, group='other', sandbox='strict')\nresult = [a, b]"
        );
        let parent = ended(ground, &parent, &["--group", "safe", "--sandbox", "standard"]);
        assert_eq!(parent["error"], Value::Null);
        let children: Vec<_> = parent["output"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
        assert_eq!(show(ground, children[0])["requested_sandbox"], "parent:standard");
        assert_eq!(show(ground, children[1])["requested_sandbox"], "strict,parent:standard");
        let _open = ground.confining_worker(&["--type", "python", "--group", "other", "--sandbox", "open"]);
        ground.run(&["job", "wait", children[0]]).ok();
        assert_eq!(show(ground, children[0])["output"], "confined");
        let lax = ended(ground, "add_child('1', sandbox='open')", &["--group", "safe"]);
        let error = lax["error"].as_str().unwrap();
        assert!(error.contains("the parent of the job requires `standard`"), "{error}");
    }
}

#[test]
fn a_run_that_exceeds_a_limit_ends_by_its_name() {
    let ground = Ground::embedded().unwrap();
    let _worker = ground.confining_worker(&["--type", "python"]);
    let endless = "while True: pass";
    let job = ended(
        &ground,
        endless,
        &["--cpu", "200ms", "--retries", "1", "--backoff", "0.1"],
    );
    let error = "cpu limit 200 ms exceeded";
    assert_eq!(
        (&job["error"], &job["dead"]),
        (&json!(error), &json!("limit"))
    );
    assert_eq!(job["attempts"], 2);
}

#[test]
fn wrong_options_are_refused_by_name() {
    let ground = Ground::embedded().unwrap();
    ground.file("s.py", "result = 1");
    for (args, words) in [
        (
            &["worker", "--type", "python", "--sandbox", "lax"][..],
            "open, standard or strict",
        ),
        (
            &["worker", "--type", "python", "--read", "/no/such/path"],
            "--read /no/such/path",
        ),
        (
            &["worker", "--type", "python", "--memory", "4K"],
            "the memory limit cannot be 4 KiB",
        ),
        (
            &["job", "enqueue", "s.py", "--memory", "much"],
            "`much` is no size",
        ),
        (
            &["job", "enqueue", "s.py", "--cpu", "1ms"],
            "the cpu limit cannot be 1 ms",
        ),
        (
            &["run", "s.py", "--sandbox", "none"],
            "open, standard or strict",
        ),
        (
            &[
                "queue", "limit", "set", "python", "--create", "--files", "1",
            ],
            "give 16 to 1048576",
        ),
    ] {
        let before = ground.stored();
        let done = ground.run(args).exits(2);
        assert!(done.stderr.contains(words), "{args:?}: {}", done.stderr);
        assert_eq!(ground.stored(), before, "{args:?}");
    }
}
