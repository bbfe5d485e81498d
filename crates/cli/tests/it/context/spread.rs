//! `queue spread`, and commands over all parts of a spread queue.

use crate::common::{Ground, eventually, json as of_line, on_both};
use serde_json::{Value, json};

/// Returns the lines of JSON of a command.
fn lines(ground: &Ground, args: &[&str]) -> Vec<Value> {
    let done = ground.run(&[args, &["--json"]].concat()).ok();
    done.stdout.lines().map(of_line).collect()
}

fn enqueue(ground: &Ground, more: &[&str]) -> String {
    let args = [&["job", "enqueue", "sum.rhai", "--spread"], more].concat();
    ground.run(&args).ok().stdout.trim().to_owned()
}

fn spread(ground: &Ground, parts: &str) {
    ground.file("sum.rhai", "1 + 2");
    ground
        .run(&["queue", "spread", "osis", "--parts", parts])
        .ok();
}

#[test]
fn a_queue_has_parts_and_commands_use_all_of_them() {
    on_both(|ground| {
        spread(ground, "3");
        let parts = lines(ground, &["queue", "spread", "osis"]);
        let numbers: Vec<_> = parts.iter().map(|part| part["context"].clone()).collect();
        assert_eq!(numbers, [json!(1), json!(2), json!(3)]);
        let ids: Vec<_> = (0..9)
            .map(|n| enqueue(ground, &["--key", &n.to_string()]))
            .collect();
        let again = enqueue(ground, &["--key", "4"]);
        assert_eq!(again[..9], ids[4][..9], "the part of a key");
        let listed = lines(ground, &["job", "list", "--spread"]);
        assert_eq!(listed.len(), 10);
        for job in &listed {
            let part = job["context"].to_string();
            assert!(
                job["id"]
                    .as_str()
                    .unwrap()
                    .starts_with(&format!("{{ctx:{part}}}:"))
            );
        }
        ground.run(&["queue", "pause", "osis", "--spread"]).ok();
        let queues = lines(ground, &["queue", "list", "--spread"]);
        assert!(queues.iter().all(|queue| queue["paused"] == true));
        let waiting: u64 = queues
            .iter()
            .map(|queue| queue["waiting"].as_u64().unwrap())
            .sum();
        assert_eq!(waiting, 10);
        ground.run(&["queue", "resume", "osis", "--spread"]).ok();
        let set = [
            "queue",
            "limit",
            "set",
            "osis",
            "--key-concurrency",
            "1",
            "--spread",
        ];
        let set = ground.run(&set).ok();
        assert!(set.stderr.contains("each of the 3 parts"), "{}", set.stderr);
        // A new part has the limits of the first one.
        ground
            .run(&["queue", "spread", "osis", "--parts", "4"])
            .ok();
        let limits = lines(ground, &["queue", "limit", "show", "--spread"]);
        assert_eq!(limits.len(), 4);
        assert!(limits.iter().all(|limit| limit["key_concurrency"] == 1));
        let cancel = ["job", "cancel", "--spread", "--all", "--yes", "--no-wait"];
        ground.run(&cancel).ok();
        let open = lines(ground, &["job", "list", "--spread", "--state", "cancelled"]);
        assert_eq!(open.len(), 10);
        let shown = lines(ground, &["job", "show", &ids[0]]);
        assert_eq!(shown[0]["state"], "cancelled");
    });
}

#[test]
fn a_worker_serves_all_parts_and_later_ones() {
    on_both(|ground| {
        spread(ground, "2");
        let ids: Vec<_> = (0..6)
            .map(|n| enqueue(ground, &["--key", &n.to_string()]))
            .collect();
        let _worker = ground.start(&["worker", "--json", "--spread", "--type", "osis"]);
        for id in &ids {
            assert_eq!(ground.run(&["job", "wait", id]).ok().stdout.trim(), "3");
        }
        ground
            .run(&["queue", "spread", "osis", "--parts", "5"])
            .ok();
        for n in 0..12 {
            let waited = enqueue(ground, &["--key", &format!("late {n}"), "--wait"]);
            assert_eq!(waited, "3");
        }
        eventually("no key moves", || {
            let done = ground.run(&["queue", "spread", "osis"]).ok();
            (!done.stderr.contains("old parts")).then_some(())
        });
        ground
            .run(&["queue", "spread", "osis", "--parts", "1"])
            .ok();
        assert!(enqueue(ground, &["--key", "7"]).starts_with("{ctx:1}:"));
    });
}

