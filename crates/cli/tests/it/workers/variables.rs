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

/// The jobs of one node or context.
struct Jobs<'a> {
    ground: &'a Ground,
    scope: &'a [&'a str],
}

impl Jobs<'_> {
    /// Runs a command with these variables as options, and returns what it prints: an id.
    fn with(&self, words: &[&str], env: &Variables<'_>) -> String {
        let options = env.iter().map(|(name, value)| format!("{name}={value}"));
        let options: Vec<String> = options.collect();
        let options = options.iter().flat_map(|option| ["--env", option.as_str()]);
        let args: Vec<&str> = words.iter().copied().chain(options).collect();
        let args = [&args[..], self.scope].concat();
        self.ground.run(&args).ok().stdout.trim().to_owned()
    }

    fn wait(&self, id: &str) {
        self.with(&["job", "wait", id], &[]);
    }

    fn run(&self, env: &Variables<'_>) {
        let id = self.with(&["job", "enqueue", "s.py"], env);
        self.wait(&id);
    }

    fn run_a_child(&self, env: &Variables<'_>) {
        let all: serde_json::Map<_, _> = env
            .iter()
            .map(|(name, value)| ((*name).to_owned(), json!(value)))
            .collect();
        let parent = format!("result = add_child('result = 1', env={})", json!(all));
        self.ground.file("parent.py", parent);
        let parent = self.with(&["job", "enqueue", "parent.py"], &[]);
        self.wait(&parent);
        self.wait(&self.with(&["job", "result", &parent], &[]));
    }

    fn run_a_flow(&self, env: &Variables<'_>) {
        let pairs = env
            .iter()
            .map(|(name, value)| format!("{name}: {}", json!(value)));
        let pairs = pairs.collect::<Vec<_>>().join(", ");
        let job = format!("{{script: result = 1, type: python, env: {{{pairs}}}}}");
        self.ground
            .file("flow.yaml", format!("flow: f\njobs:\n  a: {job}\n"));
        self.with(&["flow", "run", "flow.yaml"], &[]);
    }

    fn run_a_schedule(&self, env: &Variables<'_>) {
        self.with(&["schedule", "add", "s", "--every", "1h", "s.py"], env);
        self.wait(&self.with(&["schedule", "run", "s"], &[]));
    }
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
    let node = Jobs {
        ground: &ground,
        scope: &[],
    };
    let context = Jobs {
        ground: &ground,
        scope: &["--context", "7"],
    };
    ground.file("s.py", "result = 1");
    // Jobs of another node do not reach the paths of the worker, so they cannot load the library.
    let foreign = context.with(&["job", "enqueue", "s.py"], &env);
    plain
        .ask::<i64>(&["HSET", &foreign, "mw_from_node", &"ab".repeat(32)])
        .unwrap();
    let args = ["--type", "python", "--sandbox", "standard"];
    let args = [&args[..], &["--read", &read, "--write", &write]].concat();
    let workers =
        [&node, &context].map(|jobs| ground.confining_worker(&[&args[..], jobs.scope].concat()));
    node.run(&env);
    node.run_a_child(&env);
    context.run(&env);
    context.run_a_flow(&env);
    node.run_a_schedule(&env);
    context.wait(&foreign);
    let lines = fs::read_to_string(&log).unwrap();
    let outside: Vec<_> = lines
        .lines()
        .filter(|line| !line.starts_with("x confined "))
        .collect();
    assert_eq!(outside, Vec::<&str>::new());
    // A run that has lost its lease on a busy host begins again.
    assert!(lines.lines().count() >= 5, "{lines}");
    workers.into_iter().for_each(|worker| drop(worker.stop()));
}
