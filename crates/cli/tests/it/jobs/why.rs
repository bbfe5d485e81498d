//! The reason of a failed run: it is kept beside the job, and the worker's log names it in one line, for every protocol.

use serde_json::Value;

use crate::common::{Done, Ground, Running, json, on_all_data};

/// Complains on stderr, with a secret where the job has one, and raises.
const FAILS: &str = "import os, sys\n\
                     print('the lens cap is on', os.environ.get('DB_PASSWORD', ''), file=sys.stderr)\n\
                     raise ValueError('no light')\n";
/// Complains and ends without an exception.
const EXITS: &str =
    "import os, sys\nprint('the lens cap is on', file=sys.stderr, flush=True)\nos._exit(3)\n";

/// A process that takes jobs, with its log at `info` as JSON.
fn logging(ground: &Ground, args: &[&str]) -> Running {
    let mut command = ground.command(&[args, &["--json", "-v", "--log-format", "json"]].concat());
    command.env_remove("RUST_LOG");
    let mut worker = Running::start(command);
    assert_eq!(json(&worker.line())["event"], "listening");
    worker
}

/// The lines of a log that say this.
fn lines(done: &Done, message: &str) -> Vec<Value> {
    let lines = done.stderr.lines().map(json);
    lines.filter(|line| line["message"] == message).collect()
}

/// The only line about a failed run. It says why, of which job, and that no other run follows.
fn failed(done: &Done, job: &str) -> Value {
    let mut lines = lines(done, "job failed");
    assert_eq!(lines.len(), 1, "{done:#?}");
    let line = lines.remove(0);
    assert_eq!(line["level"], "WARN");
    assert_eq!(
        (&line["span"]["job"], &line["runs_again"]),
        (&Value::from(job), &Value::from(false))
    );
    line
}

