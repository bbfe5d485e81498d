//! Delays, keys, unique names, limits, pause and drain, and many jobs at once, by the real command.

use crate::common::{Ground, eventually, on_all_data};
use serde_json::{Value, json};

const OSIS: &str = "hero:q:work:type:osis";

/// Submits a script of the type osis, and returns what is printed.
fn submit(ground: &Ground, args: &[&str]) -> Value {
    ground.file("a.rhai", "1");
    let args = [&["job", "submit", "a.rhai", "--json"], args].concat();
    ground.run(&args).ok().json()
}

fn status(ground: &Ground, id: &str) -> Value {
    ground.run(&["job", "status", id, "--json"]).ok().json()
}

/// Nothing is written, and stderr says these words.
fn refused(ground: &Ground, args: &[&str], code: i32, words: &[&str]) {
    let before = ground.stored();
    let done = ground.run(args).exits(code);
    for word in words {
        assert!(done.stderr.contains(word), "{word:?}: {}", done.stderr);
    }
    assert_eq!(ground.stored(), before, "{args:?} wrote something");
}

on_all_data! {
    fn a_job_waits_for_its_time_until_somebody_says_so(ground: &Ground) {
        submit(ground, &["--id", "j1", "--in", "1h"]);
        submit(ground, &["--id", "j2", "--at", "2999-01-01T00:00:00+01:00"]);
        submit(ground, &["--id", "j3", "--at", "+0500ms"]);
        assert_eq!(status(ground, "j2")["run_at"], "2998-12-31T23:00:00.000Z");
        assert_eq!(status(ground, "j2")["next_run_at"], "2998-12-31T23:00:00.000Z");
        let text = ground.run(&["job", "status", "j1"]).ok().stdout;
        assert!(text.contains("\nnot before ") && text.contains("\nnext run "), "{text}");
        let done = ground.run(&["job", "run-now", "j1"]).ok();
        assert_eq!(done.stdout, "j1 queued\n");
        refused(ground, &["job", "run-now", "j1"], 1, &["job show"]);
        refused(ground, &["job", "run-now", "nobody"], 5, &["no job nobody"]);
        for (args, word) in [
            (&["--in", "soon"][..], "10m"),
            (&["--at", "10m"], "+10m"),
            (&["--in", "1h", "--at", "2999-01-01"], "--at"),
            (&["--debounce", "x"], "save=5s"),
            (&["--debounce", "x=5s", "--in", "1s"], "--delay"),
            (&["--unique-for", "1h"], "--unique"),
            (&["--unique", "x", "--on-duplicate", "drop"], "keep, refuse or replace"),
            (&["--key", ""], "1 to 256 bytes"),
        ] {
            refused(ground, &[&["job", "submit", "a.rhai"], args].concat(), 2, &[word]);
        }
        let _worker = ground.worker(&["--type", "osis"]);
        for id in ["j1", "j3"] {
            let job = ground.run(&["job", "wait", id, "--json"]).ok().json();
            assert_eq!(job["output"], 1, "{id}");
        }
        assert_eq!(status(ground, "j2")["status"], "dispatched");
    }

    fn one_job_of_a_name(ground: &Ground) {
        assert_eq!(submit(ground, &["--id", "j1", "--unique", "n"]), json!({"id": "j1"}));
        let kept = submit(ground, &["--unique", "n"]);
        assert_eq!(kept, json!({"id": "j1", "kept": true}));
        let args = ["job", "submit", "a.rhai", "--unique", "n", "--on-duplicate", "refuse"];
        refused(ground, &args, 1, &["job j1 has its unique name"]);
        submit(ground, &["--id", "j2", "--unique", "n", "--on-duplicate", "replace"]);
        assert_eq!(status(ground, "j1")["error"], "replaced by j2");
        assert_eq!(status(ground, "j2")["unique"], "done osis:n");
        submit(ground, &["--id", "d1", "--debounce", "d=10m"]);
        submit(ground, &["--id", "d2", "--debounce", "d=10m"]);
        assert_eq!(status(ground, "d1")["error"], "replaced by d2");
        submit(ground, &["--id", "t1", "--throttle", "t=10m"]);
        assert_eq!(submit(ground, &["--throttle", "t=10m"])["id"], "t1");
    }

    fn a_paused_queue_says_so(ground: &Ground) {
        refused(ground, &["queue", "pause", "osis"], 5, &["the queue osis does not exist yet", "--create"]);
        for set in [&["queue", "limit", "set", "osis", "5"][..], &["queue", "set", "osis", "--concurrency", "1"]] {
            refused(ground, set, 5, &["the queue osis does not exist yet", "--create"]);
        }
        let done = ground.run(&["queue", "pause", "osis", "--create"]).ok();
        assert_eq!(done.stdout, "osis paused\n");
        submit(ground, &["--id", "j1"]);
        let worker = ground.worker(&["--type", "osis"]);
        let listed = ground.run(&["queue", "list", "--json"]).ok().jsons();
        let one = listed.iter().find(|line| line["queue"] == OSIS).unwrap();
        assert_eq!((&one["paused"], &one["waiting"]), (&json!(true), &json!(1)));
        assert_eq!(status(ground, "j1")["held_by"], json!(["its queue is paused"]));
        assert!(ground.run(&["queue", "list"]).ok().stdout.contains("paused"));
        let done = ground.run(&["queue", "resume", "osis", "--json"]).ok();
        assert_eq!(done.json()["paused"], false);
        assert!(done.stderr.contains("its pause has ended"), "{}", done.stderr);
        let again = ground.run(&["queue", "resume", "osis"]).ok();
        assert!(again.stderr.contains("neither paused nor draining"), "{}", again.stderr);
        ground.run(&["job", "wait", "j1"]).ok();
        drop(worker);
    }

    fn a_drain_ends_when_the_queue_is_empty(ground: &Ground) {
        submit(ground, &["--id", "j1"]);
        submit(ground, &["--id", "j2", "--in", "1h"]);
        let closed = ground.run(&["queue", "drain", "osis", "--no-wait", "--json"]).ok().json();
        assert_eq!((&closed["waiting"], &closed["delayed"]), (&json!(1), &json!(1)));
        refused(ground, &["job", "submit", "a.rhai"], 1, &["is being drained", "queue resume"]);
        let late = ground.run(&["queue", "drain", "osis", "--timeout", "0"]).exits(4);
        assert!(late.stderr.contains("1 wait") && late.stderr.contains("resume"), "{}", late.stderr);
        ground.run(&["queue", "pause", "osis"]).ok();
        let held = ground.run(&["queue", "drain", "osis", "--timeout", "0"]).exits(4);
        assert!(held.stderr.contains("is paused"), "{}", held.stderr);
        ground.run(&["queue", "resume", "osis"]).ok();
        let _worker = ground.worker(&["--type", "osis"]);
        let done = ground.run(&["queue", "drain", "osis"]).ok();
        assert_eq!(done.stdout, "osis is empty, but for 1 that wait for their time\n");
        ground.run(&["queue", "resume", "osis"]).ok();
        submit(ground, &[]);
    }

    fn limits_are_set_shown_and_removed(ground: &Ground) {
        let set = ["queue", "limit", "set", "osis", "--create"];
        let args = ["100", "--concurrency", "2", "--rate", "10/s burst 20", "--key-concurrency", "1"];
        let done = ground.run(&[&set[..], &args].concat()).ok();
        let words = "length 100, concurrency 2, rate 10/s burst 20, key concurrency 1";
        assert_eq!(done.stdout, format!("osis {words}\n"));
        ground.run(&[&set[..], &["--fair", "--payload", "2000"]].concat()).ok();
        ground.run(&["queue", "weight", "osis", "a b", "3"]).ok();
        let shown = ground.run(&["queue", "limit", "show", "osis", "--json"]).ok().json();
        assert_eq!(shown, json!({
            "queue": OSIS, "limit": 100, "paused": false, "draining": false, "concurrency": 2,
            "rate": "10/s burst 20", "key_concurrency": 1, "key_rate": null, "payload": 2000, "alert_after": null,
            "sandbox": null, "run_limits": {}, "fair": true, "weights": {"a b": 3},
        }));
        let input = ground.file("large", [b'x'; 2000]);
        let args = ["job", "submit", "a.rhai", "--input", &format!("@{}", input.display())];
        ground.file("a.rhai", "1");
        refused(ground, &args, 1, &["bytes, more than", "limit show"]);
        let done = ground.run(&["queue", "limit", "remove", "osis", "--rate", "--fair"]).ok();
        assert!(!done.stdout.contains("rate") && done.stdout.contains("concurrency 2"), "{}", done.stdout);
        ground.run(&["queue", "weight", "osis", "a b", "1"]).ok();
        ground.run(&["queue", "limit", "remove", "osis"]).ok();
        assert_eq!(ground.run(&["queue", "limit", "show", "--json"]).ok().stdout, "");
        assert_eq!(ground.stored(), "");
    }

    fn keys_have_their_turns(ground: &Ground) {
        ground.run(&["queue", "limit", "set", "osis", "--create", "--fair", "--concurrency", "1"]).ok();
        for id in ["a1", "a2", "a3", "b1"] {
            submit(ground, &["--id", id, "--key", &id[..1]]);
        }
        let listed = ground.run(&["queue", "list", "--json"]).ok().jsons();
        assert_eq!((&listed[0]["waiting"], &listed[0]["set_aside"]), (&json!(2), &json!(2)));
        let held = status(ground, "a3")["held_by"].to_string();
        assert!(held.contains("its key a; 1 of it"), "{held}");
        let _worker = ground.worker(&["--type", "osis"]);
        let mut at: Vec<_> = ["a1", "a2", "a3", "b1"]
            .map(|id| {
                let job = ground.run(&["job", "wait", id, "--json"]).ok().json();
                (job["updated_at"].as_str().unwrap().to_owned(), id)
            })
            .into();
        at.sort();
        let order: Vec<_> = at.iter().map(|(_, id)| *id).collect();
        // Of one millisecond, the order of their names.
        assert!(order == ["a1", "b1", "a2", "a3"] || order[3] == "a3" || order[3] == "b1", "{at:?}");
    }

    fn many_jobs_have_an_answer_each(ground: &Ground) {
        let lines = [
            json!({"script": "INPUT.len()", "type": "osis", "id": "j1", "input": "abc", "key": "k"}),
            json!({"script": "1", "type": "osis", "id": "j1"}),
            json!({"script": "2", "type": "osis", "id": "j2", "unique": "n", "in": "1h"}),
            json!({"script": "3", "type": "osis", "id": "j3", "unique": "n"}),
            json!({"payload": {"x": [1, 2]}, "type": "osis", "id": "j4", "at": "2999-01-01", "retries": 2}),
            json!({"script": "5", "type": "osis", "id": "j5", "depends_on": ["nobody"]}),
        ];
        let text: Vec<_> = lines.iter().map(ToString::to_string).collect();
        let file = ground.file("jobs.jsonl", text.join("\n\n"));
        let file = file.to_str().unwrap();
        let done = ground.run(&["job", "submit", "--jsonl", file, "--json"]).exits(1);
        let answers: Vec<_> = done
            .jsons()
            .iter()
            .map(|line| (line["line"].as_u64().unwrap(), line["result"].as_str().unwrap().to_owned()))
            .collect();
        let expected = [
            (1, "stored"),
            (3, "exists"),
            (5, "stored"),
            (7, "kept"),
            (9, "stored"),
            (11, "unknown"),
        ];
        assert_eq!(answers, expected.map(|(line, word)| (line, word.to_owned())));
        assert!(done.stderr.contains("nobody") && done.stderr.contains("3 of 6"), "{}", done.stderr);
        assert_eq!(status(ground, "j1")["key"], "k");
        assert_eq!(status(ground, "j4")["retries"], 2);
        let bad = [
            "{", "[]", r#"{"type":"osis"}"#, r#"{"script":"1"}"#, r#"{"script":"1","type":"a b"}"#,
            r#"{"script":"1","type":"osis","inn":"1h"}"#, r#"{"script":"1","type":"osis","in":"x"}"#,
            r#"{"script":"1","type":"osis","retries":101}"#, r#"{"script":"1","payload":1,"type":"osis"}"#,
            r#"{"script":"1","type":"nobodys"}"#,
        ];
        for line in bad {
            let good = r#"{"script":"1","type":"osis","id":"good"}"#;
            let file = ground.file("bad.jsonl", format!("{good}\n{line}\n"));
            let words: &[&str] = if line.contains("nobodys") { &["nobodys"] } else { &["line 2 of", "nothing was submitted"] };
            refused(ground, &["job", "submit", "--require-worker", "--jsonl", file.to_str().unwrap()], 2, words);
        }
        refused(ground, &["job", "submit", "--jsonl", "none.jsonl"], 2, &["none.jsonl"]);
        refused(ground, &["job", "submit"], 2, &["<SCRIPT>"]);
        // The script and the options of the command line hold for all lines.
        ground.file("a.rhai", "INPUT");
        let file = ground.file("inputs.jsonl", "{\"id\":\"i1\"}\n{\"id\":\"i2\",\"priority\":\"low\"}\n");
        let args = ["job", "submit", "a.rhai", "--key", "all", "--jsonl", file.to_str().unwrap()];
        assert_eq!(ground.run(&args).ok().stdout, "i1 stored\ni2 stored\n");
        assert_eq!(status(ground, "i2")["key"], "all");
        assert_eq!(status(ground, "i2")["priority"], "low");
    }

    fn many_jobs_are_stopped(ground: &Ground) {
        for (id, key) in [("a1", "a"), ("a2", "a"), ("b1", "b")] {
            submit(ground, &["--id", id, "--key", key]);
        }
        submit(ground, &["--id", "low", "--priority", "low"]);
        refused(ground, &["job", "stop"], 2, &["--all"]);
        refused(ground, &["job", "stop", "a1", "--key", "a"], 2, &["--key"]);
        refused(ground, &["job", "stop", "--all"], 2, &["to cancel 4 jobs", "--yes"]);
        refused(ground, &["job", "stop", "--queue", "a b", "--yes"], 2, &["no work queue"]);
        refused(ground, &["job", "stop", "--older-than", "1h", "--yes"], 0, &["no such job"]);
        let dry = ground.run(&["job", "stop", "--key", "a", "--dry-run", "--json"]).ok();
        let mut meant: Vec<_> = dry.jsons().iter().map(|line| line["id"].clone()).collect();
        meant.sort_by_key(ToString::to_string);
        assert_eq!(meant, ["a1", "a2"]);
        assert_eq!(status(ground, "a1")["status"], "dispatched");
        let done = ground.run(&["job", "stop", "--key", "a", "--yes"]).ok();
        assert!(done.stdout.contains("a1 cancelled") && done.stderr.contains("2 jobs cancelled"), "{done:#?}");
        let done = ground.run(&["job", "stop", "--queue", "osis:prio:2", "-y"]).ok();
        assert_eq!(done.stdout, "low cancelled\n");
        ground.run(&["job", "stop", "--all", "--yes"]).ok();
        let left = eventually("all have ended", || {
            let jobs = ground.run(&["job", "list", "--state", "cancelled", "--json"]).ok().jsons();
            (jobs.len() == 4).then_some(jobs)
        });
        assert!(left.iter().all(|job| job["error"] == "stopped"), "{left:?}");
    }
}
