//! The short examples work, on a machine without a server.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::examples::example;

/// Runs an example in an empty folder, and compares what it prints.
fn prints(name: &str, lines: &str) {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(example(name))
        .current_dir(folder.path())
        .output()
        .unwrap();
    let said = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert_eq!(
        (said.0.as_ref(), said.1.as_ref(), output.status.code()),
        (lines, "", Some(0)),
        "{name}"
    );
}

#[test]
fn hello() {
    prints("hello", "Hello, world!\n");
}

#[test]
fn a_schedule_fires() {
    prints("cron", "sales\nsales\n");
}

#[test]
fn many_jobs_are_enqueued_once() {
    prints("bulk", "1000 new, then 0\nSucceeded, 1000² = 1000000\n");
}

#[test]
fn a_job_is_followed() {
    prints("progress", "2 files\nattempt 2, 1 failed before\n");
}

#[test]
fn a_flow_passes_outputs_on() {
    prints("flow", "Nightly: 2 files, 24 bytes\n");
}

#[test]
fn tests_of_jobs_need_no_server() {
    prints("testing", "all hold\n");
}

/// A running example, which is killed if the test fails.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts an example in a folder, and returns the lines that it prints.
fn start(name: &str, folder: &tempfile::TempDir) -> (Running, impl Iterator<Item = String>) {
    let mut command = Command::new(example(name));
    command.current_dir(folder.path());
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (Running(child), lines.map(Result::unwrap))
}

#[test]
fn a_worker_stops_at_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let (mut worker, mut lines) = start("worker", &folder);
    assert_eq!(lines.next().unwrap(), "sales.csv: 3 rows in all");
    let pid = Pid::from_child(&worker.0);
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(lines.next().unwrap(), "stopped");
    assert!(worker.0.wait().unwrap().success());
}

#[tokio::test]
async fn a_web_program_enqueues_and_follows() {
    let folder = tempfile::tempdir().unwrap();
    let (mut web, mut lines) = start("web", &folder);
    let reports = format!("{}/reports", lines.next().unwrap());
    let http = reqwest::Client::new();
    let create = || http.post(&reports).body("sales").send();
    let id = create().await.unwrap().text().await.unwrap();
    // The unique name of a report: the second request gets the first job.
    assert_eq!(create().await.unwrap().text().await.unwrap(), id);
    let get = async |path: &str| {
        let answer = http.get(format!("{reports}/{path}")).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    let (_, progress) = get(&format!("{id}/progress")).await;
    assert!(progress.contains("data: 100% page 3"), "{progress}");
    assert_eq!(get(&id).await, (200, "all about sales".to_owned()));
    assert_eq!(get("not an id").await.0, 400);
    kill_process(Pid::from_child(&web.0), Signal::TERM).unwrap();
    assert!(web.0.wait().unwrap().success());
}