#[test]
fn a_flow_runs_whole_in_one_part() {
    on_both(|ground| {
        spread(ground, "2");
        ground.file(
            "sum.yaml",
            "flow: sum\njobs: {a: {run: sum.rhai}, b: {run: sum.rhai, needs: a}}\n",
        );
        let run = ["flow", "run", "sum.yaml", "--spread", "osis", "--json"];
        assert_eq!(ground.run(&run).ok().json()["status"], "finished");
        let worker = ground.worker(&["--spread", "--type", "osis"]);
        let submit = ["flow", "submit", "sum.yaml", "--spread", "osis", "--json"];
        let made = ground.run(&submit).ok().json();
        let [id, part] = ["id", "context"].map(|name| made[name].to_string());
        assert!(["1", "2"].contains(&&*part), "{made}");
        eventually("the flow ends in its part", || {
            let shown = ground.run(&["flow", "status", &id, "--context", &part, "--json"]);
            (shown.ok().json()["status"] == "finished").then_some(())
        });
        let other = ["flow", "submit", "sum.yaml", "--spread", "python"];
        let refused = ground.run(&other).exits(2);
        assert!(
            refused.stderr.contains("is not spread"),
            "{}",
            refused.stderr
        );
        let both = [
            "flow",
            "submit",
            "sum.yaml",
            "--spread",
            "osis",
            "--context",
            "1",
        ];
        ground.run(&both).exits(2);
        worker.stop();
    });
}

#[test]
fn the_file_of_a_flow_names_its_spread_queue() {
    on_both(|ground| {
        spread(ground, "2");
        ground.file(
            "own.yaml",
            "flow: own\nspread: osis\njobs: {a: {run: sum.rhai}}\n",
        );
        let own = |more: &[&str]| {
            let args = [&["flow", "submit", "own.yaml", "--json"], more].concat();
            ground.run(&args)
        };
        let placed = own(&[]).ok().json()["context"].to_string();
        assert!(["1", "2"].contains(&&*placed), "{placed}");
        // The options go before the file.
        ground.run(&["context", "create"]).ok();
        let placed = own(&["--context", "3"]).ok().json()["context"].clone();
        assert_eq!(placed, json!(3));
        let refused = own(&["--spread", "python"]).exits(2);
        assert!(
            refused.stderr.contains("python is not spread"),
            "{}",
            refused.stderr
        );
        let deploy = ["flow", "deploy", "own.yaml", "--context", "1"];
        let schedule = [
            "schedule",
            "add",
            "s",
            "--every",
            "1h",
            "own.yaml",
            "--context",
            "1",
        ];
        for args in [&deploy[..], &schedule] {
            let refused = ground.run(args).exits(2);
            assert!(
                refused.stderr.contains("`spread: osis`"),
                "{}",
                refused.stderr
            );
        }
    });
}

#[test]
fn many_lines_go_to_their_parts_and_wrong_ones_change_nothing() {
    on_both(|ground| {
        spread(ground, "4");
        let line = |n: u32| {
            format!(
                "{{\"script\": \"{n}\", \"type\": \"osis\", \"key\": \"{}\"}}\n",
                n % 7
            )
        };
        let all: String = (0..1_200).map(line).collect();
        ground.file("jobs.jsonl", &all);
        let args = ["job", "enqueue", "--spread", "--jsonl", "jobs.jsonl"];
        let done = ground.run(&args).ok();
        assert_eq!(done.stdout.lines().count(), 1_200);
        assert!(
            done.stderr.contains("1200 of 1200 jobs stored"),
            "{}",
            done.stderr
        );
        ground.file(
            "jobs.jsonl",
            format!("{all}{{\"script\": \"1\", \"type\": \"python\"}}\n"),
        );
        let refused = ground.run(&args).exits(2);
        assert!(
            refused.stderr.contains("all lines need one queue"),
            "{}",
            refused.stderr
        );
        let parts = lines(ground, &["queue", "spread", "osis"]);
        let waiting: u64 = parts
            .iter()
            .map(|part| part["waiting"].as_u64().unwrap())
            .sum();
        assert_eq!(waiting, 1_200);
    });
}

#[test]
fn bad_requests_name_what_to_do() {
    on_both(|ground| {
        ground.file("sum.rhai", "1 + 2");
        ground.run(&["context", "create"]).ok();
        let args = ["job", "enqueue", "sum.rhai", "--spread"];
        let none = ground.run(&args).exits(2);
        assert!(
            none.stderr.contains("meshwork queue spread osis --parts 4"),
            "{}",
            none.stderr
        );
        for parts in ["0", "65", "-1", "x"] {
            ground
                .run(&["queue", "spread", "osis", "--parts", parts])
                .exits(2);
        }
        ground
            .run(&["queue", "spread", "osis:prio:0", "--parts", "2"])
            .exits(2);
        ground
            .run(&["queue", "spread", "osis", "--contexts", "1"])
            .exits(2);
        ground
            .run(&["queue", "spread", "osis", "--parts", "2"])
            .ok();
        let refused = ground
            .run(&[&args[..], &["--batch", "b"]].concat())
            .exits(2);
        assert!(refused.stderr.contains("a batch"), "{}", refused.stderr);
        let worker = ["worker", "--spread", "--type", "python"];
        let none = ground.run(&worker).exits(2);
        assert!(none.stderr.contains("queue spread"), "{}", none.stderr);
    });
}
