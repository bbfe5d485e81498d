//! `worker quiet` and `worker stop` from another process, and SIGTSTP: for every protocol, and under kills.

use rustix::process::Signal;
use serde_json::Value;

use crate::common::{Ground, Running, eventually, json, on_all_data};

/// Handlers of three protocols end when the test's folder has the file `go`.
const UNTIL_GO: &str = "until [ -e FOLDER/go ]; do sleep 0.02; done; echo done";

/// Short, so that the worker looks often, and long enough that a busy machine loses none.
const LEASE: [&str; 2] = ["--lease", "3"];

/// A worker that listens, and its id.
fn listening(ground: &Ground, args: &[&str]) -> (Running, String) {
    let mut worker = ground.start(&[args, &["--json"], &LEASE].concat());
    let event = json(&worker.line());
    let id = event["worker"].as_str().unwrap().to_owned();
    (worker, id)
}

/// Submits a script and returns the job's id.
fn submit(ground: &Ground, name: &str) -> String {
    let submitted = ground.run(&["job", "enqueue", name]).ok();
    submitted.stdout.trim().to_owned()
}

fn job(ground: &Ground, verb: &str, id: &str) -> Value {
    ground.run(&["job", verb, id, "--json"]).ok().json()
}

/// A job that runs until the file `go` is there, on a worker that is started with `args`.
fn busy(ground: &Ground, args: &[&str]) -> (Running, String, String) {
    let folder = ground.path("").display().to_string();
    ground.file(
        "until_go.sh",
        UNTIL_GO.replace("FOLDER", folder.trim_end_matches('/')),
    );
    let (worker, id) = listening(ground, args);
    let first = submit(ground, "until_go.sh");
    ground.job_that_is("running");
    (worker, id, first)
}

