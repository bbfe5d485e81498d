//! The tests of Python scripts once more, in a program that is the launcher of its scripts as well.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod confined;
mod python;
mod python_outcome;
mod python_processes;
#[cfg(feature = "sal")]
mod sal;
mod support;

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};

use meshwork::runtime::builtin;
use meshwork_model::outcome::FailureKind;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process};

use support::{PATIENCE, failure, output, run_of, script, within};

/// True if a launcher is between the runner and the script.
const LAUNCHED: bool = true;

/// The harness has a `main` of its own; this comes before it. In other programs it is `main`'s first line.
#[ctor::ctor(unsafe)]
fn init() {
    hold();
    meshwork::runtime::init();
}

/// Ending of the name of a pipe that holds a launcher.
const HOLDS: &str = "holds-launcher";

/// Holds a launcher whose program has such a pipe as its last argument, until nobody writes to the pipe. To be called before
/// the launcher begins.
fn hold() {
    let args: Vec<OsString> = env::args_os().collect();
    let is_launcher = args.get(1).is_some_and(|word| word == "__sandbox")
        && args.get(2).is_some_and(|stage| stage == "launch");
    let last = args.last().and_then(|last| last.to_str());
    if let Some(pipe) = last.filter(|last| is_launcher && last.ends_with(HOLDS)) {
        let _ = fs::read(pipe);
    }
}

/// Returns the child of this process whose command line contains a word.
fn child(word: &str) -> Pid {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    let children = tasks.map(|task| fs::read_to_string(task.path().join("children")).unwrap());
    let children = children.collect::<Vec<_>>().join(" ");
    let mut pids = children.split_whitespace();
    let pid = pids.find(|pid| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).contains(word)
    });
    Pid::from_raw(pid.unwrap().parse().unwrap()).unwrap()
}

#[tokio::test]
async fn a_launcher_that_gets_a_signal_before_it_begins_fails_no_job() {
    for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join(HOLDS);
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let text = serde_json::json!({ "program": "echo", "args": [pipe] }).to_string();
        let running = tokio::spawn(async move {
            let (run, _stop) = run_of(script(&text), PATIENCE);
            builtin("exec").unwrap().run(run).await
        });
        let name = pipe.to_str().unwrap().to_owned();
        let signalled = tokio::task::spawn_blocking(move || {
            // Waits until the launcher reads the pipe.
            let writer = File::options().write(true).open(&name).unwrap();
            kill_process(child(&name), signal).unwrap();
            drop(writer);
        });
        within(signalled).await.unwrap();
        let report = within(running).await.unwrap();
        if signal == Signal::KILL {
            assert_eq!(failure(&report).kind, FailureKind::NotStarted, "{report:?}");
        } else {
            assert_eq!(output(&report).trim(), pipe.to_str().unwrap());
        }
    }
}
