//! `--start-timeout`: jobs that no worker began in time.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};

use crate::common::{Ground, eventually, on_all_data};

const LATE: &str = "timeout: no worker began it within";

fn submit(ground: &Ground, file: &str, id: &str, options: &[&str]) {
    let args = [&["job", "submit", file, "--id", id], options].concat();
    ground.run(&args).ok();
}

fn show(ground: &Ground, id: &str) -> Value {
    ground.run(&["job", "show", id, "--json"]).ok().json()
}

on_all_data! {
    fn a_job_that_nobody_began_in_time_ends_in_error(ground: &Ground) {
        ground.file("a.rhai", "1");
        // Its worker is away; that of another type does maintenance.
        submit(ground, "a.rhai", "late", &["--start-timeout", "300ms"]);
        submit(ground, "a.rhai", "early", &["--start-timeout", "1h"]);
        let shown = ground.run(&["job", "show", "early"]).ok().stdout;
        assert!(shown.contains("start by     "), "{shown}");
        let other = ground.worker(&["--type", "python"]);
        let done = ground.run(&["job", "wait", "late"]).exits(1);
        assert!(done.stderr.contains(&format!("{LATE} 300 ms")), "{}", done.stderr);
        other.stop();
        let late = show(ground, "late");
        assert_eq!((&late["status"], &late["attempts"], &late["dead"]), (&json!("error"), &json!(0), &Value::Null));
        assert_eq!((&late["started_at"], &late["start_by"]), (&Value::Null, &Value::Null));
        assert!(late["ended_at"].is_string(), "{late}");
        let worker = ground.worker(&["--type", "osis"]);
        ground.run(&["job", "wait", "early"]).ok();
        // By hand it runs again, without a limit.
        ground.run(&["job", "retry", "late"]).ok();
        ground.run(&["job", "wait", "late"]).ok();
        worker.stop();
        let early = show(ground, "early");
        assert!(early["started_at"].is_string() && early["ended_at"].is_string(), "{early}");
        assert_eq!(early["start_by"], Value::Null);
        let shown = ground.run(&["job", "show", "early"]).ok().stdout;
        assert!(shown.contains("started      ") && shown.contains("ended        "), "{shown}");
    }

    fn run_schedules_and_lines_have_it(ground: &Ground) {
        ground.file("a.rhai", "1");
        ground.run(&["run", "a.rhai", "--start-timeout", "1m"]).ok();
        ground.run(&["schedule", "add", "s", "--every", "1h", "a.rhai", "--start-timeout", "90s"]).ok();
        let shown = ground.run(&["schedule", "show", "s"]).ok().stdout;
        assert!(shown.contains("start within 1 min 30 s\n"), "{shown}");
        let run = ground.run(&["schedule", "run", "s", "--json"]).ok().json();
        assert!(show(ground, run["id"].as_str().unwrap())["start_by"].is_string());
        let lines = "{\"start_timeout\":\"10m\",\"id\":\"l1\"}\n{\"id\":\"l2\",\"start_timeout\":600}\n{\"id\":\"l3\"}\n";
        let file = ground.file("jobs.jsonl", lines);
        ground.run(&["job", "submit", "a.rhai", "--jsonl", file.to_str().unwrap()]).ok();
        assert!(show(ground, "l1")["start_by"].is_string() && show(ground, "l2")["start_by"].is_string());
        assert_eq!(show(ground, "l3")["start_by"], Value::Null);
    }

    /// A job runs or expires, whichever worker is killed: one that has begun runs to its end, another one never.
    fn under_kills_a_job_runs_or_expires(ground: &Ground) {
        const JOBS: usize = 40;
        let ran = ground.path("ran");
        let script = format!(
            "import time\n\
             with open({ran:?}, 'a') as file: file.write(JOB_ID + '\\n')\n\
             time.sleep(0.1)\n"
        );
        ground.file("a.py", script);
        for n in 0..JOBS {
            submit(ground, "a.py", &format!("j{n}"), &["--start-timeout", "8s"]);
        }
        let lines = || fs::read_to_string(&ran).map_or(0, |text| text.lines().count());
        for kill in 1..=3 {
            let worker = ground.worker(&["--type", "python", "--concurrency", "2"]);
            eventually("some jobs have run", || (lines() >= 4 * kill).then_some(()));
            worker.kill();
        }
        // No worker of the type runs until all have expired that have not begun.
        let other = ground.worker(&["--type", "osis"]);
        ground.run(&["job", "wait", &format!("j{}", JOBS - 1)]).exits(1);
        other.stop();
        let last = ground.worker(&["--type", "python"]);
        let mut ends = BTreeMap::new();
        for n in 0..JOBS {
            let id = format!("j{n}");
            ground.run(&["job", "wait", &id]);
            let job = show(ground, &id);
            let late = job["error"].as_str().is_some_and(|error| error.starts_with(LATE));
            assert!(late || job["status"] == "finished", "{job}");
            ends.insert(id, late);
        }
        last.stop();
        let ran = fs::read_to_string(&ran).unwrap();
        let ran: Vec<_> = ran.lines().collect();
        for (id, late) in &ends {
            assert_eq!(!late, ran.contains(&id.as_str()), "{id}");
        }
        assert!(ends.values().any(|late| *late) && ends.values().any(|late| !late), "{ends:?}");
    }

    fn what_is_no_start_timeout_is_refused_by_name(ground: &Ground) {
        ground.file("a.rhai", "1");
        let lines = ground.file("bad.jsonl", "{\"start_timeout\":[1]}\n");
        let zero = ground.file("zero.jsonl", "{\"start_timeout\":0}\n");
        let before = ground.stored();
        for (args, word) in [
            (&["job", "submit", "a.rhai", "--start-timeout", "soon"][..], "--start-timeout"),
            (&["job", "submit", "a.rhai", "--start-timeout", "0"], "at most ten years"),
            (&["job", "submit", "a.rhai", "--start-timeout", "-1s"], "--start-timeout"),
            (&["run", "a.rhai", "--start-timeout", "99999d"], "at most ten years"),
            (&["schedule", "add", "s", "--every", "1h", "a.rhai", "--start-timeout", ""], "--start-timeout"),
            (&["job", "submit", "a.rhai", "--jsonl", lines.to_str().unwrap()], "start_timeout: invalid type"),
            (&["job", "submit", "a.rhai", "--jsonl", zero.to_str().unwrap()], "line 1 of"),
        ] {
            let stderr = ground.run(args).exits(2).stderr;
            assert!(stderr.contains(word), "{word}: {stderr}");
        }
        assert_eq!(ground.stored(), before);
    }
}
