//! Trace of a job and its runs, and the log in JSON.

use crate::common::{Ground, Running, json, on_all_data};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

on_all_data! {
    fn a_job_takes_its_trace_from_the_command_or_the_environment(ground: &Ground) {
        ground.file("trace.rhai", "[TRACEPARENT, TRACESTATE]");
        let words = ["run", "trace.rhai", "--traceparent", PARENT, "--tracestate", "a=1"];
        assert_eq!(ground.run(&words).ok().stdout, format!("[\"{PARENT}\",\"a=1\"]\n"));
        let mut command = ground.command(&["run", "trace.rhai"]);
        command.env("TRACEPARENT", PARENT).env("TRACESTATE", "b=2");
        let done = Running::start(command).ended().ok();
        assert_eq!(done.stdout, format!("[\"{PARENT}\",\"b=2\"]\n"));
        let id = ground.run(&[&["job", "submit"], &words[1..]].concat()).ok().stdout;
        let job = ground.run(&["job", "status", id.trim(), "--json"]).ok().json();
        assert_eq!(job["traceparent"], PARENT);
        let text = ground.run(&["job", "status", id.trim()]).ok().stdout;
        assert!(text.contains(TRACE), "{text}");
    }

    fn what_is_no_trace_is_refused_or_left_out(ground: &Ground) {
        ground.file("trace.rhai", "TRACEPARENT");
        let done = ground.run(&["run", "trace.rhai", "--traceparent", "00-0-0-0"]).exits(2);
        assert!(done.stderr.contains("traceparent"), "{done:?}");
        let state = ["run", "trace.rhai", "--traceparent", PARENT, "--tracestate", "A"];
        ground.run(&state).exits(2);
        ground.run(&["run", "trace.rhai", "--tracestate", "a=1"]).exits(2);
        let mut command = ground.command(&["run", "trace.rhai"]);
        command.env("TRACEPARENT", "nonsense");
        let done = Running::start(command).ended().ok();
        assert!(done.stderr.contains("ignored") && done.stdout.is_empty(), "{done:?}");
    }

    fn a_log_for_machines_is_a_line_of_json_each(ground: &Ground) {
        ground.file("a.rhai", "1");
        let mut command = ground.command(&["worker", "--type", "osis", "-vv", "--json"]);
        command.env("MESHWORK_LOG_FORMAT", "json");
        let mut worker = Running::start(command);
        let name = json(&worker.line())["worker"].clone();
        let words = ["run", "a.rhai", "--traceparent", PARENT, "--env", "SECRET_TOKEN=tell-nobody"];
        ground.run(&words).ok();
        let done = worker.stop();
        assert!(!done.stderr.contains("tell-nobody"), "{done:?}");
        let lines: Vec<_> = done.stderr.lines().map(json).collect();
        let line = lines.iter().find(|line| line["message"] == "job dequeued").unwrap();
        assert_eq!(line["level"], "INFO");
        let span = &line["span"];
        assert_eq!((&span["name"], &span["type"]), (&json("\"job\""), &json("\"osis\"")));
        assert_eq!((&span["trace"], &span["attempt"]), (&json(&format!("\"{TRACE}\"")), &json("1")));
        assert_eq!(span["worker"], name);
        assert_eq!(span["job"].as_str().unwrap().len(), 36);
    }
}
