//! `meshwork migrate bananas`: jobs go over and back from the command line, and what is refused in which words.

use crate::common::{Ground, json, on_all_data};
use serde_json::Value;

const COUNT: &str = "let items = parse_json(INPUT).items; items.len()";
const PAYLOAD: &str = "{\"items\":[1,2,3],\"big\":12345678901234567890}";

fn submit(ground: &Ground, name: &str, more: &[&str]) -> String {
    let args = [&["bananas", "submit", name, PAYLOAD], more].concat();
    ground.run(&args).ok().stdout.trim().to_owned()
}

/// Moves jobs to handlers of the name `count`, and checks the exit code. Returns the printed JSON.
fn migrate(ground: &Ground, more: &[&str], code: i32) -> Value {
    ground.file("count.rhai", COUNT);
    let args = [
        "migrate",
        "bananas",
        "--json",
        "--handler",
        "count=count.rhai",
    ];
    ground.run(&[&args[..], more].concat()).exits(code).json()
}

fn back(ground: &Ground, more: &[&str], code: i32) -> Value {
    let args = ["migrate", "bananas", "--json", "--back"];
    ground.run(&[&args[..], more].concat()).exits(code).json()
}

fn counts(printed: &Value) -> [u64; 4] {
    ["waiting", "scheduled", "dead", "left"].map(|name| printed[name].as_u64().unwrap())
}

fn scheduled(ground: &Ground) -> Value {
    let queues = ground.run(&["bananas", "queues", "--json"]).ok().jsons();
    queues.last().unwrap()["scheduled"].clone()
}

on_all_data! {
    fn jobs_go_over_and_who_waits_is_told(ground: &Ground) {
        let plain = submit(ground, "count", &["--description", "some"]);
        let gpu = submit(ground, "count", &["--route", "gpu", "--priority", "low"]);
        submit(ground, "count", &["--at", "+1h"]);
        assert_eq!(counts(&migrate(ground, &["--dry-run"], 0)), [2, 1, 0, 0]);
        assert_eq!(ground.jobs().len(), 0);
        let printed = migrate(ground, &[], 0);
        assert_eq!((counts(&printed), &printed["moved"]), ([2, 1, 0, 0], &json("3")));
        let jobs = ground.jobs();
        let job = |id: &str| jobs.iter().find(|job| job["id"] == id).unwrap();
        assert_eq!((&job(&gpu)["group"], &job(&gpu)["priority"]), (&json("\"gpu\""), &json("\"low\"")));
        assert_eq!(job(&plain)["caller"], "bananas/count");
        assert_eq!(job(&plain)["caller_context"], "some");
        assert_eq!(scheduled(ground), 0);
        let worker = ground.worker(&["--type", "osis", "--routes", "gpu,default"]);
        for id in [plain, gpu] {
            assert_eq!(ground.run(&["bananas", "wait", &id]).ok().stdout.trim(), "3");
            let record = ground.run(&["bananas", "get", &id]).ok().stdout;
            assert!(record.contains("\"big\":12345678901234567890") && record.contains("\"completed\""), "{record}");
        }
        assert_eq!(counts(&back(ground, &[], 0)), [0, 1, 0, 0]);
        assert_eq!(scheduled(ground), 1);
        drop(worker);
    }

    fn a_job_that_is_given_back_is_as_it_was(ground: &Ground) {
        let id = submit(ground, "count", &["--client-variant", "python", "--route", "gpu"]);
        let before = ground.run(&["bananas", "get", &id]).ok().stdout;
        let queues = ground.run(&["bananas", "queues", "--json"]).ok().stdout;
        migrate(ground, &[], 0);
        assert_eq!(counts(&back(ground, &["--dry-run"], 0)), [1, 0, 0, 0]);
        assert_eq!(ground.jobs().len(), 1);
        assert_eq!(counts(&back(ground, &[], 0)), [1, 0, 0, 0]);
        assert_eq!(ground.run(&["bananas", "get", &id]).ok().stdout, before);
        assert_eq!(ground.run(&["bananas", "queues", "--json"]).ok().stdout, queues);
        assert_eq!(ground.jobs().len(), 0);
        assert_eq!(counts(&back(ground, &[], 0)), [0, 0, 0, 0]);
    }

    fn what_cannot_go_stays_and_says_why(ground: &Ground) {
        let nobody = submit(ground, "nobody", &[]);
        let good = submit(ground, "count", &[]);
        submit(ground, "count", &["--id", "soon", "--at", "+1s"]);
        let printed = migrate(ground, &[], 1);
        assert_eq!(counts(&printed), [1, 0, 0, 2]);
        let reason = |id: &str| {
            let jobs = printed["jobs"].as_array().unwrap().iter();
            let found = jobs.filter(|job| job["id"] == id).map(|job| job["reason"].as_str().unwrap());
            found.collect::<Vec<_>>().join(" ")
        };
        assert!(reason(&nobody).contains("\"nobody\""), "{printed}");
        assert!(reason("soon").contains("scheduler"), "{printed}");
        assert_eq!(ground.jobs()[0]["id"], good.as_str());
        let words = ground.run(&["migrate", "bananas"]).exits(1);
        assert!(words.stderr.contains(&nobody) && words.stdout.contains("waiting"), "{words:?}");
        // A worker that is there is a handler; so is one that is named.
        ground.run(&["migrate", "bananas", "--function", "nobody", "--overdue", "--handler", "count=count.rhai"]).ok();
        assert_eq!(ground.jobs().len(), 3);
    }

    fn some_go_if_some_are_asked_for(ground: &Ground) {
        for _ in 0..3 {
            submit(ground, "count", &["--route", "gpu", "--client-variant", "python"]);
            submit(ground, "count", &["--route", "email"]);
            submit(ground, "count", &[]);
        }
        assert_eq!(counts(&migrate(ground, &["--route", "gpu,email", "--limit", "4"], 0)), [4, 0, 0, 0]);
        assert_eq!(counts(&migrate(ground, &["--route", "gpu,email"], 0)), [2, 0, 0, 0]);
        assert_eq!(counts(&migrate(ground, &["--route", "gpu"], 0)), [0, 0, 0, 0]);
        assert_eq!(counts(&back(ground, &["--limit", "1", "--route", "email"], 0)), [1, 0, 0, 0]);
        assert_eq!(counts(&back(ground, &["--route", "gpu"], 0)), [3, 0, 0, 0]);
        assert_eq!(counts(&back(ground, &[], 0)), [2, 0, 0, 0]);
    }

    fn bad_values_are_named_and_nothing_is_written(ground: &Ground) {
        ground.file("count.js", "");
        for (args, words) in [
            (&["--limit", "0"][..], "0"),
            (&["--route", "a b"], "a b"),
            (&["--handler", "count"], "count"),
            (&["--handler", "count=count.js"], "count.js"),
            (&["--handler", "count=none.py"], "none.py"),
            (&["--function", "a:b"], "a:b"),
            (&["--job-timeout", "soon"], "soon"),
            (&["--client-variant", "rust"], "rust"),
            (&["--back", "--overdue"], "--back"),
        ] {
            let done = ground.run(&[&["migrate", "bananas"], args].concat()).exits(2);
            assert!(done.stderr.contains(words), "{args:?}: {}", done.stderr);
        }
        assert_eq!(ground.stored(), "");
    }
}
