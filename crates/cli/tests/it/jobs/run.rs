//! `meshwork run` with one job: where its result goes, who runs it, and how it is stopped.

use std::process::Stdio;

use crate::common::{Ground, json, names, on_all_data};
use meshwork_test_servers::servers::{RealServer, Tool, need};
use rustix::process::Signal;

/// A script that never ends by itself.
const ENDLESS: &str = "loop { }";

/// Fields of every object about a job.
const FIELDS: [&str; 43] = [
    "attempts",
    "batch",
    "caller",
    "caller_context",
    "children",
    "concurrent",
    "context",
    "created_at",
    "dead",
    "ended_at",
    "env",
    "error",
    "failed_attempts",
    "group",
    "id",
    "instance",
    "key",
    "lost",
    "output",
    "parent",
    "priority",
    "progress",
    "progress_value",
    "queue",
    "requested_sandbox",
    "retries",
    "run_at",
    "snoozes",
    "start_by",
    "started_at",
    "state",
    "status",
    "stderr",
    "stdout",
    "tags",
    "timeout",
    "traceback",
    "traceparent",
    "type",
    "unique",
    "updated_at",
    "usage",
    "worker",
];

on_all_data! {
    fn the_result_goes_to_stdout_and_nothing_else_anywhere(ground: &Ground) {
        ground.file("a.rhai", "40 + 2");
        let done = ground.run_without_log(&["run", "a.rhai"]).ok();
        assert_eq!((done.stdout.as_str(), done.stderr.as_str()), ("42\n", ""));
    }

    fn as_json_it_is_one_object(ground: &Ground) {
        ground.file("a.rhai", "#{a: [1, 2], b: \"x\"}");
        let job = ground.run(&["run", "a.rhai", "--json"]).ok().json();
        assert_eq!(names(&job), FIELDS);
        assert_eq!(job["output"], json(r#"{"a":[1,2],"b":"x"}"#));
        assert_eq!((&job["status"], &job["attempts"]), (&json("\"finished\""), &json("1")));
        assert_eq!(job["type"], "osis");
    }

    fn a_failure_tells_message_and_place(ground: &Ground) {
        ground.file("a.rhai", "let a = 1;\nthrow \"boom\";");
        let done = ground.run(&["run", "a.rhai"]).exits(1);
        assert_eq!(done.stdout, "");
        assert!(done.stderr.contains("boom") && done.stderr.contains("line 2"), "{}", done.stderr);
        let job = ground.run(&["run", "a.rhai", "--json"]).exits(1).json();
        assert_eq!(names(&job), FIELDS);
        assert_eq!(job["status"], "error");
        assert!(job["error"].as_str().unwrap().contains("boom"), "{job}");
    }

    fn options_reach_the_job(ground: &Ground) {
        ground.file("a.rhai", "throw 1");
        let args = ["run", "a.rhai", "--json", "--retries", "2", "--timeout", "77", "--group", "g"];
        let job = ground.run(&args).exits(1).json();
        assert_eq!((&job["attempts"], &job["retries"]), (&json("3"), &json("2")));
        assert_eq!((&job["timeout"], &job["group"]), (&json("77"), &json("\"g\"")));
    }

    fn a_timeout_ends_the_script(ground: &Ground) {
        ground.file("a.rhai", ENDLESS);
        let done = ground.run(&["run", "a.rhai", "--timeout", "1"]).exits(1);
        assert!(done.stderr.contains("timeout"), "{}", done.stderr);
    }

    fn an_interrupt_stops_the_job(ground: &Ground) {
        ground.file("a.rhai", ENDLESS);
        for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
            let running = ground.start(&["run", "a.rhai"]);
            let id = ground.job_that_is("running");
            running.signal(signal);
            let done = running.ended().exits(code);
            assert!(done.stderr.contains("interrupted"), "{}", done.stderr);
            let job = ground.run(&["job", "status", &id, "--json"]).ok().json();
            assert_eq!((&job["status"], &job["error"]), (&json("\"error\""), &json("\"stopped\"")));
        }
    }

    fn workers_that_are_there_run_it(ground: &Ground) {
        ground.file("a.rhai", "1");
        let worker = ground.worker(&["--type", "osis", "--instance", "here"]);
        let job = ground.run(&["run", "a.rhai", "--json"]).ok().json();
        assert!(job["worker"].as_str().unwrap().starts_with("here."), "{job}");
        worker.stop();
    }

    fn it_is_run_here_when_the_workers_go_away(ground: &Ground) {
        ground.file("endless.rhai", ENDLESS);
        ground.file("a.rhai", "1");
        let worker = ground.worker(&["--type", "osis", "--concurrency", "1", "--lease", "1"]);
        ground.run(&["job", "submit", "endless.rhai", "--timeout", "2"]).ok();
        ground.job_that_is("running");
        let running = ground.start(&["run", "a.rhai", "--json", "--concurrency", "2"]);
        ground.job_that_is("queued");
        worker.kill();
        assert_eq!(running.ended().ok().json()["output"], 1);
    }

    fn python_keeps_what_it_prints_apart(ground: &Ground) {
        if need(Tool::Python).is_none() {
            return;
        }
        ground.file("a.py", "import sys, os\nprint('out', os.environ['A'])\nprint('err', file=sys.stderr)");
        let done = ground.run_without_log(&["run", "a.py", "--env", "A=b=c"]).ok();
        assert_eq!((done.stdout.as_str(), done.stderr.as_str()), ("out b=c\n", "err\n"));
        ground.file("b.py", "print('aside')\nresult = {'n': 1}");
        let done = ground.run_without_log(&["run", "b.py"]).ok();
        assert_eq!((done.stdout.as_str(), done.stderr.as_str()), ("{\"n\":1}\n", "aside\n"));
        ground.file("c.py", "def f():\n    raise ValueError('no')\nf()");
        let done = ground.run(&["run", "c.py"]).exits(1);
        assert!(done.stderr.contains("ValueError: no"), "{}", done.stderr);
        assert!(done.stderr.contains("line 2, in f"), "{}", done.stderr);
    }
}

#[test]
fn a_script_may_come_from_stdin() {
    let Some(ground) = Ground::embedded() else {
        return;
    };
    let script = std::fs::File::open(ground.file("script", "2 * 21")).unwrap();
    let mut command = ground.command(&["run", "-", "--type", "osis"]);
    let output = command.stdin(Stdio::from(script)).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "42\n");
}

/// Whenever the second one comes, no worker holds the job: it was released, and perhaps cancelled.
#[test]
fn two_interrupts_leave_no_job_held() {
    let Some(ground) = Ground::redis() else {
        return;
    };
    ground.file("a.rhai", ENDLESS);
    let running = ground.start(&["run", "a.rhai"]);
    let id = ground.job_that_is("running");
    running.signal(Signal::INT);
    running.signal(Signal::INT);
    running.ended().exits(130);
    let job = ground.run(&["job", "show", &id, "--json"]).ok().json();
    let state = job["state"].as_str();
    assert!(matches!(state, Some("queued" | "cancelled")), "{job}");
}

#[test]
fn a_second_interrupt_does_not_wait() {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let ground = Ground::url(server.url());
    ground.file("a.rhai", ENDLESS);
    let mut running = ground.start(&["run", "a.rhai"]);
    ground.job_that_is("running");
    // A server that does not answer: stopping in order would take seconds.
    server.pause();
    running.signal(Signal::INT);
    assert!(running.said().contains("repeat the signal"));
    running.signal(Signal::INT);
    let done = running.ended().exits(130);
    server.resume();
    assert!(
        !done.stderr.contains("could not be cancelled"),
        "{}",
        done.stderr
    );
}
