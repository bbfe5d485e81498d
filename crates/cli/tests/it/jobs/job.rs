//! `meshwork job` and `meshwork queue`: submit, look, change; each with its exit codes and its JSON.

use std::os::unix::fs::symlink;

use crate::common::{Ground, json, names, on_all_data};
use meshwork_test_servers::servers::{Tool, need};

/// The id of a job submitted with these arguments.
fn submitted(ground: &Ground, args: &[&str]) -> String {
    let args = [&["job", "submit"], args].concat();
    ground.run(&args).ok().stdout.trim().to_owned()
}

/// The id of a job that has ended.
fn ended(ground: &Ground, script: &str) -> String {
    ground.file("ended.rhai", script);
    let done = ground.run(&["run", "ended.rhai", "--json"]);
    done.json()["id"].as_str().unwrap().to_owned()
}

fn status(ground: &Ground, id: &str) -> String {
    let job = ground.run(&["job", "status", id, "--json"]).ok().json();
    job["status"].as_str().unwrap().to_owned()
}

on_all_data! {
    fn a_job_is_submitted_run_and_waited_for(ground: &Ground) {
        ground.file("a.rhai", "INPUT + CALLER_ID + CONTEXT_ID");
        ground.file("in", "x");
        let args = ["a.rhai", "--id", "j-1", "--input", "@in", "--caller-id", "me", "--context-id", "here"];
        assert_eq!(submitted(ground, &args), "j-1");
        assert_eq!(status(ground, "j-1"), "dispatched");
        let worker = ground.worker(&["--type", "osis"]);
        assert_eq!(ground.run(&["job", "wait", "j-1"]).ok().stdout, "xmehere\n");
        let job = ground.run(&["job", "wait", "j-1", "--json"]).ok().json();
        assert_eq!((&job["caller"], &job["output"]), (&json("\"me\""), &json("\"xmehere\"")));
        worker.stop();
    }

    fn submit_tells_the_id(ground: &Ground) {
        ground.file("a.rhai", "1");
        let job = ground.run(&["job", "submit", "a.rhai", "--json"]).ok().json();
        assert_eq!(names(&job), ["id"]);
        assert_eq!(job["id"].as_str().unwrap().len(), 36);
    }

    fn an_id_that_is_taken_is_refused(ground: &Ground) {
        ground.file("a.rhai", "1");
        submitted(ground, &["a.rhai", "--id", "j"]);
        let before = ground.stored();
        let done = ground.run(&["job", "submit", "a.rhai", "--id", "j"]).exits(2);
        assert!(done.stderr.contains("there is a job j already"), "{}", done.stderr);
        assert_eq!(ground.stored(), before);
    }

    fn a_type_that_somebody_may_serve_later_is_taken(ground: &Ground) {
        ground.file("a.v", "println('x')");
        let id = submitted(ground, &["a.v"]);
        assert_eq!(status(ground, &id), "dispatched");
    }

    fn waiting_has_an_end(ground: &Ground) {
        ground.file("a.rhai", "1");
        let id = submitted(ground, &["a.rhai"]);
        let done = ground.run(&["job", "wait", &id, "--timeout", "0.2"]).exits(4);
        assert!(done.stderr.contains(&id), "{}", done.stderr);
        assert_eq!(status(ground, &id), "dispatched");
        let failed = ended(ground, "throw 1");
        ground.run(&["job", "wait", &failed]).exits(1);
    }

    fn status_is_for_people_and_programs(ground: &Ground) {
        let id = ended(ground, "throw \"boom\"");
        let done = ground.run(&["job", "status", &id]).ok();
        for line in [format!("id           {id}\n"), "state        failed\n".into(), "type         osis\n".into()] {
            assert!(done.stdout.contains(&line), "{}", done.stdout);
        }
        let job = ground.run(&["job", "status", &id, "--json"]).ok().json();
        assert!(job["error"].as_str().unwrap().contains("boom"), "{job}");
    }

    fn what_is_not_there_is_said_so(ground: &Ground) {
        for what in ["status", "wait", "logs", "stop", "retry", "delete"] {
            let done = ground.run(&["job", what, "nobody"]).exits(5);
            assert!(done.stderr.contains("there is no job nobody"), "{what}: {}", done.stderr);
            assert_eq!(done.stdout, "", "{what}");
        }
        let changed = ground.run(&["job", "stop", "nobody", "--json"]).exits(5).json();
        assert_eq!(changed, serde_json::json!({"id": "nobody", "result": "missing"}));
        assert_eq!(ground.stored(), "");
    }

    fn a_list_is_the_newest_first(ground: &Ground) {
        ground.file("a.rhai", "1");
        let ids: Vec<_> = (0..5).map(|_| submitted(ground, &["a.rhai"])).collect();
        ground.file("a.py", "1");
        let python = submitted(ground, &["a.py"]);
        let listed = |args: &[&str]| -> Vec<String> {
            let done = ground.run(&[&["job", "list", "--json"], args].concat()).ok();
            done.jsons().iter().map(|job| job["id"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(listed(&["--type", "python"]), [python]);
        assert_eq!(listed(&["--status", "finished"]), [""; 0]);
        let mut osis = listed(&["--type", "osis"]);
        assert_eq!(listed(&["--type", "osis", "--limit", "2"]), osis[..2]);
        osis.sort();
        let mut all = ids;
        all.sort();
        assert_eq!(osis, all);
        let done = ground.run(&["job", "list", "--limit", "2"]).ok();
        assert_eq!(done.stdout.lines().count(), 3);
        assert!(done.stderr.contains("there are more"), "{}", done.stderr);
        let jobs = ground.jobs();
        let times: Vec<_> = jobs.iter().map(|job| job["created_at"].as_str().unwrap()).collect();
        assert!(times.is_sorted_by(|a, b| a >= b), "{times:?}");
    }

    fn stop_is_for_jobs_that_wait_and_jobs_that_run(ground: &Ground) {
        ground.file("endless.rhai", "loop { }");
        let worker = ground.worker(&["--type", "osis", "--concurrency", "1", "--lease", "3"]);
        let runs = submitted(ground, &["endless.rhai"]);
        ground.job_that_is("running");
        let waits = submitted(ground, &["endless.rhai"]);
        // The other way round, it might have the slot that the first one leaves.
        let done = ground.run(&["job", "stop", &waits, &runs]).ok();
        assert_eq!(done.stdout, format!("{waits} cancelled\n{runs} cancelled\n"));
        let error = |id: &str| ground.run(&["job", "wait", id, "--json"]).exits(1).json()["error"].clone();
        assert_eq!((error(&runs), error(&waits)), ("stopped_by_request".into(), "stopped".into()));
        let again = ground.run(&["job", "stop", &runs, "--json"]).ok().json();
        assert_eq!(again, serde_json::json!({"id": runs, "result": "ended"}));
        // The slot is free again.
        ground.file("a.rhai", "1");
        assert_eq!(ground.run(&["run", "a.rhai"]).ok().stdout, "1\n");
        worker.stop();
    }

    fn a_stop_can_be_forced_or_left_to_itself(ground: &Ground) {
        ground.file("endless.rhai", "loop { }");
        // A worker that is gone, which nobody knows yet.
        let worker = ground.worker(&["--type", "osis", "--lease", "600"]);
        let id = submitted(ground, &["endless.rhai"]);
        ground.job_that_is("running");
        worker.kill();
        let done = ground.run(&["job", "stop", &id, "--no-wait"]).ok();
        assert_eq!(done.stdout, format!("{id} cancelling\n"));
        let done = ground.run(&["job", "stop", &id, "--timeout", "0.2", "--json"]).exits(4);
        assert_eq!(done.json(), serde_json::json!({"id": id, "result": "cancelling"}));
        for word in [&id, "has not ended 200 ms after its cancel request", "by force"] {
            assert!(done.stderr.contains(word), "{word}: {}", done.stderr);
        }
        let text = ground.run(&["job", "status", &id]).ok().stdout;
        assert!(text.contains("to be stopped stopped\n"), "{text}");
        let done = ground.run(&["job", "stop", &id, "--force"]).ok();
        assert_eq!(done.stdout, format!("{id} cancelled\n"));
        assert_eq!(status(ground, &id), "error");
    }

    fn a_job_that_failed_tells_when_it_runs_again(ground: &Ground) {
        ground.file("a.rhai", "throw 1");
        let id = submitted(ground, &["a.rhai", "--retries", "1", "--backoff", "3600"]);
        let worker = ground.worker(&["--type", "osis"]);
        let job = crate::common::eventually("it waits for its next run", || {
            let job = ground.run(&["job", "status", &id, "--json"]).ok().json();
            job["next_run_at"].is_string().then_some(job)
        });
        assert_eq!(job["status"], "dispatched");
        let text = ground.run(&["job", "status", &id]).ok().stdout;
        assert!(text.contains("\nnext run     2"), "{text}");
        worker.kill();
    }

    fn retry_is_for_jobs_that_have_ended(ground: &Ground) {
        let id = ended(ground, "throw 1");
        let done = ground.run(&["job", "retry", &id]).ok();
        assert_eq!(done.stdout, format!("{id} queued\n"));
        assert_eq!(status(ground, &id), "dispatched");
        let done = ground.run(&["job", "retry", &id]).exits(1);
        assert!(done.stderr.contains("has not ended"), "{}", done.stderr);
    }

    fn delete_is_for_jobs_that_do_not_run(ground: &Ground) {
        ground.file("endless.rhai", "loop { }");
        let over = ended(ground, "1");
        let worker = ground.worker(&["--type", "osis", "--shutdown-timeout", "0"]);
        let runs = submitted(ground, &["endless.rhai"]);
        ground.job_that_is("running");
        let done = ground.run(&["job", "delete", &runs, &over]).exits(1);
        assert!(done.stderr.contains("cancel it first"), "{}", done.stderr);
        assert_eq!(done.stdout, format!("{over} deleted\n"));
        ground.run(&["job", "status", &over]).exits(5);
        worker.stop();
    }

    fn logs_are_what_the_script_wrote(ground: &Ground) {
        if need(Tool::Python).is_none() {
            return;
        }
        ground.file("a.py", "import sys\nprint('one')\nprint('two', file=sys.stderr)\nresult = 3");
        let job = ground.run(&["run", "a.py", "--json"]).ok().json();
        let id = job["id"].as_str().unwrap();
        assert_eq!((job["stdout"].as_str(), job["stderr"].as_str()), (Some("one\n"), Some("two\n")));
        let logs = |args: &[&str]| ground.run(&[&["job", "logs", id], args].concat()).ok().stdout;
        assert_eq!(logs(&[]), "==> stdout <==\none\n==> stderr <==\ntwo\n");
        assert_eq!(logs(&["--stdout"]), "one\n");
        assert_eq!(logs(&["--stderr"]), "two\n");
        let all = json(&logs(&["--json"]));
        assert_eq!(names(&all), ["id", "log", "log_path", "stderr", "stdout"]);
        assert_eq!(json(&logs(&["--json", "--stderr"]))["stderr"], "two\n");
    }

    fn queues_say_what_waits_runs_and_listens(ground: &Ground) {
        ground.file("endless.rhai", "loop { }");
        ground.file("a.v", "1");
        let worker = ground.worker(&["--type", "osis", "--concurrency", "1", "--shutdown-timeout", "0"]);
        submitted(ground, &["endless.rhai"]);
        ground.job_that_is("running");
        submitted(ground, &["endless.rhai"]);
        submitted(ground, &["a.v"]);
        let queues = ground.run(&["queue", "list", "--json"]).ok().jsons();
        let queue = |queue: &str, waiting: usize, running: usize, listeners: usize| {
            serde_json::json!({
                "queue": queue, "waiting": waiting, "running": running, "listeners": listeners,
                "limit": null, "legacy": false, "set_aside": 0, "paused": false, "draining": false,
                "concurrency": null, "rate": null, "key_concurrency": null, "key_rate": null,
                "payload": null, "alert_after": null, "sandbox": null, "run_limits": {}, "fair": false, "weights": {},
            })
        };
        assert_eq!(queues, [
            queue("hero:q:work:type:osis", 1, 1, 1),
            queue("hero:q:work:type:osis:group:default", 0, 0, 1),
            queue("hero:q:work:type:v", 1, 0, 0),
        ]);
        let table = ground.run(&["queue", "list"]).ok().stdout;
        assert!(table.starts_with("queue "), "{table}");
        assert_eq!(table.lines().count(), 4);
        worker.stop();
    }

    fn namespaces_are_apart(ground: &Ground) {
        ground.file("a.rhai", "1");
        ground.run(&["run", "a.rhai", "--namespace", "other"]).ok();
        assert!(ground.jobs().is_empty());
        let listed = ground.run(&["--namespace", "other", "job", "list", "--json"]).ok().jsons();
        assert_eq!(listed.len(), 1);
    }
}

#[test]
fn a_log_file_of_another_worker_is_printed() {
    let Some(ground) = Ground::redis() else {
        return;
    };
    let id = ended(&ground, "1");
    let log = ground.file("log", "by another worker\n");
    let folder = log.parent().unwrap();
    let logs = |path: &str| {
        ground.raw(&format!("HSET hero:job:{id} log_path {path}"));
        let args = ["job", "logs", &id, "--log-dir", folder.to_str().unwrap()];
        ground.run(&args).ok()
    };
    for path in [log.to_str().unwrap(), "log"] {
        assert_eq!(logs(path).stdout, "by another worker\n");
    }
    std::fs::remove_file(&log).unwrap();
    let done = logs("log");
    assert!(
        done.stderr.contains("cannot read the log file"),
        "{}",
        done.stderr
    );
}

/// Whoever writes records may name any file.
#[test]
fn no_file_outside_of_the_allowed_folders_is_printed() {
    let Some(ground) = Ground::redis() else {
        return;
    };
    let id = ended(&ground, "1");
    let other = ground.file("key", "geheim");
    let folder = other.with_file_name("here");
    std::fs::create_dir(&folder).unwrap();
    symlink(&other, folder.join("link")).unwrap();
    symlink(other.parent().unwrap(), folder.join("way")).unwrap();
    let up = folder.join("../key").display().to_string();
    let other = other.display().to_string();
    let args = ["job", "logs", &id];
    for allowed in [&["--log-dir", folder.to_str().unwrap()] as &[&str], &[]] {
        for path in [&other, &up, "link", "way/key", "../key", "way"] {
            ground.raw(&format!("HSET hero:job:{id} log_path {path}"));
            for more in [&[] as &[&str], &["-f"], &["--json"]] {
                let done = ground.run(&[&args, allowed, more].concat()).ok();
                assert!(!done.stdout.contains("geheim"), "{path}: {}", done.stdout);
                assert!(
                    done.stderr.contains("cannot read the log file"),
                    "{}",
                    done.stderr
                );
            }
        }
    }
}
