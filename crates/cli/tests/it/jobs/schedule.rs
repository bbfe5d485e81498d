//! `meshwork schedule`: add, look, change, and what is refused; each with its exit codes and its JSON.

use crate::common::{Ground, eventually, json, names, on_all_data};
use serde_json::Value;

fn add(ground: &Ground, args: &[&str]) -> Value {
    ground.file("a.rhai", "1");
    let args = [&["schedule", "add", "s", "a.rhai", "--json"], args].concat();
    ground.run(&args).ok().json()
}

fn show(ground: &Ground, name: &str) -> Value {
    ground
        .run(&["schedule", "show", name, "--json"])
        .ok()
        .json()
}

on_all_data! {
    fn a_schedule_is_added_shown_and_listed(ground: &Ground) {
        ground.file("in", "x");
        let added = add(ground, &["--cron", "30 2 * * MON-FRI", "--tz", "europe/brussels", "--end", "2100-01-01T00:00:00Z",
            "--overlap", "replace", "--input", "@in", "--env", "TOKEN=secret", "--env", "A=b", "--retries", "2",
            "--group", "io", "--caller-id", "me"]);
        assert_eq!(names(&added), ["name", "next_at", "replaced", "warnings"]);
        let shown = show(ground, "s");
        for (name, value) in [
            ("name", json("\"s\"")),
            ("rhythm", json("\"30 2 * * MON-FRI\"")),
            ("zone", json("\"Europe/Brussels\"")),
            ("start_at", Value::Null),
            ("end_at", json("\"2100-01-01T00:00:00.000Z\"")),
            ("catch_up", json("\"one\"")),
            ("overlap", json("\"replace\"")),
            ("type", json("\"osis\"")),
            ("paused", json("false")),
            ("last_job", Value::Null),
            ("runs", json("0")),
            ("trouble", Value::Null),
        ] {
            assert_eq!(shown[name], value, "{name}");
        }
        assert_eq!(shown["next_at"], added["next_at"]);
        let job = &shown["job"];
        assert_eq!((&job["script"], &job["input_bytes"], &job["retries"]), (&json("\"1\""), &json("1"), &json("2")));
        assert_eq!((&job["env"]["TOKEN"], &job["env"]["A"]), (&json("\"***\""), &json("\"b\"")));
        let done = ground.run(&["schedule", "show", "s"]).ok();
        for line in ["name         s\n", "rhythm       30 2 * * MON-FRI\n", "environment  A=b, TOKEN=***\n"] {
            assert!(done.stdout.contains(line), "{}", done.stdout);
        }
        let listed = ground.run(&["schedule", "list", "--json"]).ok().jsons();
        assert_eq!(listed.len(), 1);
        assert_eq!(listed[0]["next_at"], added["next_at"]);
        let done = ground.run(&["schedule", "list"]).ok();
        assert!(done.stdout.lines().nth(1).unwrap().starts_with("s     30 2 * * MON-FRI  Europe/Brussels"), "{}", done.stdout);
    }

    fn its_jobs_have_a_key_and_a_unique_name(ground: &Ground) {
        add(ground, &["--every", "1h", "--key", "acme", "--unique", "n", "--unique-for", "10m",
            "--on-duplicate", "refuse"]);
        let job = &show(ground, "s")["job"];
        assert_eq!(job["key"], "acme");
        assert_eq!(job["unique"], json(r#"{"name":"n","until":"600000 ms","on_duplicate":"refuse"}"#));
        let done = ground.run(&["schedule", "show", "s"]).ok();
        for line in ["key          acme\n", "unique       n, until 10 min, on duplicate refuse\n"] {
            assert!(done.stdout.contains(line), "{}", done.stdout);
        }
        let run = ground.run(&["schedule", "run", "s", "--json"]).ok().json();
        let id = run["id"].as_str().unwrap();
        let status = ground.run(&["job", "status", id, "--json"]).ok().json();
        assert_eq!((&status["key"], &status["unique"]), (&json("\"acme\""), &json("\"600000 osis:n\"")));
        let done = ground.run(&["job", "status", id]).ok();
        assert!(done.stdout.lines().any(|line| {
            let words: Vec<_> = line.split_whitespace().collect();
            words == ["unique", "for", "10", "min", "osis:n"]
        }), "{}", done.stdout);
        ground.run(&["schedule", "add", "t", "a.rhai", "--every", "1h", "--throttle", "m=5m"]).ok();
        assert_eq!(show(ground, "t")["job"]["unique"]["on_duplicate"], "keep");
        for word in [&["--at", "+1h"], &["--in", "1h"], &["--debounce", "m=5m"]] {
            let args = [&["schedule", "add", "u", "a.rhai", "--every", "1h"], &word[..]].concat();
            let refused = ground.run(&args);
            assert!(refused.stderr.contains("runs at its slots"), "{}", refused.stderr);
        }
    }

    fn a_refused_slot_names_the_job_with_the_unique_name(ground: &Ground) {
        add(ground, &["--every", "1h", "--unique", "n", "--on-duplicate", "refuse"]);
        let shown = show(ground, "s");
        assert_eq!((&shown["refused"], &shown["refused_by"]), (&json("0"), &Value::Null));
        ground.run(&["job", "enqueue", "a.rhai", "--id", "holder", "--unique", "n"]).ok();
        for count in ["1", "2"] {
            let refused = ground.run(&["schedule", "run", "s"]);
            assert!(refused.stderr.contains("holder"), "{}", refused.stderr);
            let shown = show(ground, "s");
            assert_eq!((&shown["refused"], &shown["refused_by"]), (&json(count), &json("\"holder\"")));
        }
        let done = ground.run(&["schedule", "show", "s"]).ok();
        let line = "refused      2, the last one since job holder has the unique name\n";
        assert!(done.stdout.contains(line), "{}", done.stdout);
    }

    fn its_jobs_run_and_a_worker_sees_their_slot(ground: &Ground) {
        ground.file("slot.py", "import os\nresult = os.environ['MESHWORK_SLOT']");
        ground.run(&["schedule", "add", "ticks", "slot.py", "--every", "1s", "--overlap", "allow"]).ok();
        let worker = ground.worker(&["--type", "python"]);
        let job = eventually("a slot has run", || {
            let jobs = ground.run(&["job", "list", "--json", "--status", "finished"]).ok().jsons();
            jobs.into_iter().next()
        });
        let id = job["id"].as_str().unwrap();
        let job = ground.run(&["job", "status", id, "--json"]).ok().json();
        let slot = job["output"].as_str().unwrap();
        let compact: String = slot[..19].split(['-', ':']).collect();
        assert_eq!(id, format!("ticks.{compact}Z"));
        ground.run(&["schedule", "remove", "ticks"]).ok();
        worker.stop();
    }

    fn schedules_are_paused_resumed_and_removed(ground: &Ground) {
        add(ground, &["--every", "1h"]);
        let done = ground.run(&["schedule", "pause", "s"]).ok();
        assert_eq!(done.stdout, "s paused\n");
        let shown = show(ground, "s");
        assert_eq!((&shown["paused"], &shown["next_at"]), (&json("true"), &Value::Null));
        let resumed = ground.run(&["schedule", "resume", "s", "--json"]).ok().json();
        assert_eq!(resumed, serde_json::json!({"name": "s", "result": "resumed"}));
        assert_eq!(show(ground, "s")["paused"], json("false"));
        let done = ground.run(&["schedule", "remove", "t", "s"]).exits(5);
        assert_eq!(done.stdout, "s removed\n");
        assert!(done.stderr.contains("there is no schedule t"), "{}", done.stderr);
        for what in ["pause", "resume", "remove", "show", "next", "run"] {
            let done = ground.run(&["schedule", what, "s"]).exits(5);
            assert!(done.stderr.contains("there is no schedule s"), "{what}: {}", done.stderr);
        }
    }

    fn a_name_that_is_taken_is_refused_and_can_be_replaced(ground: &Ground) {
        add(ground, &["--every", "1h"]);
        let before = ground.stored();
        let done = ground.run(&["schedule", "add", "s", "a.rhai", "--every", "2h"]).exits(2);
        assert!(done.stderr.contains("there is a schedule s already") && done.stderr.contains("--replace"), "{}", done.stderr);
        assert_eq!(ground.stored(), before);
        let replaced = add(ground, &["--every", "2h", "--replace"]);
        assert_eq!(replaced["replaced"], json("true"));
        assert_eq!(show(ground, "s")["rhythm"], json("\"@every 2h\""));
    }

    fn a_job_is_run_by_hand(ground: &Ground) {
        add(ground, &["--every", "1h"]);
        let id = ground.run(&["schedule", "run", "s"]).ok().stdout.trim().to_owned();
        assert!(id.starts_with("s."), "{id}");
        let done = ground.run(&["schedule", "run", "s"]).exits(1);
        assert!(done.stderr.contains(&id) && done.stderr.contains("has not ended"), "{}", done.stderr);
        assert_eq!(show(ground, "s")["last_job"].as_str(), Some(&*id));
    }

    fn what_is_wrong_is_named_and_nothing_is_written(ground: &Ground) {
        ground.file("a.rhai", "1");
        for (args, words) in [
            (&["--cron", "60 * * * *"][..], &["the minute \"60\"", "0 to 59"][..]),
            (&["--cron", "* * * *"], &["5 fields", "has 4"]),
            (&["--cron", "0 0 31 2 *"], &["never fires"]),
            (&["--cron", "@often"], &["@hourly", "@every 30s"]),
            (&["--every", "500ms"], &["whole seconds from 1s"]),
            (&["--every", "30s", "--tz", "Europe/Brussels"], &["--tz"]),
            (&["--cron", "@hourly", "--every", "30s"], &["--every"]),
            (&[], &["--cron"]),
            (&["--cron", "@hourly", "--tz", "Mars"], &["no time zone", "IANA"]),
            (&["--cron", "@hourly", "--catch-up", "all:2000"], &["up to 1000"]),
            (&["--cron", "@hourly", "--catch-up", "all"], &["overlap allow"]),
            (&["--cron", "@hourly", "--overlap", "no"], &["allow, skip or replace"]),
            (&["--cron", "@hourly", "--start", "soon"], &["give a time (2026-01-31 12:00"]),
            (&["--cron", "@hourly", "--end", "2001-01-01"], &["its last slot is over"]),
            (&["--cron", "@hourly", "--start", "2030-01-01T00:01:00Z", "--end", "2030-01-01T00:02:00Z"], &["never comes"]),
            (&["--cron", "@hourly", "--depends-on", "j"], &["cannot depend"]),
        ] {
            let done = ground.run(&[&["schedule", "add", "s", "a.rhai"], args].concat()).exits(2);
            for word in words {
                assert!(done.stderr.contains(word), "{args:?}: {}", done.stderr);
            }
        }
        let done = ground.run(&["schedule", "add", "a:b", "a.rhai", "--every", "1h"]).exits(2);
        assert!(done.stderr.contains("schedule's name"), "{}", done.stderr);
        assert_eq!(ground.stored(), "");
    }
}

#[test]
fn the_next_slots_of_an_expression_need_no_server() {
    let ground = Ground::url("redis://127.0.0.1:1");
    let next = |args: &[&str]| ground.run(&[&["schedule", "next"], args].concat());
    let args = [
        "--cron",
        "30 2 * * *",
        "--tz",
        "Europe/Brussels",
        "--after",
        "2026-03-28",
        "-n",
        "3",
    ];
    assert_eq!(
        next(&args).ok().stdout,
        "2026-03-28T02:30:00+01:00\n2026-03-29T03:00:00+02:00\n2026-03-30T02:30:00+02:00\n"
    );
    let lines = next(&[&args[..], &["--json"]].concat()).ok().jsons();
    let first =
        serde_json::json!({"at": "2026-03-28T01:30:00.000Z", "local": "2026-03-28T02:30:00+01:00"});
    assert_eq!(lines[0], first);
    assert_eq!(
        next(&["--cron", "@every 1h"]).ok().stdout.lines().count(),
        1
    );
    let done = next(&["--cron", "0 25 * * *"]).exits(2);
    assert!(done.stderr.contains("the hour \"25\""), "{}", done.stderr);
    next(&[]).exits(2);
    next(&["s", "--cron", "@hourly"]).exits(2);
    next(&["s"]).exits(3);
}
