//! `meshwork job why` says what a job waits for: the job of a flow, a key, slots, and an id or a worker that is gone.

use rustix::process::Signal;
use serde_json::Value;

use crate::common::{Ground, eventually, on_all_data};

const FLOW: &str = "
flow: ship
jobs:
  ask:   {approve: 'Ship it?'}
  pause: {wait: {for: 1h}}
  list:  {script: '[1, 2]', type: osis, needs: [ask]}
  each:  {script: '1', type: osis, needs: [list], foreach: list.result}
  both:  {script: '1', type: osis, needs: [ask, pause]}
  slow:  {script: 'import time; time.sleep(600)', type: python, foreach: 3}
";

/// Runs until it is killed.
const SLOW: &str = "import time\ntime.sleep(600)\n";

/// The reasons of `job why` for people, and the names of those of a wait.
fn why(ground: &Ground, id: &str) -> (String, Vec<String>) {
    let mut words = vec!["job", "why", id, "--json"];
    if id.starts_with("job:") {
        words.extend(["--context", "1"]);
    }
    let why = ground.run(&words).ok().json();
    let waits = why["waits"].as_array().unwrap().iter();
    let names = waits.map(|wait| wait["reason"].as_str().unwrap().to_owned());
    (why["reasons"].to_string(), names.collect())
}

/// Waits until `job why` gives this reason, and returns the text.
fn reason(ground: &Ground, id: &str, name: &str) -> String {
    let mut last = (String::new(), Vec::new());
    let found = |last: &mut (String, Vec<String>)| {
        *last = why(ground, id);
        last.1.iter().any(|is| is == name).then(|| last.0.clone())
    };
    eventually(&format!("{id}: {name}"), || found(&mut last))
}

/// Jobs that are skipped, each with the cause.
const SKIPPED: &str = "
flow: skips
fail_fast: false
jobs:
  bad:   {script: 'throw 1', type: osis}
  after: {script: '1', type: osis, needs: [bad]}
  never: {script: '1', type: osis, if: '1 == 2'}
  then:  {script: '1', type: osis, needs: [never]}
  mend:  {script: '1', type: osis, needs: [bad], if: 'failed()'}
";

#[test]
fn a_skipped_job_says_why() {
    let Some(ground) = Ground::embedded() else {
        return;
    };
    ground.file("f.yaml", SKIPPED);
    ground.run(&["flow", "run", "f.yaml"]).exits(1);
    ground.file("fast.yaml", "flow: fast\njobs:\n  bad: {script: 'throw 1', type: osis}\n  slow: {wait: {for: 1h}}\n  late: {script: '1', type: osis, needs: [slow]}\n");
    ground.run(&["flow", "run", "fast.yaml"]).exits(1);
    let shown = |flow: &str| {
        let flow = ground.run(&["flow", "status", flow, "--json"]).ok().json();
        let jobs = flow["jobs"].as_array().unwrap().clone();
        jobs.into_iter()
            .map(|job| {
                let id = job["id"].as_str().unwrap().to_owned();
                (job["name"].as_str().unwrap().to_owned(), why(&ground, &id))
            })
            .collect::<Vec<_>>()
    };
    for (name, (text, _)) in shown("1") {
        let words = match name.as_str() {
            "after" => "it was skipped: its prerequisite bad failed",
            "never" => "it was skipped: its `if` was false: 1 == 2",
            "then" => "it was skipped: all of its prerequisites were skipped: never",
            "mend" => "it ended without an error",
            _ => continue,
        };
        assert!(text.contains(words), "{name}: {text}");
    }
    let (_, (text, _)) = shown("2").pop().unwrap();
    assert!(
        text.contains("it was skipped: job bad of its flow failed"),
        "{text}"
    );
}

#[test]
fn jobs_of_a_flow_name_what_is_open() {
    let Some(ground) = Ground::embedded() else {
        return;
    };
    ground.file("ship.yaml", FLOW);
    ground.run(&["flow", "submit", "ship.yaml"]).ok();
    let _worker = ground.worker(&["--context", "1", "--type", "osis"]);
    let of = |name: &str| {
        let jobs = ground.run(&["flow", "status", "1", "--json"]).ok().json();
        let jobs = jobs["jobs"].as_array().unwrap().clone();
        let job: Option<Value> = jobs.into_iter().find(|job| job["name"] == name);
        job.unwrap()["id"].as_str().unwrap().to_owned()
    };
    let (ask, pause, slow) = (of("ask"), of("pause"), of("slow"));
    let text = reason(&ground, &ask, "approval");
    assert!(
        text.contains("Ship it?") && text.contains("`meshwork flow approve 1 ask`, until 2"),
        "{text}"
    );
    let text = reason(&ground, &pause, "pause");
    assert!(
        text.contains(&format!("{pause} pauses the flow, until 2")),
        "{text}"
    );
    let text = reason(&ground, &slow, "items");
    assert!(
        text.contains(&format!("0 of 3 items of {slow} have ended")),
        "{text}"
    );
    let (text, names) = why(&ground, &of("both"));
    assert_eq!(names, ["approval", "pause"], "{text}");
    let (text, names) = why(&ground, &of("each"));
    assert_eq!(names, ["prerequisite"], "{text}");
    assert!(
        text.contains(&format!("it waits for {} (waiting)", of("list"))),
        "{text}"
    );
    let shown = ground
        .run(&["job", "show", &ask, "--context", "1"])
        .ok()
        .stdout;
    assert!(shown.contains("Ship it?"), "{shown}");
    ground.run(&["flow", "approve", "1", "ask"]).ok();
    eventually("the pause alone is open", || {
        (why(&ground, &of("both")).1 == ["pause"]).then_some(())
    });
}

