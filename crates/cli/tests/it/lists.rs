//! Formats and orders of lists, and jobs for workers that come later.

use crate::common::{Ground, on_all_data};

on_all_data! {
    fn lists_are_written_as_csv_and_tsv(ground: &Ground) {
        ground.file("bad.rhai", "throw \"a, \\\"b\\\"\"");
        ground.run(&["enqueue", "bad.rhai", "--id", "j1"]).ok();
        let worker = ground.worker(&["--type", "osis"]);
        ground.run(&["wait", "j1"]).exits(1);
        worker.kill();
        let csv = ground.run(&["list", "--format", "csv"]).ok().stdout;
        let lines: Vec<_> = csv.lines().collect();
        assert_eq!(lines[0], "id,state,runs in,type,created,attempts,error");
        assert!(lines[1].starts_with("j1,failed,,osis,2") && lines[1].contains(",1,\"") && lines[1].contains("a, \"\"b\"\""), "{csv}");
        let tsv = ground.run(&["job", "list", "--format=tsv"]).ok().stdout;
        assert_eq!(tsv.lines().map(|line| line.split('\t').count()).collect::<Vec<_>>(), [7, 7]);
        for noun in ["queue", "worker", "schedule", "batch", "dead", "flow"] {
            let list = ground.run(&[noun, "list", "--format", "csv"]).ok().stdout;
            let columns: Vec<_> = list.lines().map(|line| line.matches(',').count()).collect();
            assert!(columns[0] > 2, "{noun}: {list}");
        }
        let of_bananas = |args: &[&str]| ground.run(&[args, &["--protocol", "bananas", "--format", "csv"]].concat()).ok().stdout;
        let queues = of_bananas(&["queue", "list"]);
        assert!(queues.starts_with("list,route,jobs\n") && queues.contains("\nscheduled,,0\n"), "{queues}");
        for noun in ["dead", "schedule"] {
            let list = of_bananas(&[noun, "list"]);
            assert!(list.lines().next().unwrap().contains(','), "{noun}: {list}");
        }
        for noun in ["actor", "context", "message", "runner"] {
            let list = ground.run(&[noun, "list", "--format", "tsv"]).ok().stdout;
            assert!(list.lines().next().unwrap().contains('\t'), "{noun}: {list}");
        }
        let same = ground.run(&["list", "--json"]).ok().stdout;
        assert_eq!(ground.run(&["list", "--format", "json"]).ok().stdout, same);
        ground.run(&["list", "--json", "--format", "csv"]).exits(2);
    }

    fn jobs_are_listed_by_duration_and_end(ground: &Ground) {
        ground.file("fast.sh", "exit 0");
        ground.file("slow.sh", "sleep 0.2");
        ground.run(&["enqueue", "slow.sh", "--id", "slow"]).ok();
        ground.run(&["enqueue", "fast.sh", "--id", "fast"]).ok();
        ground.run(&["enqueue", "fast.sh", "--id", "open", "--delay", "1h"]).ok();
        let worker = ground.worker(&["--type", "exec", "--concurrency", "1"]);
        ground.run(&["wait", "slow"]).ok();
        ground.run(&["wait", "fast"]).ok();
        worker.kill();
        let ids = |sort: &str| {
            let jobs = ground.run(&["list", "--json", "--sort", sort]).ok().jsons();
            jobs.iter().map(|job| job["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(ids("created"), ["open", "fast", "slow"]);
        assert_eq!(ids("ended"), ["fast", "slow", "open"]);
        assert_eq!(ids("duration"), ["slow", "fast", "open"]);
        // The first of all jobs, not of the newest ones.
        for (sort, first) in [("duration", "slow"), ("ended", "fast"), ("created", "open")] {
            let list = ground.run(&["list", "--sort", sort, "--limit", "1", "--json"]).ok();
            assert_eq!(list.json()["id"], first);
            assert!(list.stderr.contains("there are more (--limit)"), "{}", list.stderr);
            assert_eq!(list.stderr.contains("--cursor"), sort == "created", "{}", list.stderr);
        }
        let refused = ground.run(&["list", "--sort", "ended", "--cursor", "2026/x"]).exits(2);
        assert!(refused.stderr.contains("--cursor continues a list by creation"), "{}", refused.stderr);
    }

    fn a_type_without_a_worker_is_accepted_with_a_warning(ground: &Ground) {
        ground.file("a.txt", "1");
        let args = ["enqueue", "a.txt", "--type", "later", "--id", "j1"];
        let refused = ground.run(&[&args[..], &["--require-worker"]].concat()).exits(2);
        assert!(refused.stderr.contains("no worker runs scripts of type `later`"), "{}", refused.stderr);
        ground.run(&["show", "j1"]).exits(5);
        let done = ground.run(&args).ok();
        assert_eq!(done.stdout, "j1\n");
        assert_eq!(done.stderr, "warning: no worker runs jobs of type `later` now; they wait in later for one\n");
        ground.file("known.rhai", "1");
        let done = ground.run(&["enqueue", "known.rhai", "--group", "nope"]).ok();
        let warned = "warning: no worker of the group `nope` runs jobs of type `osis` now";
        assert!(done.stderr.starts_with(warned), "{}", done.stderr);
        let _worker = ground.worker(&["--type", "osis", "--group", "nope"]);
        assert_eq!(ground.run(&["enqueue", "known.rhai", "--group", "nope"]).ok().stderr, "");
        let line = "{\"script\":\"1\",\"type\":\"later\",\"id\":\"j2\"}\n";
        ground.file("jobs", line);
        let done = ground.run(&["enqueue", "--jsonl", "jobs"]).ok();
        assert!(done.stderr.contains("warning: no worker runs jobs of type `later`"), "{}", done.stderr);
    }
}
