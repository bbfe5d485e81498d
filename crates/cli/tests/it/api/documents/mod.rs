//! The documents of the API: random calls that Schemathesis makes of one, and clients that published generators make of both.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use meshwork_test_servers::servers::{RealServer, Tool, need};

use super::{Server, bearer};
use crate::common::{Ground, Running};

/// Random calls of each operation and key; another number is set by `MESHWORK_API_EXAMPLES`, and then the edges of all schemas
/// are tried too.
const EXAMPLES: &str = "4";

/// Longest run of Schemathesis, which says nothing before its end: each call has a limit of its own.
const LONGEST: Duration = Duration::from_secs(3600);

/// The interpreter, with the packages of Schemathesis and the generators.
struct Python {
    program: PathBuf,
    packages: PathBuf,
}

impl Python {
    fn needed() -> Option<Self> {
        let (program, packages) = (need(Tool::Python)?, need(Tool::Schemathesis)?);
        let packages = packages.ancestors().nth(2).unwrap().to_owned();
        Some(Self { program, packages })
    }

    /// A command that also finds the modules in the folder of the ground.
    fn run(&self, ground: &Ground, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        let folder = ground.path("");
        command.args(args).current_dir(&folder);
        let path = env::join_paths([&folder, &self.packages]).unwrap();
        command.env("PYTHONPATH", path);
        command
    }

    /// Runs a program that uses a generated client.
    fn use_client(&self, ground: &Ground, text: &str, server: &Server, key: &str) {
        ground.file("program.py", text);
        let command = self.run(ground, &["program.py", &server.address, key]);
        assert_eq!(said(command), "all parts hold\n");
    }
}

fn said(command: Command) -> String {
    Running::start(command).ended().ok().stdout
}

/// Makes a key: its name and options.
fn key(ground: &Ground, words: &str) -> String {
    let words = ["key", "create"].into_iter().chain(words.split(' '));
    let made = ground.run(&words.collect::<Vec<_>>());
    made.ok().stdout.trim().to_owned()
}

#[test]
fn random_calls_get_the_answers_of_the_document() {
    // Numbers of contexts begin at 1 on a server of its own.
    let (Some(python), Some(redis)) = (Python::needed(), RealServer::redis().start()) else {
        return;
    };
    let ground = Ground::url(redis.url());
    ground.run(&["context", "create"]).ok();
    let of_node = key(&ground, "examiner --scope admin");
    let of_tenant = key(&ground, "tenant --scope user --actor 1 --context 1");
    ground.file("hooks.py", include_str!("hooks.py"));
    let server = Server::start(&ground, &[]);
    let (examples, phases) = match env::var("MESHWORK_API_EXAMPLES") {
        Ok(many) => (many, "coverage,fuzzing"),
        Err(_) => (EXAMPLES.to_owned(), "fuzzing"),
    };
    let url = format!("http://{}/v1/openapi.json", server.address);
    for key in [of_tenant, of_node] {
        let header = format!("Authorization: Bearer {key}");
        let mut calls = python.run(&ground, &["-m", "schemathesis.cli", "run", &url]);
        calls.args(["--header", &header, "--phases", phases, "-n", &examples]);
        // The stream of events does not end.
        calls.args(["--exclude-operation-id", "events"]);
        // A document cannot say all that makes a parameter wrong. The check of keys sends so many wrong ones that they get 429.
        calls.args(["--exclude-checks", "positive_data_acceptance,ignored_auth"]);
        calls.args(["--continue-on-failure", "--suppress-health-check", "all"]);
        // A call that obeys its `wait` takes 30 s at most: that of `worker.stop` for a worker that does not obey.
        calls.args(["--request-timeout", "40", "--generation-database", "none"]);
        calls
            .args(["--no-color", "--seed", "63"])
            .env("SCHEMATHESIS_HOOKS", "hooks");
        let done = Running::start(calls).ended_after_silence(LONGEST);
        let said = &done.stdout;
        assert_eq!(done.code, Some(0), "{said}{}", done.stderr);
        // It has not revoked its own key.
        let answer = server.send("GET", "/v1/system", &bearer(&key), "");
        assert_eq!(answer.status, 200, "{said}");
    }
    server.stop();
}

#[test]
fn a_client_that_is_made_of_the_openapi_document_works() {
    let (Some(python), Some(ground)) = (Python::needed(), Ground::embedded()) else {
        return;
    };
    let user = key(&ground, "user --scope user");
    let server = Server::start(&ground, &[]);
    let url = format!("http://{}/v1/openapi.json", server.address);
    // Else it formats what it makes, by a program that may be missing.
    ground.file("config.yml", "post_hooks: []\n");
    let words = ["-m", "openapi_python_client", "generate", "--url", &url];
    let mut generator = python.run(&ground, &words);
    generator.args(["--config", "config.yml", "--meta", "none"]);
    generator.args(["--output-path", "generated", "--fail-on-warning"]);
    said(generator);
    python.use_client(&ground, include_str!("openapi.py"), &server, &user);
    server.stop();
}

#[test]
fn a_client_that_is_made_of_the_openrpc_document_works() {
    let (Some(python), Some(ground)) = (Python::needed(), Ground::embedded()) else {
        return;
    };
    let user = key(&ground, "user --scope user");
    let server = Server::start(&ground, &[]);
    // The generator sends no key.
    let open = Server::open(&ground);
    let url = format!("http://{}/rpc", open.address);
    let words = ["-m", "openrpcclientgenerator.orpc", "python", &url, "out"];
    said(python.run(&ground, &words));
    open.stop();
    let made = ground.path("out/python/meshwork-http-client/meshwork_http_client");
    let package = ground.path("meshwork_http_client");
    fs::rename(made, &package).unwrap();
    // In its classes, methods named `list` hide the type of this name.
    let client = package.join("client.py");
    let text = fs::read_to_string(&client).unwrap();
    fs::write(
        &client,
        format!("from __future__ import annotations\n{text}"),
    )
    .unwrap();
    python.use_client(&ground, include_str!("openrpc.py"), &server, &user);
    server.stop();
}
