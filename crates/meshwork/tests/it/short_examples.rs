//! The short examples work, on a machine without a server.

use std::process::Command;

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