/// The stored error of [`FAILS`].
fn says_why(text: &str) {
    for part in [
        "ValueError: no light",
        "Traceback",
        "line 3",
        "the lens cap is on",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

/// The same, where error and details are fields of a line.
fn line_says_why(line: &Value) {
    let field = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
    says_why(&format!("{}\n{}", field("error"), field("detail")));
}

on_all_data! {
    fn of_a_job_is_in_its_record_and_in_one_line(ground: &Ground) {
        ground.file("shot.py", FAILS);
        let worker = logging(ground, &["worker", "--type", "python"]);
        let args = ["job", "submit", "shot.py", "--id", "dark", "--priority", "high", "--retries", "0", "-v",
                    "--log-format", "json", "--env", "DB_PASSWORD=hunter22"];
        let submitted = ground.run(&args).ok();
        let enqueued = lines(&submitted, "job enqueued").remove(0);
        assert_eq!((&enqueued["job"], &enqueued["priority"]), (&json("\"dark\""), &json("\"high\"")));
        let queue = enqueued["queue"].clone();
        assert!(queue.as_str().unwrap().contains(":type:python"), "{enqueued}");
        let record = ground.run(&["job", "wait", "dark", "--json"]).exits(1).json();
        says_why(&record.to_string());
        let done = worker.stop();
        assert!(!done.stderr.contains("hunter22"), "{done:#?}");
        let line = failed(&done, "dark");
        line_says_why(&line);
        let dequeued = lines(&done, "job dequeued").remove(0);
        for span in [&line["span"], &dequeued["span"]] {
            assert_eq!((&span["queue"], &span["priority"]), (&queue, &json("\"high\"")), "{span}");
            assert_eq!((&span["job"], &span["attempt"]), (&json("\"dark\""), &json("1")));
        }
    }

    fn of_a_job_of_bananas_is_in_its_record_and_in_one_line(ground: &Ground) {
        ground.file("shot.py", FAILS);
        ground.file("exit.py", EXITS);
        let handlers = ["--handler", "shot=shot.py", "--handler", "exit=exit.py"];
        let args = ["worker", "--protocol", "bananas", "--routes", "gpu"];
        let start = || logging(ground, &[&args[..], &handlers].concat());
        let submit = |name: &str, id: &str| {
            ground.run(&["bananas", "submit", name, "--route", "gpu", "--priority", "high", "--max-retries", "1",
                         "--id", id, "--wait", "60", "-v", "--log-format", "json"]).exits(1)
        };
        let worker = start();
        let submitted = submit("shot", "dark");
        says_why(&submitted.stderr.replace("\\n", "\n"));
        let record = json(&ground.run(&["bananas", "get", "dark"]).ok().stdout);
        says_why(record["error"].as_str().unwrap());
        let done = worker.stop();
        let line = failed(&done, "dark");
        line_says_why(&line);
        let dequeued = lines(&done, "job dequeued").remove(0);
        for span in [&line["span"], &dequeued["span"]] {
            assert_eq!((&span["route"], &span["priority"]), (&json("\"gpu\""), &json("\"high\"")), "{span}");
            assert_eq!((&span["type"], &span["attempt"]), (&json("\"shot\""), &json("1")));
        }
        let enqueued = lines(&submitted, "job enqueued").remove(0);
        assert_eq!((&enqueued["job"], &enqueued["route"]), (&json("\"dark\""), &json("\"gpu\"")));
        assert_eq!(enqueued["queue"], dequeued["span"]["queue"]);
        let worker = start();
        submit("exit", "out");
        let record = json(&ground.run(&["bananas", "get", "out"]).ok().stdout);
        let error = record["error"].as_str().unwrap();
        assert!(error.contains("exit status 3") && error.contains("the lens cap is on"), "{error}");
        failed(&worker.stop(), "out");
    }

    fn of_an_action_is_in_its_dead_letter_and_in_one_line(ground: &Ground) {
        ground.file("shot.py", FAILS);
        let args = ["service", "--name", "cam", "--max-attempts", "1", "--handler", "cam.shot=shot.py"];
        let service = logging(ground, &args);
        let sent = ground.run(&["action", "send", "cam.shot", "--json", "-v", "--log-format", "json"]).ok();
        let id = lines(&sent, "job enqueued").remove(0)["job"].as_str().unwrap().to_owned();
        let dead = crate::common::eventually("it is a dead letter", || {
            ground.run(&["action", "dead", "list", "cam", "--json"]).ok().jsons().into_iter().next()
        });
        says_why(dead["error"].as_str().unwrap());
        let done = service.stop();
        let line = failed(&done, &id);
        line_says_why(&line);
        let dequeued = lines(&done, "job dequeued").remove(0);
        assert_eq!(line["span"]["attempt"], 1);
        for span in [&line["span"], &dequeued["span"]] {
            assert_eq!((&span["type"], &span["job"]), (&json("\"cam.shot\""), &Value::from(id.as_str())));
            assert!(span["task"].is_string(), "{span}");
            assert!(span["queue"].as_str().unwrap().contains("cam"), "{span}");
        }
    }

    /// The caller gets the error without its causes, which are internal to the service.
    fn of_a_call_is_in_the_log_of_the_service(ground: &Ground) {
        ground.file("shot.py", FAILS);
        let args = ["service", "--name", "cam", "--handler", "cam.shot=shot.py"];
        let service = logging(ground, &args);
        let called = ground.run(&["action", "call", "cam.shot", "{}"]).exits(1);
        assert!(called.stderr.contains("no light") && !called.stderr.contains("lens cap"), "{called:#?}");
        let done = service.stop();
        let line = lines(&done, "job failed").remove(0);
        line_says_why(&failed(&done, line["span"]["job"].as_str().unwrap()));
    }

    /// A run that is followed by another is no end.
    fn each_failed_run_has_its_line(ground: &Ground) {
        ground.file("shot.py", FAILS);
        let worker = logging(ground, &["worker", "--type", "python"]);
        ground.run(&["job", "submit", "shot.py", "--id", "dark", "--retries", "1", "--backoff", "0.1"]).ok();
        ground.run(&["job", "wait", "dark"]).exits(1);
        let lines = lines(&worker.stop(), "job failed");
        let printed: Vec<_> = lines.iter().map(|line| (&line["span"]["attempt"], &line["runs_again"])).collect();
        assert_eq!(printed, [(&json("1"), &json("true")), (&json("2"), &json("false"))]);
    }

    /// The command that runs the job says why itself.
    fn a_command_that_runs_its_job_says_it_once(ground: &Ground) {
        ground.file("shot.py", FAILS);
        let done = ground.run(&["run", "shot.py"]).exits(1);
        assert_eq!(done.stderr.matches("no light").count(), 3, "the error, and twice in its traceback: {done:#?}");
        assert_eq!(done.stderr.matches("job failed").count(), 0, "{done:#?}");
    }
}