/// Asserts that the running job ends on the quiet worker, and that the next job runs elsewhere.
fn is_quiet(ground: &Ground, id: &str, first: &str) {
    ground.file("next.sh", "echo next");
    let next = submit(ground, "next.sh");
    ground.file("go", "");
    let first = job(ground, "wait", first);
    assert_eq!(
        (&first["output"], first["worker"].as_str()),
        (&json(r#""done\n""#), Some(id))
    );
    let status = job(ground, "show", &next);
    assert_eq!(status["status"], "dispatched", "{status}");
    let (other, other_id) = listening(ground, &["worker", "--type", "exec"]);
    let next = job(ground, "wait", &next);
    assert_eq!(next["worker"].as_str(), Some(other_id.as_str()));
    other.stop();
}

on_all_data! {
    fn a_quiet_worker_finishes_what_runs_and_takes_no_more(ground: &Ground) {
        let (worker, id, first) = busy(ground, &["worker", "--type", "exec", "--instance", "one"]);
        let obeyed = ground.run(&["worker", "quiet", "one", "--json"]).ok().json();
        assert_eq!(obeyed, serde_json::json!({"worker": id, "request": "quiet"}));
        eventually("it is listed as quiet", || {
            let listed = ground.run(&["worker", "list", "--json"]).ok().json();
            listed["quiet"].as_bool().filter(|quiet| *quiet)
        });
        is_quiet(ground, &id, &first);
        // A second request changes nothing.
        ground.run(&["worker", "quiet", &id]).ok();
        ground.run(&["worker", "stop", &id]).ok();
        let done = worker.ended().ok();
        assert_eq!(done.jsons()[1]["released"], 0);
    }

    fn sigtstp_makes_a_worker_quiet(ground: &Ground) {
        let (mut worker, id, first) = busy(ground, &["worker", "--type", "exec"]);
        worker.signal(Signal::TSTP);
        while !worker.said().contains("quiet: takes no more jobs") {}
        eventually("it is listed as quiet", || {
            let listed = ground.run(&["worker", "list", "--json"]).ok().json();
            listed["quiet"].as_bool().filter(|quiet| *quiet)
        });
        is_quiet(ground, &id, &first);
        worker.stop();
    }

    fn a_stop_from_afar_is_graceful(ground: &Ground) {
        let (worker, id, first) = busy(ground, &["worker", "--type", "exec"]);
        ground.run(&["worker", "stop", &id]).ok();
        ground.file("go", "");
        let events = worker.ended().ok().jsons();
        assert_eq!(events[1], serde_json::json!({"event": "stopped", "worker": id, "released": 0}));
        assert_eq!(job(ground, "show", &first)["output"], "done\n");
        let gone = ground.run(&["worker", "stop", &id]).exits(5);
        assert!(gone.stderr.contains(&format!("there is no worker {id}")), "{}", gone.stderr);
    }

    fn a_worker_that_is_killed_before_it_looks_leaves_nothing(ground: &Ground) {
        // A data directory has an owner that goes on.
        let (owner, _) = listening(ground, &["worker", "--type", "osis"]);
        let args = ["worker", "--type", "exec", "--instance", "one"];
        let (worker, id, first) = busy(ground, &args);
        worker.signal(Signal::STOP);
        let request = ["worker", "stop", &id, "--timeout", "500ms"];
        let late = ground.run(&request).exits(4);
        assert!(late.stderr.contains("the request is withdrawn"), "{}", late.stderr);
        worker.signal(Signal::CONT);
        let requested = ground.start(&["worker", "stop", &id, "--timeout", "1"]);
        worker.kill();
        // It may have obeyed just before it was killed.
        let code = requested.ended().code;
        assert!(matches!(code, Some(0 | 4 | 5)), "{code:?}");
        // Its successor of the same name is another worker.
        let (other, other_id) = eventually("the name is free", || {
            let mut other = ground.start(&[&args[..], &["--json"], &LEASE].concat());
            let line = other.try_line()?;
            let id = json(&line)["worker"].as_str()?.to_owned();
            Some((other, id))
        });
        ground.file("go", "");
        let first = job(ground, "wait", &first);
        assert_eq!((&first["output"], first["worker"].as_str()), (&json(r#""done\n""#), Some(other_id.as_str())));
        let left = ground.keys().into_iter().map(|key| String::from_utf8_lossy(&key).into_owned());
        assert_eq!(left.filter(|key| key.contains(":request:")).count(), 0);
        other.stop();
        owner.stop();
    }

    fn an_ambiguous_or_unknown_id_changes_nothing(ground: &Ground) {
        let (osis, _) = listening(ground, &["worker", "--type", "osis", "--instance", "one"]);
        let (exec, id) = listening(ground, &["worker", "--type", "exec", "--instance", "one"]);
        let several = ground.run(&["worker", "quiet", "one"]).exits(2);
        assert!(several.stderr.contains("several workers") && several.stderr.contains(&id), "{}", several.stderr);
        ground.run(&["worker", "quiet", "two"]).exits(5);
        let listed = ground.run(&["worker", "list", "--json"]).ok().jsons();
        assert!(listed.iter().all(|worker| worker["quiet"] == false), "{listed:?}");
        osis.stop();
        exec.stop();
    }

    fn workers_of_other_protocols_obey_too(ground: &Ground) {
        ground.file("a.rhai", "1");
        let bananas = ["worker", "--protocol", "bananas", "--handler", "a=a.rhai"];
        let nooble = ["service", "--name", "demo", "--handler", "demo.a=a.rhai"];
        for (start, noun) in [
            (&bananas[..], &["worker", "--protocol", "bananas"][..]),
            (&nooble, &["worker", "--protocol", "nooble"]),
        ] {
            let (worker, id) = listening(ground, start);
            ground.run(&[noun, &["quiet", &id]].concat()).ok();
            ground.run(&[noun, &["stop", &id]].concat()).ok();
            assert_eq!(worker.ended().ok().jsons()[1]["released"], 0);
            ground.run(&[noun, &["stop", &id, "--timeout", "200ms"]].concat()).exits(4);
        }
    }
}
