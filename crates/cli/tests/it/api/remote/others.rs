//! `worker`, `batch`, `schedule`, `events` and `metrics`.

use serde_json::{Value, json};

use super::Far;
use crate::common::{Ground, eventually, on_all_data};

on_all_data! {
    fn worker(ground: &Ground) {
        let first = ground.worker(&["--type", "osis", "--instance", "one"]);
        let far = Far::start(ground);
        let list = || far.ok(&["worker", "list", "--json"]).jsons();
        eventually("the worker is found", || (list().len() == 1).then_some(()));
        let id = list()[0]["worker"].as_str().unwrap().to_owned();
        far.refuses(&["worker", "quiet", &id]);
        far.run("admin", &["worker", "quiet", "none"]).exits(5);
        let quiet = far.ok(&["worker", "quiet", "one", "--json"]).json();
        assert_eq!(quiet, json!({"worker": id, "request": "quiet"}));
        far.ok(&["worker", "stop", "--all", "--yes"]);
        first.ended().ok();
        far.stop();
    }

    fn batch(ground: &Ground) {
        let far = Far::start(ground);
        ground.file("a.rhai", "1");
        let made = far.ok(&["batch", "create", "--id", "b", "--name", "n", "--on-done", "a.rhai", "--open-for", "1h"]);
        assert_eq!(made.stdout, "b\n");
        let added = far.ok(&["batch", "add", "b", "a.rhai", "a.rhai", "--ids", "j", "--tag", "t"]);
        assert_eq!(added.stdout, "j-1\nj-2\n");
        far.has_event("j-1", "enqueue");
        far.same(&["batch", "list"]);
        far.same(&["batch", "status", "b"]);
        let args = ["batch", "status", "b"];
        assert_eq!(far.ok(&args).stdout, ground.run(&args).ok().stdout);
        far.refuses(&["batch", "seal", "b"]);
        assert_eq!(far.ok(&["batch", "seal", "b"]).stdout, "b: sealed\n");
        far.run("admin", &["batch", "add", "b", "a.rhai"]).exits(1);
        assert_eq!(far.ok(&["batch", "cancel", "b", "--reason", "why"]).stdout, "b: cancelled\n");
        assert_eq!(far.same(&["batch", "status", "b"])[0]["cancelled"], "cancelled: why");
        far.run("admin", &["batch", "status", "b", "--watch"]).exits(1);
        far.run("admin", &["batch", "status", "none"]).exits(5);
        far.stop();
    }

    fn schedule(ground: &Ground) {
        let far = Far::start(ground);
        ground.file("a.rhai", "1");
        for name in ["s1", "s2"] {
            ground.run(&["schedule", "add", name, "--cron", "30 2 * * MON", "--tz", "Europe/Brussels", "a.rhai"]).ok();
        }
        let same = || {
            far.same(&["schedule", "list"]);
            let args = ["schedule", "list"];
            assert_eq!(far.ok(&args).stdout, ground.run(&args).ok().stdout);
        };
        same();
        far.refuses(&["schedule", "pause", "s1"]);
        assert_eq!(far.ok(&["schedule", "pause", "s1"]).stdout, "s1 paused\n");
        same();
        assert_eq!(far.ok(&["schedule", "resume", "s1", "--json"]).json(), json!({"name": "s1", "result": "resumed"}));
        far.same(&["schedule", "show", "s2"]);
        assert_eq!(far.ok(&["schedule", "show", "s2"]).stdout, ground.run(&["schedule", "show", "s2"]).ok().stdout);
        for (name, when) in [("s3", ["--every", "15m"]), ("s4", ["--every", "monday 6:00"]), ("s5", ["--cron", "@monthly"])] {
            let args = |name: &str| ["schedule", "add", name, "a.rhai", "--input", "7", "--overlap", "allow", "--tag", "t", when[0], when[1], "--tz", "UTC"].map(str::to_owned);
            let args = |name: &str| args(name).into_iter().filter(|word| !name.starts_with("s3") || (word != "--tz" && word != "UTC")).collect::<Vec<_>>();
            let (there, here) = (args(name), args(&format!("{name}n")));
            let there: Vec<&str> = there.iter().map(String::as_str).collect();
            let added = far.ok(&there).stdout;
            assert_eq!(added.replace(name, "x"), ground.run(&here).ok().stdout.replace(&format!("{name}n"), "x"));
            far.run("admin", &there).exits(2);
            far.ok(&[&there[..], &["--replace"]].concat());
        }
        same();
        let id = far.ok(&["schedule", "run", "s1"]).stdout;
        far.same(&["job", "show", id.trim()]);
        let removed = far.run("admin", &["schedule", "remove", "s1", "none", "--json"]).exits(5);
        assert_eq!(removed.jsons(), [json!({"name": "s1", "result": "removed"}), json!({"name": "none", "result": "missing"})]);
        same();
        far.stop();
    }

    fn events(ground: &Ground) {
        let far = Far::start(ground);
        ground.file("a.rhai", "1");
        ground.run(&["job", "enqueue", "a.rhai", "--id", "a", "--delay", "1h"]).ok();
        ground.run(&["job", "run-now", "a"]).ok();
        for args in [&["events", "--job", "a"][..], &["events", "--job", "a", "--limit", "1"]] {
            far.same(args);
            assert_eq!(far.ok(args).stdout, ground.run(args).ok().stdout);
        }
        let mut follows = far.begin("viewer", &["events", "--job", "a", "-f", "--limit", "0"]);
        eventually("the next event comes", || {
            ground.run(&["job", "cancel", "a"]).ok();
            ground.run(&["job", "retry", "a"]).ok();
            follows.line().contains("  a  ").then_some(())
        });
        far.run("admin", &["events"]).exits(2);
        far.stop();
    }

    fn metrics(ground: &Ground) {
        let far = Far::start(ground);
        ground.file("a.rhai", "1");
        ground.run(&["job", "enqueue", "a.rhai"]).ok();
        let waiting = |samples: Vec<Value>| {
            let mut waiting = samples.iter().filter(|it| it["name"] == "meshwork_queue_jobs");
            waiting.any(|it| it["labels"]["type"] == "osis" && it["value"] == 1.0).then_some(())
        };
        eventually("the metrics have the job", || waiting(far.ok(&["metrics", "--json"]).jsons()));
        assert!(far.ok(&["metrics"]).stdout.contains("meshwork_queue_jobs{"));
        far.run("admin", &["metrics", "--addr", "127.0.0.1:0"]).exits(2);
        far.stop();
    }
}
