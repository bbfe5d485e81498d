//! `job` and `dead`.

use serde_json::{Value, json};

use super::Far;
use crate::common::{Ground, eventually, on_all_data};

/// Runs a worker until all jobs have ended.
fn work(ground: &Ground) {
    let worker = ground.worker(&["--type", "osis,python"]);
    eventually("all jobs have ended", || {
        let open = ["queued", "running", "waiting"];
        let is_open = |job: &Value| open.contains(&job["state"].as_str().unwrap());
        (!ground.jobs().iter().any(is_open)).then_some(())
    });
    worker.stop();
}

on_all_data! {
    fn job(ground: &Ground) {
        let far = Far::start(ground);
        ground.file("good.rhai", "print(\"out\"); #{\"a\": 1.50}");
        ground.file("bad.rhai", "throw \"boom\"");
        ground.file("in.txt", "given");
        // A job has all that is given, as a job of the store has it.
        let options = |id: &'static str| {
            ["job", "enqueue", "good.rhai", "--id", id, "--input", "@in.txt", "--priority", "high", "--retries", "2", "--backoff", "1.5",
             "--env", "A=1", "--tag", "x", "--tag", "y", "--key", "k", "--unique", id, "--on-duplicate", "refuse", "--timeout", "1m", "--start-timeout", "1h"]
        };
        assert_eq!(far.ok(&options("far")).stdout, "far\n");
        ground.run(&options("near")).ok();
        far.has_event("far", "enqueue");
        let record = |id: &str| {
            let mut job = ground.run(&["job", "show", id, "--json"]).ok().json();
            for field in ["id", "created_at", "updated_at", "start_by", "unique", "waits", "reasons", "held_by"] {
                job[field].take();
            }
            job
        };
        assert_eq!(record("far"), record("near"));
        // The same again is the same job, and another one has to have another unique name.
        far.ok(&options("far"));
        far.run("admin", &["job", "enqueue", "good.rhai", "--unique", "far", "--on-duplicate", "refuse"]).exits(1);
        far.ok(&["job", "enqueue", "bad.rhai", "--id", "bad"]);
        far.ok(&["job", "enqueue", "good.rhai", "--id", "late", "--delay", "1h", "--depends-on", "n=far"]);
        assert_eq!(far.same(&["job", "list"]).len(), 4);
        for id in ["far", "late"] {
            far.same(&["job", "show", id]);
            far.same(&["job", "why", id]);
            let args = ["job", "show", id];
            assert_eq!(far.ok(&args).stdout, ground.run(&args).ok().stdout);
        }
        far.run("admin", &["job", "result", "late"]).exits(4);
        far.run("admin", &["job", "wait", "late", "--timeout", "0.1"]).exits(4);
        far.run("admin", &["job", "show", "none"]).exits(5);
        // As on the store, the beginning of an id is enough if it is of one job.
        for id in ["begins-1", "begins-2"] {
            far.ok(&["job", "enqueue", "good.rhai", "--id", id, "--delay", "1h"]);
        }
        far.run("viewer", &["job", "show", "begins"]).exits(2);
        far.ok(&["job", "delete", "begins-1"]);
        assert_eq!(far.ok(&["job", "show", "begi…", "--json"]).json()["id"], "begins-2");
        assert_eq!(far.ok(&["job", "delete", "begins"]).stdout, "begins-2 deleted\n");
        far.refuses(&["job", "enqueue", "good.rhai"]);
        work(ground);
        for (args, code) in [
            (&["job", "result", "far"][..], 0), (&["job", "result", "bad"], 1), (&["job", "wait", "far"], 0), (&["job", "logs", "far"], 0),
            (&["job", "logs", "far", "--follow"], 0), (&["job", "logs", "bad", "-f"], 1), (&["job", "why", "bad"], 0), (&["job", "show", "bad"], 0),
        ] {
            for more in [&[][..], &["--json"]] {
                let args = [args, more].concat();
                let (there, here) = (far.run("viewer", &args).exits(code), ground.run(&args).exits(code));
                assert_eq!((there.stdout, there.stderr), (here.stdout, here.stderr), "{args:?}");
            }
        }
        // Filters and orders.
        for args in [
            &["--state", "failed"][..], &["--failed"], &["--tag", "x", "--tag", "y"], &["--type", "osis", "--key", "k"], &["--error", "boom"],
            &["--text", "print"], &["--since", "1h"], &["--until", "1h"], &["--sort", "duration"], &["--sort", "ended", "--limit", "2"], &["--limit", "1"],
        ] {
            let args = [&["job", "list"], args].concat();
            far.same(&args);
            let (there, here) = (far.ok(&args), ground.run(&args).ok());
            assert_eq!((there.stdout, there.stderr), (here.stdout, here.stderr), "{args:?}");
        }
        far.stop();
    }

    fn changes_of_jobs(ground: &Ground) {
        let far = Far::start(ground);
        ground.file("a.rhai", "1");
        for id in ["a1", "a2", "a3", "a4", "a5"] {
            ground.run(&["job", "enqueue", "a.rhai", "--id", id, "--tag", "t", "--delay", "1h"]).ok();
        }
        let lines = |args: &[&str], code| far.run("admin", &[args, &["--json"]].concat()).exits(code).jsons();
        assert_eq!(lines(&["job", "run-now", "a1"], 0), [json!({"id": "a1", "result": "queued"})]);
        far.has_event("a1", "run_now");
        for (args, result, code) in [
            (["job", "run-now", "a1"], "ready", 1), (["job", "retry", "a1"], "unfinished", 1), (["job", "cancel", "a1"], "cancelled", 0),
            (["job", "retry", "a1"], "queued", 0), (["job", "delete", "none"], "missing", 5), (["job", "delete", "a1"], "deleted", 0),
        ] {
            assert_eq!(lines(&args, code), [json!({"id": args[2], "result": result})], "{args:?}");
        }
        assert_eq!(lines(&["job", "set", "a2", "--priority", "high", "--timeout", "7s", "--delay", "2h"], 0)[0]["result"], "set");
        let show = far.same(&["job", "show", "a2"]);
        assert_eq!((&show[0]["priority"], &show[0]["timeout"]), (&json!("high"), &json!(7)));
        far.refuses(&["job", "cancel", "a2"]);
        far.run("admin", &["job", "cancel", "--tag", "t"]).exits(2);
        assert_eq!(lines(&["job", "cancel", "--tag", "t", "--dry-run"], 0).len(), 4);
        let cancelled = far.ok(&["job", "cancel", "--tag", "t", "--yes"]);
        assert!(cancelled.stderr.contains("4 jobs cancelled"), "{}", cancelled.stderr);
        assert_eq!(lines(&["job", "retry", "a2", "none", "a3"], 5).len(), 3);
        far.ok(&["job", "delete", "--all", "--yes"]);
        assert!(ground.jobs().is_empty());
        far.stop();
    }

    fn dead(ground: &Ground) {
        let far = Far::start(ground);
        ground.file("bad.rhai", "throw \"boom 7\"");
        for id in ["d1", "d2", "d3"] {
            ground.run(&["job", "enqueue", "bad.rhai", "--id", id, "--tag", id]).ok();
        }
        work(ground);
        for args in [&["dead", "list"][..], &["dead", "list", "--limit", "2"], &["dead", "list", "--tag", "d2"], &["dead", "list", "--groups"], &["dead", "show", "d1"]] {
            far.same(args);
            let (there, here) = (far.ok(args), ground.run(args).ok());
            assert_eq!((there.stdout, there.stderr), (here.stdout, here.stderr), "{args:?}");
        }
        far.refuses(&["dead", "retry", "d1"]);
        let line = |args: &[&str], code| far.run("admin", &[args, &["--json"]].concat()).exits(code).json();
        assert_eq!(line(&["dead", "retry", "d1"], 0), json!({"id": "d1", "result": "queued"}));
        far.has_event("d1", "requeue");
        assert_eq!(line(&["dead", "retry", "d1"], 1)["result"], "not_dead");
        assert_eq!(line(&["dead", "delete", "d2"], 0)["result"], "deleted");
        far.ok(&["dead", "delete", "--reason", "failed", "--yes"]);
        assert!(far.same(&["dead", "list"]).is_empty());
        far.stop();
    }
}
