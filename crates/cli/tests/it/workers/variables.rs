//! Variables of jobs that come in every way: none acts outside of the sandbox of a real worker.

use std::fs;
use std::process::Command;

use meshwork_test_servers::plain::Plain;
use meshwork_test_servers::servers::{RealServer, Tool, need, need_program};
use serde_json::json;

use crate::common::Ground;

/// Library that appends a line to a file for each process that loads it.
const LIBRARY: &str = include_str!("../../../../meshwork/tests/it/runners/confined/observer.c");

type Variables<'a> = [(&'a str, &'a str)];

/// Runs a command with these variables as options, and returns what it prints: an id.
fn with(ground: &Ground, words: &[&str], env: &Variables<'_>) -> String {
    let mut args: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    for (name, value) in env {
        args.extend(["--env".to_owned(), format!("{name}={value}")]);
    }
    args.extend(["--context", "7"].map(str::to_owned));
    ground.run(&args).ok().stdout.trim().to_owned()
}

fn wait(ground: &Ground, id: &str) {
    ground.run(&["job", "wait", id, "--context", "7"]).ok();
}

/// Runs jobs with these variables that come in each way. Returns the number of processes of scripts that have them.
fn run_in_each_way(ground: &Ground, env: &Variables<'_>) -> usize {
    let plain = with(ground, &["job", "enqueue", "s.py"], env);
    let of_child: serde_json::Map<_, _> = env
        .iter()
        .map(|(name, value)| ((*name).to_owned(), json!(value)))
        .collect();
    let parent = format!("result = add_child('result = 1', env={})", json!(of_child));
    ground.file("parent.py", parent);
    let parent = with(ground, &["job", "enqueue", "parent.py"], &[]);
    wait(ground, &parent);
    let child = with(ground, &["job", "result", &parent], &[]);

    let of_flow: Vec<String> = env
        .iter()
        .map(|(name, value)| format!("{name}: {}", json!(value)))
        .collect();
    let of_flow = of_flow.join(", ");
    let flow =
        format!("flow: f\njobs:\n  a: {{script: result = 1, type: python, env: {{{of_flow}}}}}\n");
    ground.file("flow.yaml", flow);
    with(ground, &["flow", "run", "flow.yaml"], &[]);

    with(
        ground,
        &["schedule", "add", "s", "--every", "1h", "s.py"],
        env,
    );
    let fired = with(ground, &["schedule", "run", "s"], &[]);
    let ids = [plain, child, fired];
    ids.iter().for_each(|id| wait(ground, id));
    ids.len() + 1
}

#[test]
fn variables_of_a_job_act_only_in_its_sandbox_however_it_comes() {
    let test = "variables_of_a_job_act_only_in_its_sandbox_however_it_comes";
    let (Some(_), Some(compiler)) = (need(Tool::Python), need_program(test, "cc")) else {
        return;
    };
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let ground = Ground::url(server.url());
    ground.run(&["context", "create", "--id", "7"]).ok();
    let mut plain = Plain::connect(&server.url_of(7)).unwrap();
    for folder in ["read", "write"] {
        fs::create_dir(ground.path(folder)).unwrap();
    }
    let (library, log) = (ground.path("read/x.so"), ground.path("write/log"));
    fs::write(&log, "").unwrap();
    let mut command = Command::new(compiler);
    command
        .args(["-shared", "-fPIC", "-DTAG=\"x\"", "-o"])
        .arg(&library);
    command
        .arg(format!("-DLOG=\"{}\"", log.display()))
        .arg(ground.file("x.c", LIBRARY));
    assert!(command.status().unwrap().success());
    let [read, write] =
        ["read", "write"].map(|name| ground.path(name).to_str().unwrap().to_owned());
    let preload = library.to_str().unwrap();
    let env = [
        ("LD_PRELOAD", preload),
        ("GLIBC_TUNABLES", "glibc.malloc.check=3"),
    ];
    // Jobs of another node do not reach the paths of the worker, so they cannot load the library.
    ground.file("s.py", "result = 1");
    let foreign = with(&ground, &["job", "enqueue", "s.py"], &env);
    let node = "ab".repeat(32);
    plain
        .ask::<i64>(&["HSET", &foreign, "mw_from_node", &node])
        .unwrap();
    let args = [
        "--context",
        "7",
        "--type",
        "python",
        "--sandbox",
        "standard",
    ];
    let paths = ["--read", &read, "--write", &write];
    let worker = ground.confining_worker(&[&args[..], &paths].concat());
    let scripts = run_in_each_way(&ground, &env);
    wait(&ground, &foreign);
    let lines = fs::read_to_string(&log).unwrap();
    let outside: Vec<_> = lines
        .lines()
        .filter(|line| !line.starts_with("x confined "))
        .collect();
    assert_eq!(outside, Vec::<&str>::new());
    assert_eq!(lines.lines().count(), scripts, "{lines}");
    worker.stop();
}
