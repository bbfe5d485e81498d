//! Tasks while workers, their processes and the server are killed: no job is lost, and only a kill runs one again.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::{self, Write as _};
use std::str::FromStr;

use meshwork_test_servers::servers::{RealServer, Tool, need};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::node::installed;
use super::{listening, processes_of, with_package};
use crate::common::{Ground, Running, eventually};

/// Both note each run in a file, with one write, and take a while, so that kills meet runs.
const PYTHON: &str = r#"
import os, time
from meshwork import App

app = App()

@app.task(retries=20, backoff=0.1)
def note(n: int) -> int:
    with open("runs", "ab", buffering=0) as file:
        file.write(f"{n}\n".encode())
    time.sleep(0.1)
    return n
"#;
const NODE: &str = r#"
import { appendFileSync } from "node:fs";
import { App } from "meshwork";

export const app = new App();
app.task("note", async ({ n }) => {
  appendFileSync("runs", `${n}\n`);
  await new Promise((done) => setTimeout(done, 100));
  return n;
});
"#;

/// Runs that a killed worker has at most.
const AT_ONCE: usize = 2 * 5;

/// Number of a long check, from the environment, or the default.
fn number<N: FromStr>(name: &str, default: N) -> N {
    let given = env::var(name).ok().and_then(|text| text.parse().ok());
    given.unwrap_or(default)
}

fn worker(ground: &Ground, app: &str) -> Running {
    let args = [
        "worker",
        "--json",
        "--app",
        app,
        "--processes",
        "2",
        "--concurrency",
        "5",
        "--lease",
        "1",
        "--connect-timeout",
        "60",
    ];
    listening(with_package(ground.command(&args)))
}

fn lines(ground: &Ground) -> Vec<usize> {
    let runs = fs::read_to_string(ground.path("runs")).unwrap_or_default();
    // The last line may be cut off.
    let whole = runs.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().map(|line| line.parse().unwrap()).collect()
}

fn survive(app: &str, process: &str, ground: &Ground, server: &mut RealServer) {
    let jobs: usize = number("MESHWORK_TASK_JOBS", 2000);
    let kills: usize = number("MESHWORK_TASK_KILLS", 6);
    let of_job = |n: usize| json!({"id": format!("n-{n}"), "payload": {"n": n}, "retries": 20, "backoff": 0.1});
    let specs: Vec<_> = (0..jobs).map(|n| of_job(n).to_string()).collect();
    let file = ground.file("jobs.jsonl", specs.join("\n"));
    let file = file.to_str().unwrap();
    ground
        .run(&["job", "enqueue", "--type", "note", "--jsonl", file])
        .ok();
    let mut workers = vec![worker(ground, app), worker(ground, app)];
    for kill in 0..kills {
        let due = jobs * (kill + 1) / (kills + 2);
        eventually("jobs go on", || (lines(ground).len() >= due).then_some(()));
        let run = lines(ground).len();
        assert!(run < jobs, "kill {kill} comes after the last run");
        // The worker that has run longer.
        match kill % 3 {
            0 => {
                workers.remove(0).kill();
                workers.push(worker(ground, app));
            }
            1 => {
                let pid = eventually("it has a process", || {
                    processes_of(&workers[0], process).first().copied()
                });
                let _ = kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL);
            }
            _ => {
                server.kill9();
                server.start_again();
            }
        }
    }
    eventually("all jobs have ended", || {
        let of =
            |state: &str| ground.run(&["job", "list", "--state", state, "--json", "--limit", "1"]);
        let open = |state: &str| of(state).stdout.lines().count();
        (open("queued") + open("running") + open("delayed") == 0).then_some(())
    });
    for worker in workers {
        worker.stop();
    }
    let stored = ground
        .run(&["job", "list", "--json", "--limit", "100000"])
        .ok()
        .jsons();
    assert_eq!(stored.len(), jobs);
    for job in &stored {
        assert_eq!(job["state"], "finished", "{job}");
    }
    let mut runs: BTreeMap<usize, usize> = BTreeMap::new();
    for n in lines(ground) {
        *runs.entry(n).or_default() += 1;
    }
    let again = runs.values().sum::<usize>() - jobs;
    let without = jobs - runs.len();
    let counts = format!("{app}: {jobs} jobs, {kills} kills: lost {without}, run again {again}\n");
    io::stderr().write_all(counts.as_bytes()).unwrap();
    assert_eq!(without, 0);
    assert!(again <= kills * 2 * AT_ONCE, "{again} jobs ran again");
    let queues = ground.run(&["queue", "list", "--json"]).ok().jsons();
    assert!(
        queues
            .iter()
            .all(|queue| queue["waiting"] == 0 && queue["running"] == 0),
        "{queues:?}"
    );
}

#[test]
fn no_task_of_python_is_lost() {
    if let Some(mut server) = RealServer::redis().append_only().start() {
        let ground = Ground::url(server.url());
        ground.file("noted.py", PYTHON);
        survive("noted:app", "_child", &ground, &mut server);
    }
}

#[test]
fn no_task_of_node_is_lost() {
    if need(Tool::TasksNode).is_none() {
        return;
    }
    if let Some(mut server) = RealServer::redis().append_only().start() {
        let ground = Ground::url(server.url());
        installed(&ground);
        ground.file("noted.mjs", NODE);
        survive("./noted.mjs", "meshwork/worker", &ground, &mut server);
    }
}