on_all_data! {
    fn keys_and_slots_are_named_with_their_numbers(ground: &Ground) {
        ground.file("slow.py", SLOW);
        let limits = ["--key-concurrency", "1", "--create"];
        ground.run(&[&["queue", "limit", "set", "python"], &limits[..]].concat()).ok();
        let _worker = ground.worker(&["--type", "python", "--concurrency", "2"]);
        let submit = |id: &str, key: &str| {
            ground.run(&["job", "submit", "slow.py", "--id", id, "--key", key]).ok();
        };
        submit("a", "k");
        ground.job_that_is("running");
        submit("b", "k");
        let text = reason(ground, "b", "key");
        assert!(text.contains("its key k; 0 of it are before this one; 1 of it run, as many as may"), "{text}");
        submit("c", "other");
        submit("d", "third");
        let text = reason(ground, "d", "busy");
        assert!(text.contains("all 2 slots of 1 worker are busy"), "{text}");
        let rate = ["queue", "limit", "set", "osis", "--key-rate", "1/h", "--create"];
        ground.run(&rate).ok();
        ground.file("one.rhai", "1");
        let worker = ground.worker(&["--type", "osis"]);
        for id in ["first", "second"] {
            ground.run(&["job", "submit", "one.rhai", "--id", id, "--key", "k"]).ok();
        }
        ground.run(&["job", "wait", "first"]).ok();
        let text = reason(ground, "second", "key");
        assert!(text.contains("the key starts 1/h burst 1, the next in 59 min"), "{text}");
        worker.stop();
    }

    fn a_job_whose_worker_was_killed_is_lost(ground: &Ground) {
        ground.file("slow.py", SLOW);
        ground.run(&["job", "submit", "slow.py", "--id", "a"]).ok();
        let worker = ground.worker(&["--type", "python", "--lease", "0.5"]);
        ground.job_that_is("running");
        assert_eq!(why(ground, "a").1, Vec::<String>::new());
        worker.kill();
        let text = reason(ground, "a", "lease_over");
        assert!(text.contains("has lost it: its lease is over since 2"), "{text}");
    }
}

#[test]
fn an_id_in_no_queue_is_lost_and_not_prefetched() {
    let Some(ground) = Ground::redis() else {
        return;
    };
    ground.file("one.rhai", "1");
    ground.run(&["job", "submit", "one.rhai", "--id", "a"]).ok();
    assert_eq!(why(&ground, "a").1, ["no_worker", "position"]);
    let queue = ground.run(&["job", "why", "a", "--json"]).ok().json()["waits"][1]["queue"].clone();
    ground.raw(&format!("LREM {} 0 a", queue.as_str().unwrap()));
    let (text, names) = why(&ground, "a");
    assert_eq!(names, ["no_worker", "lost"], "{text}");
    assert!(!text.contains("prefetched"), "{text}");
}

on_all_data! {
    fn a_unique_beginning_of_an_id_is_enough(ground: &Ground) {
        ground.file("one.rhai", "1");
        for id in ["report-2026-11", "report-2026-12", "other-1"] {
            ground.run(&["job", "submit", "one.rhai", "--id", id]).ok();
        }
        let of = |words: &[&str]| ground.run(&[&["job"], words, &["--json"]].concat()).ok().json()["id"].clone();
        assert_eq!(of(&["show", "report-2026-11"]), "report-2026-11");
        assert_eq!(of(&["show", "othe"]), "other-1");
        assert_eq!(of(&["why", "report-2026-12…"]), "report-2026-12");
        let refused = ground.run(&["job", "delete", "report-20"]).exits(2);
        assert!(refused.stderr.contains("several jobs begin with `report-20`"), "{}", refused.stderr);
        ground.run(&["job", "show", "oth"]).exits(5);
        ground.run(&["job", "show", "nothing"]).exits(5);
        ground.run(&["job", "cancel", "other"]).ok();
        assert_eq!(ground.jobs().iter().filter(|job| job["state"] == "cancelled").count(), 1);
    }
}

on_all_data! {
    fn an_interrupted_wait_says_how_to_go_on(ground: &Ground) {
        ground.file("one.rhai", "1");
        let paused = ["queue", "pause", "osis", "--create"];
        ground.run(&paused).ok();
        let waits = ground.start(&["enqueue", "one.rhai", "--id", "a", "--wait"]);
        ground.job_that_is("queued");
        let listens = || std::fs::read_to_string(format!("/proc/{}/status", waits.pid())).is_ok_and(|text| caught(&text));
        eventually("it receives signals", || listens().then_some(()));
        waits.signal(Signal::INT);
        let done = waits.ended().exits(130);
        assert!(done.stderr.contains("job a goes on: `meshwork job wait a` waits for it"), "{}", done.stderr);
        let mut drain = ground.start(&["queue", "drain", "osis"]);
        assert!(drain.said().contains("paused"));
        eventually("it receives signals", || {
            let status = std::fs::read_to_string(format!("/proc/{}/status", drain.pid()));
            status.is_ok_and(|text| caught(&text)).then_some(())
        });
        drain.signal(Signal::INT);
        let done = drain.ended().exits(130);
        assert!(done.stderr.contains("`meshwork queue resume osis` ends the drain"), "{}", done.stderr);
        let worker = ground.worker(&["--type", "osis"]);
        ground.run(&["queue", "resume", "osis"]).ok();
        ground.run(&["job", "wait", "a"]).ok();
        worker.stop();
    }
}

/// True for the status of a process that catches SIGINT.
fn caught(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 0b10 != 0)
}
