//! A full disk under a data directory, and the owner killed: what was said to be accepted is there.

use crate::common::{Ground, json};
use meshwork_test_servers::SmallDisk;

const DISK: u64 = 2 * 1024 * 1024;

/// Jobs, and bytes of the input of each: more than the log sets aside on such a disk.
const JOBS: usize = 40;
const INPUT: usize = 30_000;

/// Refusals after which a call that is repeated would have been accepted, if it ever were.
const REFUSALS: usize = 4;

/// The jobs, one in each line.
fn jobs(ground: &Ground) -> String {
    let input = "x".repeat(INPUT);
    let job = |number| format!(r#"{{"id":"j{number}","script":"1","input":"{input}"}}"#);
    let lines: Vec<_> = (0..JOBS).map(job).collect();
    let file = ground.file("jobs.jsonl", lines.join("\n"));
    file.to_str().unwrap().to_owned()
}

#[test]
fn what_was_accepted_is_there_after_the_owner_was_killed() {
    let name = "what_was_accepted_is_there_after_the_owner_was_killed";
    let Some(disk) = SmallDisk::mount(name, DISK) else {
        return;
    };
    let ground = Ground::directory(disk.path().join("data"));
    let file = jobs(&ground);
    let worker = ground.worker(&["--type", "python"]);
    disk.fill();
    let args = [
        "job", "submit", "--jsonl", &file, "--type", "osis", "--json",
    ];
    let mut submit = ground.start(&args);
    let mut refusals = 0;
    while refusals < REFUSALS
        && let Some(line) = submit.says()
    {
        refusals += usize::from(line.contains("MISCONF"));
    }
    assert!(refusals > 0, "the disk is full");
    worker.kill();
    let said = match refusals < REFUSALS {
        true => submit.ended().stdout,
        false => submit.killed(),
    };
    disk.free();
    let accepted: Vec<_> = said.lines().map(json).collect();
    for answer in &accepted {
        let id = answer["id"].as_str().unwrap();
        ground.run(&["job", "status", id]).ok();
    }
    // And the rest is accepted now.
    let done = ground.run(&args).ok();
    for answer in done.jsons() {
        assert!(["stored", "exists"].contains(&answer["result"].as_str().unwrap()));
    }
    assert_eq!(ground.jobs().len(), JOBS);
}
