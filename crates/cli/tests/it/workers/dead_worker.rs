//! Workers that are dead, stopped or busy, and `meshwork run` beside them. A lease of 60 s is never waited for:
//! what takes longer than half of it has waited for the lease.

use std::time::{Duration, Instant};

use crate::common::{Ground, eventually, json, on_all_data};
use rustix::process::Signal;

/// A script that never ends by itself.
const ENDLESS: &str = "loop { }";
const LEASE: &str = "60";
/// Far below [`LEASE`], far above what a loaded machine needs.
const SOON: Duration = Duration::from_secs(30);

/// A worker of one slot, which runs an endless job: its id.
fn busy(ground: &Ground) -> (crate::common::Running, String) {
    ground.file("endless.rhai", ENDLESS);
    let worker = ground.worker(&["--type", "osis", "--concurrency", "1", "--lease", LEASE]);
    ground
        .run(&["job", "submit", "endless.rhai", "--timeout", "600"])
        .ok();
    (worker, ground.job_that_is("running"))
}

/// `run` of a short script: its record, and what it said.
fn soon(ground: &Ground) -> (serde_json::Value, String) {
    ground.file("a.rhai", "41 + 1");
    let began = Instant::now();
    let done = ground
        .run(&[
            "-v",
            "run",
            "a.rhai",
            "--json",
            "--concurrency",
            "2",
            "--lease",
            LEASE,
        ])
        .ok();
    assert!(began.elapsed() < SOON, "it waited for the lease: {done:#?}");
    let job = done.json();
    assert_eq!(
        (&job["output"], &job["attempts"]),
        (&json("42"), &json("1"))
    );
    (job, done.stderr)
}

fn status(ground: &Ground, id: &str) -> serde_json::Value {
    ground.run(&["job", "status", id, "--json"]).ok().json()
}

on_all_data! {
    fn run_waits_for_no_worker_that_was_killed(ground: &Ground) {
        ground.worker(&["--type", "osis", "--lease", LEASE]).kill();
        let (_, said) = soon(ground);
        assert!(said.contains("ephemeral worker started"), "{said}");
    }

    fn the_job_of_a_killed_worker_is_run_again_at_once(ground: &Ground) {
        let (worker, id) = busy(ground);
        worker.kill();
        let began = Instant::now();
        let worker = ground.worker(&["--type", "osis", "--lease", LEASE]);
        eventually("the job is lost once and runs again", || {
            let job = status(ground, &id);
            (job["lost"] == 1 && job["status"] == "started").then_some(())
        });
        assert!(began.elapsed() < SOON, "it waited for the lease");
        drop(worker);
    }

    fn a_worker_that_takes_the_data_over_runs_the_jobs_of_the_dead_one(ground: &Ground) {
        let (owner, id) = busy(ground);
        let other = ground.worker(&["--type", "osis", "--instance", "other", "--lease", LEASE]);
        owner.kill();
        let began = Instant::now();
        // On a server nothing breaks when another worker dies: the next one that starts looks.
        let third = ground.worker(&["--type", "python", "--lease", LEASE]);
        eventually("the job runs again", || {
            let job = status(ground, &id);
            (job["lost"] == 1 && job["status"] == "started").then_some(())
        });
        assert!(began.elapsed() < SOON, "it waited for the lease");
        drop((other, third));
    }

    fn a_worker_that_takes_a_dead_ones_name_has_its_jobs(ground: &Ground) {
        ground.file("endless.rhai", ENDLESS);
        let args = ["--type", "osis", "--instance", "one", "--lease", LEASE];
        let first = ground.worker(&args);
        ground.run(&["job", "submit", "endless.rhai", "--timeout", "600"]).ok();
        let id = ground.job_that_is("running");
        first.kill();
        let began = Instant::now();
        let second = ground.worker(&args);
        eventually("the job runs again", || {
            let job = status(ground, &id);
            (job["lost"] == 1 && job["status"] == "started").then_some(())
        });
        assert!(began.elapsed() < SOON, "it waited for the lease");
        drop(second);
    }

    fn two_live_workers_cannot_have_one_name(ground: &Ground) {
        let args = ["--type", "osis", "--instance", "one"];
        let first = ground.worker(&args);
        let began = Instant::now();
        let refused = ground.run(&[&["worker"], &args[..]].concat()).exits(2);
        assert!(began.elapsed() < SOON, "it waited for the registration");
        assert!(refused.stderr.contains("one"), "{}", refused.stderr);
        first.stop();
        ground.worker(&args).stop();
    }

    fn run_does_not_wait_for_a_worker_that_is_busy(ground: &Ground) {
        let (worker, id) = busy(ground);
        let (job, said) = soon(ground);
        assert!(said.contains("ephemeral worker started"), "{said}");
        let held = status(ground, &id);
        assert_ne!(job["worker"], held["worker"]);
        assert_eq!((&held["status"], &held["lost"]), (&json("\"started\""), &json("0")));
        drop(worker);
    }

    fn a_stopped_worker_keeps_its_job(ground: &Ground) {
        // The engine lives in its owner, which is not to be the stopped one.
        let owner = ground.worker(&["--type", "python"]);
        let (worker, id) = busy(ground);
        worker.signal(Signal::STOP);
        soon(ground);
        let held = status(ground, &id);
        worker.signal(Signal::CONT);
        assert_eq!((&held["status"], &held["lost"]), (&json("\"started\""), &json("0")));
        drop((worker, owner));
    }
}
