//! `meshwork run --each`: one job per file, results in the order of the files, series that go on.

use crate::common::{Ground, eventually, json, on_all_data};
use rustix::process::Signal;
use serde_json::Value;

/// Counts bytes; a file that begins with a question mark is an error.
const COUNT: &str = "if INPUT.starts_with(\"?\") { throw \"odd\" } #{bytes: INPUT.len()}";

fn ids(lines: &[Value]) -> Vec<&str> {
    lines
        .iter()
        .map(|line| line["id"].as_str().unwrap())
        .collect()
}

on_all_data! {
    fn results_come_as_a_table(ground: &Ground) {
        ground.file("count.rhai", COUNT);
        ground.file("one", "1");
        ground.file("three", "123");
        let done = ground.run_without_log(&["run", "count.rhai", "--each", "one", "three"]).ok();
        assert_eq!(done.stdout, "file   bytes\none        1\nthree      3\n");
        assert_eq!(done.stderr, "2 finished\n");
    }

    fn results_come_as_lines_in_the_order_of_the_files(ground: &Ground) {
        ground.file("count.rhai", COUNT);
        let files: Vec<_> = (0..150).map(|n| format!("f{n}")).collect();
        for (size, name) in files.iter().enumerate() {
            ground.file(name, vec![b'x'; size]);
        }
        let mut args = vec!["run", "count.rhai", "--json", "--concurrency", "8", "--each"];
        args.extend(files.iter().map(String::as_str));
        let lines = ground.run(&args).ok().jsons();
        assert_eq!(lines.len(), files.len());
        for (size, (line, file)) in lines.iter().zip(&files).enumerate() {
            assert_eq!((line["file"].as_str(), line["status"].as_str()), (Some(file.as_str()), Some("finished")));
            assert_eq!(line["output"], serde_json::json!({"bytes": size}), "{line}");
        }
    }

    fn a_failure_fails_the_command_and_names_the_file(ground: &Ground) {
        ground.file("count.rhai", COUNT);
        ground.file("good", "1");
        ground.file("bad", "?");
        let done = ground.run(&["run", "count.rhai", "--each", "good", "bad"]).exits(1);
        assert!(done.stderr.contains("bad failed:") && done.stderr.contains("odd"), "{}", done.stderr);
        assert!(done.stderr.contains("1 finished, 1 failed"), "{}", done.stderr);
        assert!(done.stdout.starts_with("file  bytes  error\ngood      1\nbad "), "{}", done.stdout);
    }

    fn a_series_with_failures_runs_only_those_again(ground: &Ground) {
        ground.file("count.rhai", COUNT);
        ground.file("good", "1");
        ground.file("bad", "?");
        let args = ["run", "count.rhai", "--json", "--each", "good", "bad"];
        let first = ground.run(&args).exits(1).jsons();
        let done = ground.run(&args).exits(1);
        let second = done.jsons();
        assert!(done.stderr.contains("resuming: 1 of 2 already finished"), "{}", done.stderr);
        assert_eq!(ids(&first), ids(&second));
        assert_eq!(first[0], second[0], "it was not run again");
        assert_ne!(first[1]["updated_at"], second[1]["updated_at"], "it was run again");
        assert_eq!(second[1]["attempts"], 1, "as if it had never run");
    }

    fn a_file_that_changed_is_another_job(ground: &Ground) {
        ground.file("count.rhai", COUNT);
        ground.file("good", "1");
        ground.file("bad", "?");
        let args = ["run", "count.rhai", "--json", "--each", "good", "bad"];
        let first = ground.run(&args).exits(1).jsons();
        ground.file("bad", "better");
        let second = ground.run(&args).ok().jsons();
        assert_eq!(ids(&first)[0], ids(&second)[0]);
        assert_ne!(ids(&first)[1], ids(&second)[1]);
        assert_eq!(second[1]["output"], serde_json::json!({"bytes": 6}));
    }

    fn after_a_success_it_is_a_new_series(ground: &Ground) {
        ground.file("count.rhai", COUNT);
        ground.file("a", "1");
        let args = ["run", "count.rhai", "--json", "--each", "a"];
        let first = ground.run(&args).ok();
        let second = ground.run(&args).ok();
        assert_ne!(ids(&first.jsons()), ids(&second.jsons()));
        assert!(!second.stderr.contains("resuming"), "{}", second.stderr);
    }

    fn fresh_is_a_new_series(ground: &Ground) {
        ground.file("count.rhai", COUNT);
        ground.file("good", "1");
        ground.file("bad", "?");
        let args = ["run", "count.rhai", "--json", "--each", "good", "bad"];
        let first = ground.run(&args).exits(1).jsons();
        let done = ground.run(&["run", "count.rhai", "--fresh", "--json", "--each", "good", "bad"]).exits(1);
        let second = done.jsons();
        assert!(!done.stderr.contains("resuming"), "{}", done.stderr);
        assert_ne!(ids(&first)[0], ids(&second)[0]);
        assert_ne!(ids(&first)[1], ids(&second)[1]);
    }

    fn a_file_named_twice_is_two_jobs(ground: &Ground) {
        ground.file("count.rhai", COUNT);
        ground.file("a", "1");
        let lines = ground.run(&["run", "count.rhai", "--json", "--each", "a", "a"]).ok().jsons();
        assert_eq!(lines.len(), 2);
        assert_ne!(ids(&lines)[0], ids(&lines)[1]);
    }

    fn an_interrupt_stops_what_has_not_ended_and_the_next_run_goes_on(ground: &Ground) {
        ground.file("wait.rhai", "if INPUT == \"x\" { loop { } } INPUT");
        ground.file("a", "1");
        ground.file("b", "x");
        ground.file("c", "x");
        let args = ["run", "wait.rhai", "--json", "--concurrency", "1", "--each", "a", "b", "c"];
        let mut running = ground.start(&args);
        assert_eq!(json(&running.line())["output"], 1);
        ground.job_that_is("running");
        running.signal(Signal::INT);
        let done = running.ended().exits(130);
        assert!(done.stderr.contains("1 of 3 finished"), "{}", done.stderr);
        let jobs = ground.jobs();
        assert_eq!(jobs.iter().filter(|job| job["error"] == "stopped").count(), 2, "{jobs:?}");
        let mut again = ground.start(&args);
        assert!(again.said().contains("resuming: 1 of 3"));
        assert_eq!(json(&again.line())["output"], 1);
        ground.job_that_is("running");
        again.signal(Signal::TERM);
        again.ended().exits(143);
    }

    fn fresh_stops_what_was_left(ground: &Ground) {
        ground.file("wait.rhai", "loop { }");
        ground.file("a", "1");
        let running = ground.start(&["run", "wait.rhai", "--lease", "1", "--each", "a"]);
        let left = ground.job_that_is("running");
        running.kill();
        let again = ground.start(&["run", "wait.rhai", "--lease", "1", "--fresh", "--each", "a"]);
        eventually("another job is started", || {
            let started = |job: &&Value| job["status"] == "started" && job["id"] != left.as_str();
            ground.jobs().iter().find(started).map(|_| ())
        });
        let job = ground.run(&["job", "status", &left, "--json"]).ok().json();
        assert_eq!((job["status"].as_str(), job["error"].as_str()), (Some("error"), Some("stopped")));
        again.signal(Signal::INT);
        again.ended().exits(130);
    }

    fn workers_that_are_there_run_them(ground: &Ground) {
        ground.file("count.rhai", COUNT);
        let files: Vec<_> = (0..20).map(|n| format!("f{n}")).collect();
        for name in &files {
            ground.file(name, name);
        }
        let worker = ground.worker(&["--type", "osis", "--group", "g", "--instance", "here"]);
        let mut args = vec!["run", "count.rhai", "--group", "g", "--json", "--each"];
        args.extend(files.iter().map(String::as_str));
        for line in ground.run(&args).ok().jsons() {
            assert!(line["worker"].as_str().unwrap().starts_with("here."), "{line}");
        }
        worker.stop();
    }

    fn results_of_any_bytes_are_one_line(ground: &Ground) {
        ground.file("echo.rhai", "INPUT");
        ground.file("a", b"two\nlines \x1b[2J \xff");
        ground.file("b", "");
        let done = ground.run(&["run", "echo.rhai", "--each", "a", "b"]).ok();
        assert_eq!(done.stdout.lines().count(), 3, "{}", done.stdout);
        assert!(!done.stdout.contains('\x1b'), "{}", done.stdout);
    }
}
