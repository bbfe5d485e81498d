//! `meshwork batch`: jobs that belong together, and scripts that run when they have ended, once, whoever is
//! killed meanwhile. What was called is counted in files, outside the store.

use crate::common::{Ground, Running, eventually, on_all_data};
use serde_json::{Value, json};

/// A script that says it was called by adding its input to a file, a line each.
fn caller(ground: &Ground, name: &str) -> String {
    let log = ground.path(&format!("{name}.log"));
    let script = format!(
        "import sys\nwith open({:?}, 'a') as log:\n    log.write(sys.stdin.read() + '\\n')\n",
        log.display().to_string()
    );
    let file = format!("{name}.py");
    ground.file(&file, script);
    file
}

/// Input of each call.
fn calls(ground: &Ground, name: &str) -> Vec<Value> {
    let log = std::fs::read_to_string(ground.path(&format!("{name}.log"))).unwrap_or_default();
    log.lines().map(crate::common::json).collect()
}

fn status(ground: &Ground, batch: &str) -> Value {
    ground
        .run(&["batch", "status", batch, "--json"])
        .ok()
        .json()
}

/// Time of a callback's run.
fn called(ground: &Ground, status: &Value, kind: &str) {
    let id = status["callbacks"][kind].as_str().unwrap();
    ground.run(&["job", "wait", id]).ok();
}

