//! The official SDKs of the Model Context Protocol at `meshwork mcp`, and over HTTP at the supervisor.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use meshwork_test_servers::servers::{Tool, need};
use serde_json::{Value, json};

use super::Server;
use super::rights::key;
use crate::common::{Ground, Running};

/// A program with an SDK.
struct Sdk {
    program: PathBuf,
    script: &'static str,
    /// Variable with the folder of its packages.
    packages: (&'static str, PathBuf),
    /// Words for the ways to begin.
    modes: &'static [&'static str],
}

fn node() -> Option<Sdk> {
    let sdk = need(Tool::McpSdk)?;
    Some(Sdk {
        program: "node".into(),
        script: concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/client.js"),
        packages: ("NODE_PATH", above(&sdk, 3)),
        modes: &[""],
    })
}

fn python() -> Option<Sdk> {
    let (program, sdk) = (need(Tool::Python)?, need(Tool::McpPython)?);
    Some(Sdk {
        program,
        script: concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/client.py"),
        packages: ("PYTHONPATH", above(&sdk, 2)),
        modes: &["legacy", "auto"],
    })
}

fn above(path: &Path, levels: usize) -> PathBuf {
    path.ancestors().nth(levels).unwrap().to_owned()
}

impl Sdk {
    /// Talks to a server, and checks what came.
    fn talk(&self, ground: &Ground, at: &Value) {
        let words = ground.command(&["mcp", "--allow-changes"]);
        let go_on = ground.path("go_on");
        let script = format!(
            "import os, time\nprogress(0.5, 'half way')\nwhile not os.path.exists({:?}): time.sleep(0.01)\nresult = 42",
            go_on.display()
        );
        for mode in self.modes {
            let worker = ground.worker(&["--type", "python"]);
            std::fs::remove_file(&go_on).ok();
            let mut given = json!({"go_on": go_on, "script": script, "mode": mode});
            let more = at.as_object().unwrap().clone();
            given.as_object_mut().unwrap().extend(more);
            let mut command = Command::new(&self.program);
            command.arg(self.script).arg(given.to_string());
            for (name, value) in words.get_envs() {
                if let Some(value) = value {
                    command.env(name, value);
                }
            }
            command.env(self.packages.0, &self.packages.1);
            command.current_dir(ground.path(""));
            let done = Running::with_stdin(command, Stdio::null());
            check(&done.ended().ok().json());
            worker.stop();
            for id in ["sdk-1", "sdk-2", "sdk-3"] {
                ground.run(&["job", "delete", id]).ok();
            }
        }
    }

    fn over_stdio(&self, ground: &Ground) {
        let words = ground.command(&["mcp", "--allow-changes"]);
        let args = words.get_args().map(|it| it.to_str().unwrap());
        let program = words.get_program().to_str().unwrap();
        let command: Vec<_> = [program].into_iter().chain(args).collect();
        self.talk(ground, &json!({"command": command}));
    }

    fn over_http(&self, ground: &Ground) {
        let user = key(ground, "agent", &["--scope", "user"]);
        // Each call at once has a connection of its own.
        let server = Server::start(ground, &["--peer-connections", "256"]);
        let url = format!("http://{}/mcp", server.address);
        self.talk(ground, &json!({"url": url, "key": user}));
        server.stop();
    }
}

fn check(done: &Value) {
    assert_eq!(done["server"], "meshwork");
    let tools = done["tools"].as_array().unwrap();
    assert!(tools.contains(&json!("create_job")), "{tools:?}");
    assert_eq!(done["faults"], json!([]));
    let (created, found) = (&done["created"], &done["found"]["data"]);
    assert_eq!(created["error"], false, "{done}");
    assert_eq!(created["data"]["id"], "sdk-1");
    assert_eq!(found["jobs"][0]["id"], "sdk-1");
    assert_eq!(done["why"]["error"], false, "{done}");
    assert_eq!(done["missing"]["error"], true);
    assert_eq!(done["cancelled"]["data"]["result"], "cancelled");
    assert_eq!(done["refused"], -32602);
    assert_eq!(done["ended"]["data"]["job"]["output"], 42, "{done}");
    let steps = done["progress"].as_array().unwrap();
    assert!(
        steps.iter().any(|step| step[1] == "running: half way"),
        "{steps:?}"
    );
    let numbers: Vec<_> = steps.iter().map(|it| it[0].as_f64().unwrap()).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    assert_eq!(
        (&done["aborted"], &done["many"]),
        (&json!(true), &json!(200))
    );
}

#[test]
fn typescript_over_stdio() {
    if let (Some(sdk), Some(ground)) = (node(), Ground::redis()) {
        sdk.over_stdio(&ground);
    }
}

#[test]
fn typescript_over_http() {
    if let (Some(sdk), Some(ground)) = (node(), Ground::redis()) {
        sdk.over_http(&ground);
    }
}

#[test]
fn python_over_stdio() {
    if let (Some(sdk), Some(ground)) = (python(), Ground::redis()) {
        sdk.over_stdio(&ground);
    }
}

#[test]
fn python_over_http() {
    if let (Some(sdk), Some(ground)) = (python(), Ground::redis()) {
        sdk.over_http(&ground);
    }
}
