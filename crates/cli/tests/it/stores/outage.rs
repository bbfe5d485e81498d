//! A server that goes away for a moment while jobs run: nothing is lost, and nobody has to say anything
//! again.

use crate::common::Ground;
use meshwork_test_servers::servers::{RealServer, Tool, need};

/// Waits until the gate is open.
const SCRIPT: &str = r#"
import os, sys, time
while not os.path.exists(os.environ["GATE"]):
    time.sleep(0.01)
result = sys.stdin.read() or "alone"
"#;

/// Runs it, and takes the server away while a job runs.
fn through_an_outage(args: &[&str]) -> Option<crate::common::Done> {
    need(Tool::Python)?;
    let mut server = RealServer::redis().append_only().start()?;
    let ground = Ground::url(server.url());
    ground.file("gate.py", SCRIPT);
    for name in ["a", "b", "c"] {
        ground.file(name, name);
    }
    let gate = format!("GATE={}", ground.path("gate").display());
    let args = [&["run", "gate.py", "--json", "--env", &gate], args].concat();
    let running = ground.start(&args);
    ground.job_that_is("running");
    server.kill9();
    server.start_again();
    ground.file("gate", "");
    Some(running.ended().ok())
}

#[test]
fn one_job() {
    let Some(done) = through_an_outage(&[]) else {
        return;
    };
    assert_eq!(done.json()["output"], "alone");
}

#[test]
fn a_series() {
    let args = ["--concurrency", "1", "--each", "a", "b", "c"];
    let Some(done) = through_an_outage(&args) else {
        return;
    };
    let lines = done.jsons();
    let outputs: Vec<_> = lines
        .iter()
        .map(|line| line["output"].as_str().unwrap())
        .collect();
    assert_eq!(outputs, ["a", "b", "c"]);
    assert!(
        lines.iter().all(|line| line["status"] == "finished"),
        "{lines:?}"
    );
}
