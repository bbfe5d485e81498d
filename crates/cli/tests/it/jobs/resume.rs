//! A series survives `kill -9` at its worst moment: what was finished is not run again, what was in flight
//! is, and every input has its one result.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use crate::common::{Ground, eventually, on_all_data};
use meshwork_test_servers::servers::{Tool, need};

const INPUTS: usize = 40;
/// Inputs that run to their end before the kill.
const BEFORE: usize = 15;
const CONCURRENCY: usize = 3;

/// Appends its input to a file. From input [`BEFORE`] on, it waits to be killed until the gate is open.
const SCRIPT: &str = r#"
import os, signal, sys
number = int(sys.stdin.read())
with open(os.environ["TALLY"], "a") as tally:
    tally.write(f"{number}\n")
if number >= int(os.environ["BEFORE"]) and not os.path.exists(os.environ["GATE"]):
    signal.pause()
print(number * 2)
"#;

fn tally(ground: &Ground) -> BTreeMap<usize, usize> {
    let mut runs = BTreeMap::new();
    for line in fs::read_to_string(ground.path("tally"))
        .unwrap_or_default()
        .lines()
    {
        *runs.entry(line.parse().unwrap()).or_default() += 1;
    }
    runs
}

/// Kills a series in the middle, and repeats the command: how long the second one took.
fn killed_and_resumed(ground: &Ground, lease: &str) -> Duration {
    ground.file("tally.py", SCRIPT);
    let files: Vec<_> = (0..INPUTS).map(|n| format!("f{n}")).collect();
    for (number, name) in files.iter().enumerate() {
        ground.file(name, number.to_string());
    }
    let env = [
        format!("TALLY={}", ground.path("tally").display()),
        format!("GATE={}", ground.path("gate").display()),
        format!("BEFORE={BEFORE}"),
    ];
    let concurrency = CONCURRENCY.to_string();
    let mut args = vec![
        "run",
        "tally.py",
        "--json",
        "--lease",
        lease,
        "--concurrency",
        &concurrency,
    ];
    args.extend(env.iter().flat_map(|env| ["--env", env]));
    args.push("--each");
    args.extend(files.iter().map(String::as_str));

    let running = ground.start(&args);
    eventually("all that can run is in flight", || {
        (tally(ground).len() == BEFORE + CONCURRENCY).then_some(())
    });
    running.kill();
    ground.file("gate", "");
    let began = Instant::now();
    let done = ground.run(&args).ok();
    let took = began.elapsed();

    assert!(done.stderr.contains("resuming: "), "{}", done.stderr);
    let lines = done.jsons();
    assert_eq!(lines.len(), INPUTS);
    for (number, line) in lines.iter().enumerate() {
        assert_eq!(line["file"].as_str(), Some(files[number].as_str()));
        assert_eq!(line["output"], number * 2, "{line}");
    }
    let runs = tally(ground);
    for number in 0..INPUTS {
        let in_flight = (BEFORE..BEFORE + CONCURRENCY).contains(&number);
        assert_eq!(runs[&number], 1 + usize::from(in_flight), "input {number}");
    }
    took
}

on_all_data! {
    fn a_series_goes_on_after_kill_9(ground: &Ground) {
        if need(Tool::Python).is_some() {
            killed_and_resumed(ground, "3");
        }
    }

    fn a_series_does_not_wait_for_the_leases_of_a_killed_run(ground: &Ground) {
        if need(Tool::Python).is_some() {
            let took = killed_and_resumed(ground, "60");
            assert!(took < Duration::from_secs(30), "it waited for the leases: {took:?}");
        }
    }
}
