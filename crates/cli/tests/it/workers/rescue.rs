//! Orphans of foreign workers: run again, named, and repeated.

use crate::common::Ground;

const QUEUE: &str = "hero:q:work:type:osis";

fn submitted(ground: &Ground, id: &str) {
    ground.file("a.rhai", "40 + 2");
    ground
        .run(&["job", "submit", "a.rhai", "--id", id, "--timeout", "1"])
        .ok();
}

/// The worker to the letter of the canonical queues pops, may write `started`, and dies.
#[test]
fn a_job_that_was_popped_and_lost_is_run() {
    let Some(ground) = &Ground::redis() else {
        return;
    };
    submitted(ground, "popped");
    ground.raw(&format!("LPOP {QUEUE}"));
    submitted(ground, "begun");
    ground.raw(&format!("LPOP {QUEUE}"));
    ground.raw("HSET hero:job:begun status started");
    let worker = ground.worker(&["--type", "osis", "--rescue-orphans-after", "1"]);
    for id in ["popped", "begun"] {
        assert_eq!(ground.run(&["job", "wait", id]).ok().stdout, "42\n");
    }
    let job = ground
        .run(&["job", "status", "begun", "--json"])
        .ok()
        .json();
    assert_eq!((&job["lost"], &job["attempts"]), (&1.into(), &1.into()));
    worker.stop();
}

#[test]
fn stale_jobs_are_named_and_repeated() {
    let Some(ground) = &Ground::redis() else {
        return;
    };
    submitted(ground, "lost");
    submitted(ground, "waits");
    ground.raw(&format!("LREM {QUEUE} 0 lost"));
    let none = ground
        .run(&["job", "list", "--status", "stale", "--json"])
        .ok();
    assert_eq!(none.stdout, "");
    let refused = ground.run(&["job", "retry", "lost"]).exits(1);
    assert!(
        refused.stderr.contains("has not ended"),
        "{}",
        refused.stderr
    );
    // As a worker's look notes it.
    ground.raw("ZADD hero:q:stale 1 \"away lost\"");
    let listed = ground
        .run(&["job", "list", "--status", "stale", "--json"])
        .ok()
        .jsons();
    let ids: Vec<_> = listed
        .iter()
        .map(|job| job["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["lost"]);
    let other = [
        "job", "list", "--status", "stale", "--type", "python", "--json",
    ];
    assert_eq!(ground.run(&other).ok().stdout, "");
    let doctor = ground.run(&["doctor"]).stdout;
    assert!(doctor.contains("stale jobs: 1, such as lost"), "{doctor}");
    assert!(
        doctor.contains("meshwork job list --state stale"),
        "{doctor}"
    );
    ground.run(&["job", "retry", "lost"]).ok();
    assert_eq!(
        ground
            .run(&["job", "list", "--status", "stale", "--json"])
            .ok()
            .stdout,
        ""
    );
    ground.run(&["job", "retry", "lost", "waits"]).exits(1);
    let worker = ground.worker(&["--type", "osis"]);
    assert_eq!(ground.run(&["job", "wait", "lost"]).ok().stdout, "42\n");
    worker.stop();
}

#[test]
fn bad_ages_are_refused() {
    let Some(ground) = &Ground::redis() else {
        return;
    };
    for age in ["0", "-1", "soon", "4000"] {
        let done = ground
            .run(&["worker", "--type", "osis", "--rescue-orphans-after", age])
            .exits(2);
        assert!(
            done.stderr
                .contains("an age of orphans is a number of seconds"),
            "{age}: {}",
            done.stderr
        );
    }
    let bananas = ["worker", "--protocol", "bananas", "--rescue-orphans-after"];
    for age in ["0", "-1", "soon"] {
        ground.run(&[&bananas[..], &[age]].concat()).exits(2);
    }
}
