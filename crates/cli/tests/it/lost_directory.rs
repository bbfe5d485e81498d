//! A data directory whose files somebody deletes while workers use it.

use std::collections::BTreeMap;
use std::fs;

use crate::common::{BOUND, Ground, eventually};

/// Number of jobs that are due after the fault.
const JOBS: usize = 20;

/// Enqueues delayed jobs that write their name to a file at each start.
fn enqueue(ground: &Ground) {
    ground.file(
        "start.py",
        "import os\nwith open(os.environ['STARTS'], 'a') as f: f.write(os.environ['MESHWORK_JOB'] + '\\n')\n",
    );
    let starts = format!("STARTS={}", ground.path("starts").display());
    let lines: Vec<_> = (0..JOBS)
        .map(|job| format!(r#"{{"id":"job{job}","delay":3}}"#))
        .collect();
    ground.file("jobs.jsonl", lines.join("\n"));
    ground
        .run(&[
            "job",
            "enqueue",
            "start.py",
            "--jsonl",
            "jobs.jsonl",
            "--env",
            &starts,
        ])
        .ok();
}

/// Waits until all jobs have finished. Returns the number of starts of each.
fn starts(ground: &Ground) -> BTreeMap<String, usize> {
    eventually("all jobs finish", || {
        let args = ["job", "list", "--json", "--status", "finished"];
        let done = ground.run(&args);
        (done.code == Some(0) && done.jsons().len() == JOBS).then_some(())
    });
    let mut starts = BTreeMap::new();
    for job in fs::read_to_string(ground.path("starts")).unwrap().lines() {
        *starts.entry(job.to_owned()).or_default() += 1;
    }
    starts
}

#[test]
fn a_deleted_lock_ends_its_owner_and_no_job_runs_twice() {
    let ground = Ground::embedded().unwrap();
    let owner = ground.worker(&["--type", "python", "--concurrency", "4"]);
    enqueue(&ground);
    fs::remove_file(ground.path("data/lock")).unwrap();
    let next = ground.worker(&["--type", "python", "--concurrency", "4"]);
    let done = owner.ended();
    assert_eq!(done.code, Some(3), "{done:?}");
    assert!(
        done.stderr.contains("lock was deleted or replaced"),
        "{done:?}"
    );
    let starts = starts(&ground);
    assert_eq!(starts.len(), JOBS);
    assert!(starts.values().all(|count| *count == 1), "{starts:?}");
    next.kill();
    // The store opens again, with everything in it.
    assert_eq!(ground.jobs().len(), JOBS);
}

#[test]
fn a_deleted_directory_ends_its_owner_and_no_worker_makes_an_empty_one() {
    let ground = Ground::embedded().unwrap();
    let owner = ground.worker(&["--type", "osis"]);
    let mut other = ground.worker(&["--type", "python"]);
    let data = ground.path("data");
    fs::rename(&data, ground.path("aside")).unwrap();
    let done = owner.ended();
    assert_eq!(done.code, Some(3), "{done:?}");
    assert!(!data.exists(), "{}", other.said());
    fs::rename(ground.path("aside"), &data).unwrap();
    // The other one takes the restored directory over.
    let pid = format!("process {} ", other.pid());
    eventually("the other worker owns it", || {
        let holder = fs::read_to_string(data.join("lock")).unwrap_or_default();
        holder.starts_with(&pid).then_some(())
    });
    ground.file("a.py", "result = 42");
    let wait = format!("{}s", BOUND.as_secs());
    let done = ground.run(&["job", "enqueue", "a.py", "--id", "a"]).ok();
    assert_eq!(done.stdout.trim(), "a");
    ground.run(&["job", "wait", "a", "--timeout", &wait]).ok();
    drop(other);
}

/// The command that opens a cut log warns of it; `store` finds and repairs a changed one.
#[test]
fn a_damaged_log_is_checked_and_repaired() {
    let ground = Ground::embedded().unwrap();
    let enqueue = |id: &str| {
        let words = [
            "job", "enqueue", "--type", "osis", "--id", id, "--delay", "1h", "one.rhai",
        ];
        ground.run(&words).ok();
    };
    ground.file("one.rhai", "42");
    for id in ["a", "b", "c"] {
        enqueue(id);
    }
    // Checksums are written a second after the first write of an owner.
    let worker = ground.worker(&["--type", "osis"]);
    let sums = ground.path("data/appendonly.aof.sums");
    eventually("there are checksums", || {
        let length = fs::metadata(&sums).ok()?.len();
        (length > 32).then_some(())
    });
    worker.stop();
    let checked = ground.run(&["store", "check"]).ok();
    assert!(checked.stdout.contains("no faults\n"), "{checked:?}");
    fs::rename(&sums, ground.path("aside")).unwrap();
    let unchecked = ground.run(&["store", "check"]).ok();
    assert!(
        unchecked.stdout.contains("but no checksums"),
        "{unchecked:?}"
    );
    fs::rename(ground.path("aside"), &sums).unwrap();
    let log = ground.path("data/appendonly.aof");
    let whole = fs::read(&log).unwrap();
    fs::write(&log, &whole[..24]).unwrap();
    let listed = ground.run(&["job", "list"]).ok();
    assert!(
        listed.stderr.contains("shorter than its checksums"),
        "{listed:?}"
    );
    fs::write(&log, &whole).unwrap();
    let at = whole
        .windows(6)
        .rposition(|part| part == b"\r\n42\r\n")
        .unwrap();
    let mut changed = whole;
    changed[at + 2] ^= 1;
    fs::write(&log, &changed).unwrap();
    ground.run(&["job", "list"]).exits(3);
    let found = ground.run(&["store", "check", "--json"]).exits(1).json();
    assert!(found["cut_from"].as_u64().unwrap() < at as u64, "{found}");
    let would = ground.run(&["store", "repair"]).exits(1);
    assert!(would.stderr.contains("would cut"), "{would:?}");
    assert_eq!(fs::read(&log).unwrap(), changed);
    let done = ground.run(&["store", "repair", "--yes"]).ok();
    assert!(done.stderr.contains("kept in"), "{done:?}");
    assert!(ground.run(&["job", "list", "--json"]).ok().jsons().len() < 3);
    ground
        .run(&["store", "check", "--redis", "redis://127.0.0.1:1"])
        .exits(2);
}