on_all_data! {
    fn a_batch_calls_back_when_it_has_ended(ground: &Ground) {
        let (done, success) = (caller(ground, "done"), caller(ground, "success"));
        ground.file("good.rhai", "1");
        ground.file("bad.rhai", "throw \"no\"");
        let create = ["batch", "create", "--on-done", &done, "--on-success", &success, "--name", "mine", "--id", "b"];
        assert_eq!(ground.run(&create).ok().stdout, "b\n");
        assert_eq!(ground.run(&create).ok().stdout, "b\n");
        let ids = ground.run(&["batch", "add", "b", "good.rhai", "bad.rhai"]).ok().stdout;
        assert_eq!(ids.lines().count(), 2);
        let before = status(ground, "b");
        assert_eq!((&before["state"], &before["total"], &before["pending"]), (&json!("open"), &json!(2), &json!(2)));
        let callback = before["callbacks"]["done"].as_str().unwrap();
        let shown = ground.run(&["job", "status", callback]).ok().stdout;
        assert!(shown.contains("waits for    batch b, as its callback on done\n"), "{shown}");
        let job = ground.run(&["job", "status", ids.lines().next().unwrap(), "--json"]).ok().json();
        assert_eq!(job["batch"], "b");
        assert!(ground.run(&["batch", "seal", "b"]).ok().stdout.contains("b: sealed"));
        let worker = ground.worker(&["--type", "osis,python"]);
        ground.run(&["batch", "status", "b", "--watch"]).exits(1);
        let after = status(ground, "b");
        assert_eq!((&after["succeeded"], &after["failed"], &after["state"]), (&json!(1), &json!(1), &json!("failed")));
        called(ground, &after, "done");
        assert_eq!(calls(ground, "done"), [json!({"batch": "b", "why": "done", "total": 2, "succeeded": 1, "failed": 1})]);
        assert_eq!(calls(ground, "success"), Vec::<Value>::new());
        let listed = ground.run(&["batch", "list", "--json"]).ok().json();
        assert_eq!((&listed["id"], &listed["name"]), (&json!("b"), &json!("mine")));
        assert!(ground.run(&["batch", "list"]).ok().stdout.contains("failed"));
        assert!(ground.run(&["batch", "status", "b"]).ok().stdout.contains("state        failed\n"));
        worker.kill();
    }

    fn a_cancelled_batch_calls_nobody(ground: &Ground) {
        let done = caller(ground, "done");
        ground.file("good.rhai", "1");
        ground.run(&["batch", "create", "--on-done", &done, "--id", "b"]).ok();
        ground.run(&["job", "submit", "good.rhai", "--batch", "b", "--id", "j"]).ok();
        assert_eq!(ground.run(&["batch", "cancel", "b"]).ok().stdout, "b: cancelled\n");
        ground.run(&["batch", "cancel", "b"]).exits(1);
        ground.run(&["job", "wait", "j"]).exits(1);
        let after = status(ground, "b");
        assert_eq!((&after["state"], &after["cancelled"]), (&json!("cancelled"), &json!("stopped")));
        let callback = after["callbacks"]["done"].as_str().unwrap();
        ground.run(&["job", "wait", callback]).exits(1);
        ground.run(&["batch", "add", "b", "good.rhai"]).exits(1);
        let done = ground.run(&["batch", "add", "nowhere", "good.rhai"]).exits(5);
        assert!(done.stderr.contains("there is no batch nowhere"), "{}", done.stderr);
        assert!(done.stderr.contains("meshwork batch list"), "{}", done.stderr);
    }

    fn a_batch_survives_kill_9_of_clients_and_workers(ground: &Ground) {
        let done = caller(ground, "done");
        ground.file("work.rhai", "let x = 0; while x < 20000 { x += 1; } x");
        let files: Vec<_> = (0..60).map(|n| format!("in{n}")).collect();
        for file in &files {
            ground.file(file, file);
        }
        let create = ["batch", "create", "--on-done", &done, "--id", "b"];
        let seal = ["batch", "seal", "b"];
        let add: Vec<_> = ["batch", "add", "b", "work.rhai", "--ids", "w", "--each"]
            .into_iter()
            .chain(files.iter().map(String::as_str))
            .collect();
        let ended = |least: u64| {
            eventually(&format!("{least} jobs have ended"), || {
                let now = status(ground, "b");
                let ended = now["succeeded"].as_u64().unwrap() + now["failed"].as_u64().unwrap();
                (ended >= least).then_some(())
            });
        };
        let worker = || ground.worker(&["--type", "osis", "--lease", "0.5", "--concurrency", "4"]);
        // A client dies before it is heard, another when it was, and each is repeated to the end.
        ground.start(&create).kill();
        ground.run(&create).ok();
        ground.start(&add).kill();
        let client: Running = ground.start(&add);
        eventually("jobs are added", || (status(ground, "b")["total"].as_u64().unwrap() > 0).then_some(()));
        client.kill();
        for least in [5, 20] {
            let worker = worker();
            ended(least);
            worker.kill();
        }
        ground.run(&add).ok();
        ground.start(&seal).kill();
        ground.run(&seal).ok();
        let workers = [worker(), worker()];
        ended(40);
        let [first, second] = workers;
        first.kill();
        let last = ground.worker(&["--type", "osis,python", "--lease", "0.5"]);
        ground.run(&["batch", "status", "b", "--watch", "--timeout", "60"]).ok();
        let after = status(ground, "b");
        assert_eq!((&after["total"], &after["succeeded"]), (&json!(60), &json!(60)));
        called(ground, &after, "done");
        ground.run(&seal).ok();
        ground.run(&create).ok();
        assert_eq!(calls(ground, "done"), [json!({"batch": "b", "why": "done", "total": 60, "succeeded": 60, "failed": 0})]);
        second.kill();
        last.kill();
    }
}

on_all_data! {
    fn jobs_of_a_file_of_lines_join_the_batch(ground: &Ground) {
        ground.file("jobs.jsonl", "{\"type\":\"osis\",\"script\":\"1\"}\n{\"type\":\"osis\",\"script\":\"2\",\"batch\":\"c\"}\n");
        for batch in ["b", "c"] {
            ground.run(&["batch", "create", "--id", batch]).ok();
        }
        ground.run(&["job", "enqueue", "--jsonl", "jobs.jsonl", "--batch", "b"]).ok();
        for batch in ["b", "c"] {
            let status = ground.run(&["batch", "status", batch, "--json"]).ok().json();
            assert_eq!(status["total"], 1, "{batch}: {status}");
        }
        let done = ground.run(&["job", "enqueue", "--jsonl", "jobs.jsonl", "--batch", "nowhere", "--json"]).exits(1);
        assert_eq!(done.jsons()[0]["result"], "not_in_batch", "{done:?}");
        assert_eq!(ground.jobs().len(), 3);
    }
}
