//! Programs in the folder `programs`, which use the packages as their users do. Each is an app and its client: it asserts what it
//! sees, and prints `done`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use meshwork_test_servers::servers::{Tool, need};

use super::client::python_with;
use super::{listening, with_package};
use crate::common::{Ground, Running, on_all_data, on_both};

/// Copies a program into the ground.
pub(super) fn copied(ground: &Ground, name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/workers/app/programs");
    ground.file(name, fs::read(folder.join(name)).unwrap())
}

/// Runs a program in Python to its end.
fn run(ground: &Ground, name: &str) {
    let done = Running::start(python_with(ground, &[name])).ended();
    assert_eq!(done.stdout.trim(), "done", "{done:?}");
}

/// Starts a worker of a program's app, and runs the program beside it.
fn run_beside_worker(ground: &Ground, name: &str, args: &[&str]) {
    copied(ground, &format!("{name}.py"));
    let app = format!("{name}:app");
    let args = [
        &["worker", "--json", "--app", &app, "--processes", "1"],
        args,
    ]
    .concat();
    let worker = listening(with_package(ground.command(&args)));
    run(ground, &format!("{name}.py"));
    worker.stop();
}

/// The interpreter with the package, and with packages of others.
pub(super) fn python_beside(ground: &Ground, args: &[&str]) -> Option<Command> {
    let others = need(Tool::TasksPython)?.ancestors().nth(2)?.to_owned();
    let mut command = python_with(ground, args);
    let path = std::env::join_paths([ground.path("site"), others]).ok()?;
    command.env("PYTHONPATH", path);
    Some(command)
}

#[test]
fn an_app_has_the_jobs_of_a_context() {
    on_both(|ground| {
        ground.run(&["context", "create", "--id", "1"]).ok();
        ground.run(&["actor", "create", "--key", "bob.key"]).ok();
        run_beside_worker(ground, "contexts", &["--context", "1"]);
    });
}

on_all_data! {
    fn chains_groups_chords_and_batches_run(ground: &Ground) {
        run_beside_worker(ground, "flows", &[]);
        let limits = ground.run(&["queue", "list", "--json"]).ok().jsons();
        let is_limited = |queue: &serde_json::Value| queue["concurrency"] == 1;
        let of_one = limits.into_iter().find(is_limited).unwrap();
        assert_eq!(of_one["queue"], "hero:q:work:type:one_at_a_time", "{of_one}");
    }
}
