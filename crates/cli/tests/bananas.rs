//! `meshwork worker --schema bananas` and `meshwork bananas`.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod common;

use common::{Ground, eventually, json, on_all_data};
use rustix::process::Signal;

const COUNT: &str = "let items = parse_json(INPUT).items; items.len()";
const WORKER: [&str; 3] = ["--schema", "bananas", "--handler"];

fn started(ground: &Ground, more: &[&str]) -> common::Running {
    ground.file("count.rhai", COUNT);
    ground.file("endless.rhai", "loop { }");
    let handlers = ["count=count.rhai", "--handler", "endless=endless.rhai"];
    ground.worker(&[&WORKER[..], &handlers, more].concat())
}

on_all_data! {
    fn a_job_runs_and_is_shown(ground: &Ground) {
        let worker = started(ground, &["--routes", "gpu,default"]);
        let payload = "{\"items\":[1,2,3],\"big\":12345678901234567890}";
        for like in ["go", "go-routed", "python", "typescript"] {
            let args = ["bananas", "submit", "count", payload, "--like", like, "--route", "gpu", "--wait", "60"];
            assert_eq!(ground.run(&args).ok().stdout.trim(), "3", "{like}");
        }
        let id = ground.run(&["bananas", "submit", "count", payload]).ok().stdout.trim().to_owned();
        let ended = ground.run(&["bananas", "wait", &id, "--json"]).ok().json();
        assert_eq!((&ended["status"], &ended["result"]), (&json("\"completed\""), &json("3")));
        let record = ground.run(&["bananas", "get", &id]).ok().stdout;
        assert!(record.contains("\"big\":12345678901234567890") && record.contains("\"completed\""), "{record}");
        let queues = ground.run(&["bananas", "queues", "--json"]).ok().jsons();
        assert_eq!(queues.last().unwrap(), &json("{\"scheduled\":0,\"processing\":0,\"ours\":0,\"dead\":0}"));
        worker.signal(Signal::TERM);
        assert_eq!(worker.ended().ok().jsons()[1]["handed_back"], 0);
    }

    fn what_failed_for_good_is_listed(ground: &Ground) {
        let worker = started(ground, &[]);
        let args = ["bananas", "submit", "nobody", "--max-retries", "1", "--wait", "60"];
        let said = ground.run(&args).exits(1).stderr;
        assert!(said.contains("no handler") && said.contains("nobody"), "{said}");
        let dead = ground.run(&["bananas", "dead", "--json"]).ok().json();
        assert_eq!((&dead["name"], &dead["attempts"]), (&json("\"nobody\""), &json("1")));
        worker.signal(Signal::TERM);
        worker.ended().ok();
    }

    fn a_killed_worker_gives_its_job_back(ground: &Ground) {
        let worker = started(ground, &["--lease", "1"]);
        let id = ground.run(&["bananas", "submit", "endless"]).ok().stdout.trim().to_owned();
        let processing = || {
            let queues = ground.run(&["bananas", "queues", "--json"]).ok().jsons();
            queues.last().unwrap()["processing"].as_u64()
        };
        eventually("it runs", || processing().filter(|jobs| *jobs == 1));
        worker.kill();
        ground.file("endless.rhai", "7");
        let handlers = ["endless=endless.rhai", "--lease", "1"];
        let worker = ground.worker(&[&WORKER[..], &handlers].concat());
        assert_eq!(ground.run(&["bananas", "wait", &id]).ok().stdout.trim(), "7");
        eventually("nothing of ours stays there", || processing().filter(|jobs| *jobs == 0));
        worker.signal(Signal::TERM);
        worker.ended().ok();
    }
}

/// What Bananas' own variables say, and options before them.
#[test]
fn bananas_own_names_are_heard() {
    let Some(ground) = Ground::embedded() else {
        return;
    };
    let start = |args: &[&str]| {
        let mut command =
            ground.command(&[&["worker", "--schema", "bananas", "--json"], args].concat());
        command.envs([
            ("WORKER_ROUTING_KEYS", "gpu,eu-1"),
            ("WORKER_CONCURRENCY", "3"),
            ("JOB_TIMEOUT", "90s"),
            ("MAX_RETRIES", "5"),
        ]);
        let mut worker = common::Running::start(command);
        let event = json(&worker.line());
        worker.signal(Signal::TERM);
        worker.ended().ok();
        event["routes"].clone()
    };
    assert_eq!(start(&[]), json("[\"gpu\",\"eu-1\"]"));
    assert_eq!(start(&["--routes", "default"]), json("[\"default\"]"));
}

/// Each is refused before anything is done, with its name.
#[test]
fn what_cannot_be_meant_is_refused() {
    let Some(ground) = Ground::embedded() else {
        return;
    };
    ground.file("a.sh", "");
    let bananas = ["worker", "--schema", "bananas"];
    for (args, named) in [
        (vec!["worker"], "--type"),
        (vec!["worker", "--schema", "hero"], "--type"),
        ([&bananas[..], &["--routes", "a b"]].concat(), "routing key"),
        ([&bananas[..], &["--handler", "a"]].concat(), "NAME=FILE"),
        ([&bananas[..], &["--handler", "a=a.sh"]].concat(), "a.sh"),
        (
            [&bananas[..], &["--handler", "a=none.py"]].concat(),
            "none.py",
        ),
        ([&bananas[..], &["--job-timeout", "soon"]].concat(), "90s"),
        ([&bananas[..], &["--like", "rust"]].concat(), "go-routed"),
        (vec!["bananas", "submit", "a", "{no json"], "no JSON"),
        (vec!["bananas", "submit", ""], "no name"),
        (
            vec!["bananas", "submit", "a", "--route", "team@alpha"],
            "routing key",
        ),
        (
            vec!["bananas", "submit", "a", "--priority", "urgent"],
            "urgent",
        ),
    ] {
        let said = ground.run(&args).exits(2).stderr;
        assert!(said.contains(named), "{args:?}: {said}");
    }
    let mut command = ground.command(&bananas);
    command.env("WORKER_CONCURRENCY", "none");
    let said = common::Running::start(command).ended().exits(2).stderr;
    assert!(said.contains("WORKER_CONCURRENCY"), "{said}");
    ground.run(&["bananas", "get", "none"]).exits(5);
    ground.run(&["bananas", "wait", "none"]).exits(5);
}
