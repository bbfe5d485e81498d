//! Workers that are killed at any moment of their runs: no process and no folder of a run remains.

use std::fs;
use std::time::{Duration, Instant};

use crate::common::{Ground, eventually, json};
use meshwork_test_servers::servers::{Tool, need};

use crate::common::Running;

/// Kills; `MESHWORK_KILLS` sets another number.
const KILLS: usize = 25;
/// Most processes of a run: the launcher, the first process of its namespace, the script, and one that it has started.
const PROCESSES: usize = 4;
/// Longest time until all is gone. It takes milliseconds; a machine that builds at the same time takes longer.
const GONE: Duration = Duration::from_secs(5);

/// Starts a process that leaves its group, its session and its parent, and waits.
const ESCAPES: &str = "import os, signal
open('file', 'w').write('x')
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.pause()
    os._exit(0)
os.wait()
signal.pause()";

/// Returns the number of processes whose command line or environment names a path in a folder.
fn processes(folder: &str) -> usize {
    let folder = format!("{folder}/");
    let names_it = |pid: &str| {
        ["cmdline", "environ"].iter().any(|file| {
            let text = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            text.windows(folder.len())
                .any(|part| part == folder.as_bytes())
        })
    };
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let pids = names.filter(|name| name.bytes().all(|c| c.is_ascii_digit()));
    pids.filter(|pid| names_it(pid)).count()
}

#[test]
fn nothing_remains_of_runs_whose_worker_is_killed() {
    if need(Tool::Python).is_none() {
        return;
    }
    let kills = std::env::var("MESHWORK_KILLS").ok();
    let kills = kills.map_or(KILLS, |number| number.parse().unwrap());
    let ground = Ground::embedded().unwrap();
    ground.file("s.py", ESCAPES);
    let runs = ground.path("runs");
    fs::create_dir(&runs).unwrap();
    let folder = runs.to_str().unwrap();
    let left = || fs::read_dir(&runs).unwrap().count();
    let worker = || {
        let args = ["worker", "--json", "--type", "python", "--sandbox"];
        let mut command =
            ground.command(&[&args[..], &["standard", "--concurrency", "1"]].concat());
        command.env("TMPDIR", &runs);
        let mut worker = Running::start(command);
        assert_eq!(json(&worker.line())["event"], "listening");
        worker
    };
    for kill in 0..kills {
        ground.run(&["job", "enqueue", "s.py"]).ok();
        let worker = worker();
        let most = kill % (PROCESSES + 1);
        eventually("the run has processes", || {
            (processes(folder) >= most).then_some(())
        });
        let killed = Instant::now();
        worker.kill();
        eventually("all processes end", || {
            (processes(folder) == 0).then_some(())
        });
        // Before it has a second process, the launcher may not have begun. The next worker removes the folder then.
        if most > 1 {
            eventually("the folder is removed", || (left() == 0).then_some(()));
        }
        let took = killed.elapsed();
        assert!(took < GONE, "{took:?} after {most} processes");
    }
    worker().stop();
    assert_eq!(left(), 0);
}
