//! Messages between two nodes through fake Mycelium daemons: two servers, a supervisor with workers beside each.

use std::path::PathBuf;
use std::process::Command;

use crate::common::{Ground, Running, eventually, json as of_line};
use crate::docs::file_of;
use meshwork_test_servers::fakes::mycelium::hosted::FakeMycelium;
use meshwork_test_servers::plain::Plain;
use meshwork_test_servers::servers::{RealServer, Tool, need};
use serde_json::json;

/// A node: a server, its command, its daemon and its supervisor.
pub(super) struct Node {
    server: RealServer,
    pub(super) ground: Ground,
    pub(super) daemon: FakeMycelium,
    pub(super) supervisor: Option<Running>,
}

impl Node {
    /// Starts a node with the contexts 7 and 8, and no supervisor.
    pub(super) fn start(peers: &[&Self]) -> Option<Self> {
        let server = RealServer::redis().start()?;
        let ground = Ground::url(server.url());
        for id in ["7", "8"] {
            ground.run(&["context", "create", "--id", id]).ok();
        }
        // Jobs of other nodes run in the sandbox `strict` otherwise, which this host may lack.
        let open = ["context", "set", "8", "--sandbox", "open"];
        ground.run(&open).ok();
        let peers: Vec<_> = peers.iter().map(|peer| peer.daemon.link()).collect();
        Some(Self {
            server,
            ground,
            daemon: FakeMycelium::start(&peers),
            supervisor: None,
        })
    }

    /// Starts its supervisor, with a worker.
    pub(super) fn serve(&mut self) {
        self.serve_with(&["--worker", "python"]);
    }

    pub(super) fn serve_with(&mut self, args: &[&str]) {
        let url = self.daemon.url();
        let args = [&["supervisor", "--json", "--mycelium", &url], args].concat();
        let mut supervisor = self.ground.start(&args);
        assert_eq!(of_line(&supervisor.line())["event"], "ready");
        self.supervisor = Some(supervisor);
    }

    fn kill(&mut self) {
        if let Some(supervisor) = self.supervisor.take() {
            supervisor.kill();
        }
    }

    fn card(&self) -> String {
        let url = self.daemon.url();
        let card = self.ground.run(&["mesh", "card", "--mycelium", &url]);
        card.ok().stdout
    }

    /// Trusts the node `other`, and its actor in context 8.
    pub(super) fn trust(&self, other: &Self, name: &str) {
        let file: PathBuf = self.ground.file(name, other.card());
        let file = file.to_str().unwrap();
        self.ground
            .run(&["mesh", "trust", file, "--name", name])
            .ok();
        let actor = other.ground.run(&["actor", "show", "--json"]).ok().json();
        let key = actor["pubkey"].as_str().unwrap();
        let number = self.ground.run(&["actor", "trust", key]).ok().stdout;
        let grant = ["context", "grant", "8", "admin", number.trim()];
        self.ground.run(&grant).ok();
    }

    pub(super) fn plain(&self, context: u32) -> Plain {
        Plain::connect(&self.server.url_of(context)).unwrap()
    }

    pub(super) fn field(&self, context: u32, key: &str, field: &str) -> String {
        let value = self
            .plain(context)
            .ask::<Option<String>>(&["HGET", key, field]);
        value.unwrap().unwrap_or_default()
    }

    fn has_processed(&self, key: &str) -> Option<()> {
        (self.status(key) == "processed").then_some(())
    }

    fn status(&self, key: &str) -> String {
        self.field(7, key, "status")
    }
}

/// Two nodes that trust each other: alice and bob.
fn two() -> Option<(Node, Node)> {
    let alice = Node::start(&[])?;
    let bob = Node::start(&[&alice])?;
    alice.trust(&bob, "bob");
    bob.trust(&alice, "alice");
    Some((alice, bob))
}

/// Sends a job to the context 8 of bob.
pub(super) const SEND: [&str; 7] = [
    "message",
    "send",
    "bob/8",
    "--context",
    "7",
    "--job",
    "sum.py",
];

#[test]
fn a_job_runs_on_the_other_node_and_its_result_comes_home() {
    let Some((mut alice, mut bob)) = two() else {
        return;
    };
    alice.serve();
    bob.serve();
    alice.ground.file("sum.py", "result = 40 + 2");
    let sent = [&SEND[..], &["--wait", "--json"]].concat();
    let result = alice.ground.run(&sent).ok().json();
    assert_eq!(result["status"], "processed");
    assert_eq!(result["job"][0]["result"], json!({"result": "42"}));
    assert_eq!(alice.field(7, "message:1:1", "mw_reason"), "");
    // A worker there knows that the job came from another node.
    let jobs: Vec<String> = bob.plain(8).ask(&["KEYS", "job:*"]).unwrap();
    let from = alice.field(0, "mw:node", "id");
    assert_eq!(jobs.len(), 1);
    assert_eq!(bob.field(8, &jobs[0], "mw_from_node"), from);
    let peers = eventually("nothing waits", || {
        let peers = alice.ground.run(&["mesh", "peers", "--json"]);
        let peers = peers.ok().json();
        (peers["waiting"] == 0).then_some(peers)
    });
    assert_eq!(peers["name"], "bob");
    assert!(peers["seen_ms"].as_u64().is_some(), "{peers}");
    assert_eq!(peers["refused"], json!({}));
    let pong = alice.ground.run(&["mesh", "ping", "bob", "--json"]);
    let pong = pong.ok().json();
    assert_eq!(pong["version"], env!("CARGO_PKG_VERSION"));
    assert!(pong["round_trip_ms"].as_u64().is_some(), "{pong}");
    assert_eq!(result["outcome"], "processed");
    let listed = ["message", "list", "--context", "7", "--json"];
    let listed = alice.ground.run(&listed).ok().stdout;
    let sent = listed.lines().next_back().map(of_line).unwrap();
    assert_eq!(sent["outcome"], "processed", "{sent}");
    // The same figures as metrics.
    let metrics = alice.ground.run(&["metrics"]).ok().stdout;
    let trusted = r#"meshwork_mesh_peer_trusted{peer="bob"} 1"#;
    assert!(metrics.contains(trusted), "{metrics}");
    alice.daemon.stop();
    let fails = eventually("the supervisor notices it", || {
        let ping = ["mesh", "ping", "bob", "--timeout", "0.1"];
        let ping = alice.ground.run(&ping);
        ping.stderr
            .contains("no Mycelium daemon answers")
            .then_some(ping)
    });
    assert_eq!(fails.code, Some(3));
}

/// A message to the topic of a runner is for its worker alone, on the other node too.
#[test]
fn a_runner_takes_the_messages_of_its_topic() {
    let Some((mut alice, mut bob)) = two() else {
        return;
    };
    let register = ["runner", "register", "--type", "python", "--id", "20"];
    let register = [&register[..], &["--context", "8"]].concat();
    bob.ground.run(&register).ok();
    let runner = |bob: &Node| {
        let list = ["runner", "list", "--context", "8", "--json"];
        let list = bob.ground.run(&list).ok().stdout;
        let mut lines = list.lines().map(of_line);
        lines.find(|line| line["id"] == 20).unwrap()
    };
    assert_eq!(runner(&bob)["running"], false);
    assert!(runner(&bob).get("last_seen").is_none());
    let worker = ["worker", "--json", "--context", "8", "--runner", "20"];
    let mut worker = bob.ground.start(&worker);
    assert_eq!(of_line(&worker.line())["event"], "listening");
    alice.serve();
    // Its supervisor runs another runner of the same type.
    bob.serve();
    alice.ground.file("sum.py", "result = 40 + 2");
    let to_runner = [&SEND[..], &["--topic", "runner20", "--wait", "--json"]].concat();
    let result = alice.ground.run(&to_runner).ok().json();
    assert_eq!(result["job"][0]["result"], json!({"result": "42"}));
    let jobs: Vec<String> = bob.plain(8).ask(&["KEYS", "job:*"]).unwrap();
    let ran = bob.field(8, &jobs[0], "mw_worker");
    assert!(ran.starts_with("20."), "{ran}");
    let shown = runner(&bob);
    assert_eq!(
        (&shown["running"], &shown["waiting"]),
        (&json!(true), &json!(0))
    );
    assert!(shown["slots"].as_u64().is_some(), "{shown}");
    let seen = shown["last_seen"].clone();
    assert!(seen.as_str().is_some(), "{shown}");
    // The runner is gone: its job waits for it, and the message ends by its timeout.
    worker.stop();
    let late = [&to_runner[..], &["--timeout-result", "2"]].concat();
    let ended = alice.ground.run(&late).exits(1);
    let why = "timeout_result: not processed within 2 s";
    assert!(format!("{}{}", ended.stdout, ended.stderr).contains(why));
    let gone = runner(&bob);
    assert_eq!(gone["running"], false);
    assert!(gone["last_seen"].as_str() >= seen.as_str(), "{gone}");
    let nobody = [&SEND[..], &["--topic", "runner21", "--wait"]].concat();
    let refused = alice.ground.run(&nobody).exits(1);
    assert!(format!("{}{}", refused.stdout, refused.stderr).contains("has the topic \"runner21\""));
}

/// A plain client signs with 30 lines of Python, and a plain runner there runs its job.
#[test]
fn plain_clients_and_plain_runners_use_the_mesh_with_redis_commands() {
    let (Some(python), Some(packages)) = (need(Tool::Python), need(Tool::Cryptography)) else {
        return;
    };
    let Some((mut alice, mut bob)) = two() else {
        return;
    };
    alice.serve_with(&[]);
    bob.serve_with(&[]);
    let folder = alice.ground.path(".");
    let config = alice.ground.path(".config/meshwork/actor.key");
    std::fs::copy(config, folder.join("alice.key")).unwrap();
    alice.ground.file("alice.card", alice.card());
    alice.ground.file("bob.card", bob.card());
    alice
        .ground
        .file("send.py", file_of("docs/mesh.md", "send.py"));
    let mut script = Command::new(python);
    script.arg("send.py").current_dir(folder);
    let packages = packages.ancestors().nth(2).unwrap();
    let said = script.env("PYTHONPATH", packages).output().unwrap();
    assert!(said.status.success(), "{said:?}");
    let said = String::from_utf8(said.stdout).unwrap();
    let mut client = alice.plain(7);
    for line in said.lines() {
        // Words as redis-cli reads them: JSON strings, or without quotes.
        let mut words = Vec::new();
        let mut rest = line;
        while !rest.is_empty() {
            let mut json = serde_json::Deserializer::from_str(rest).into_iter::<String>();
            let used = match (rest.starts_with('"'), json.next()) {
                (true, Some(Ok(word))) => {
                    words.push(word);
                    json.byte_offset()
                }
                _ => {
                    let end = rest.find(' ').unwrap_or(rest.len());
                    words.push(rest[..end].to_owned());
                    end
                }
            };
            rest = rest[used..].trim_start();
        }
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        client.ask::<i64>(&words).unwrap();
    }
    let mut runner = bob.plain(8);
    let (_, job): (String, String) = runner.ask(&["BRPOP", "queue:python", "30"]).unwrap();
    let run = |runner: &mut Plain, fields: &[&str]| {
        let words = [&["HSET", &job], fields].concat();
        runner.ask::<i64>(&words).unwrap();
    };
    run(&mut runner, &["status", "started"]);
    run(
        &mut runner,
        &["result", r#"{"rows":"5"}"#, "status", "finished"],
    );
    let (_, result): (String, String) = client.ask(&["BRPOP", "msg_in", "30"]).unwrap();
    assert!(alice.field(7, &result, "job").contains(r#"{"rows":"5"}"#));
    assert_eq!(alice.field(7, &result, "mw_re"), "1:500");
    assert_eq!(alice.status("message:1:500"), "processed");
}

#[test]
fn messages_wait_for_a_node_that_is_away_and_survive_a_restart_of_the_daemon() {
    let Some((mut alice, mut bob)) = two() else {
        return;
    };
    alice.serve();
    alice.ground.file("sum.py", "result = 1");
    // Nobody serves bob: the message waits, and one inside the node does not.
    alice.ground.run(&SEND).ok();
    let local = [
        "message",
        "send",
        "8",
        "--context",
        "7",
        "--job",
        "sum.py",
        "--wait",
    ];
    alice.ground.run(&local).ok();
    assert_eq!(alice.status("message:1:1"), "dispatched");
    let waiting = alice.ground.run(&["mesh", "peers", "--json"]).ok().json();
    assert_eq!(waiting["waiting"], 1, "{waiting}");
    bob.daemon.stop();
    bob.daemon.start_again();
    bob.serve();
    eventually("the message is processed", || {
        alice.has_processed("message:1:1")
    });
    // Both daemons lose what they have, and the supervisor of bob is killed.
    let next = alice.ground.run(&SEND).ok().stdout;
    bob.kill();
    alice.daemon.start_again();
    bob.daemon.start_again();
    bob.serve();
    eventually("the next one is processed", || {
        alice.has_processed(next.trim())
    });
    let jobs: Vec<String> = bob.plain(8).ask(&["KEYS", "job:*"]).unwrap();
    assert_eq!(jobs.len(), 2);
}

#[test]
fn a_message_that_waits_for_its_node_is_cancelled_there() {
    let Some((mut alice, mut bob)) = two() else {
        return;
    };
    alice.serve();
    alice.ground.file("sum.py", "result = 1");
    let sent = alice.ground.run(&SEND).ok().stdout;
    let (key, context) = (sent.trim(), ["--context", "7"]);
    let cancel = |more: &[&str]| {
        let args = [&["message", "cancel", key], more, &context].concat();
        alice.ground.run(&args)
    };
    assert_eq!(cancel(&[]).ok().stdout, "1:1 cancelling\n");
    // Only the other node can say that it is cancelled.
    assert_eq!(alice.status(key), "dispatched");
    bob.serve();
    let ended = cancel(&["--wait"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stdout.contains("cancelled"), "{ended:?}");
    let again = cancel(&["--json"]).ok().json();
    assert_eq!(again["outcome"], "cancelled");
    let jobs: Vec<String> = bob.plain(8).ask(&["KEYS", "job:*"]).unwrap();
    assert!(jobs.is_empty(), "{jobs:?}");
}

#[test]
fn refusals_come_back_with_a_code() {
    let Some((mut alice, mut bob)) = two() else {
        return;
    };
    alice.serve();
    bob.serve();
    bob.ground
        .run(&["context", "revoke", "8", "admin", "2"])
        .ok();
    alice.ground.file("sum.py", "result = 1");
    let sent = [&SEND[..], &["--wait"]].concat();
    let refused = alice.ground.run(&sent);
    assert_ne!(refused.code, Some(0));
    assert!(
        refused.stdout.contains("refused (forbidden)"),
        "{refused:?}"
    );
    let listed = alice.ground.run(&["message", "list", "--context", "7"]);
    assert!(listed.stdout.contains("refused (forbidden)"), "{listed:?}");
    // A node that was revoked gets nothing, and nothing is accepted from it.
    bob.ground.run(&["mesh", "revoke", "alice"]).ok();
    let listed = bob.ground.run(&["mesh", "peers"]).ok();
    assert!(listed.stdout.contains("revoked"), "{listed:?}");
    alice.ground.run(&["mesh", "revoke", "bob"]).ok();
    let sent = alice.ground.run(&SEND);
    assert!(sent.stderr.contains("is not trusted"), "{sent:?}");
}

#[test]
fn what_is_missing_is_named() {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let ground = Ground::url(server.url());
    ground.run(&["context", "create"]).ok();
    let nowhere = "http://127.0.0.1:1";
    let card = ground.run(&["mesh", "card", "--mycelium", nowhere]);
    assert!(
        card.stderr
            .contains("no Mycelium daemon answers at http://127.0.0.1:1"),
        "{card:?}"
    );
    assert!(!ground.path(".config/meshwork/node.key").exists());
    let away = ground.run(&["mesh", "card", "--mycelium", "http://192.0.2.1:8990"]);
    assert!(away.stderr.contains("on this host"), "{away:?}");
    let supervisor = ground.run(&["supervisor", "--mycelium", nowhere]);
    assert!(
        supervisor
            .stderr
            .contains("`meshwork mesh card` creates it"),
        "{supervisor:?}"
    );
    let unknown = ground.run(&["message", "send", "bob/8", "hello"]);
    assert!(
        unknown.stderr.contains("no node is known as \"bob\""),
        "{unknown:?}"
    );
    let file = ground.file("bad.card", "{}");
    let bad = ground.run(&["mesh", "trust", file.to_str().unwrap(), "--name", "bob"]);
    assert!(bad.stderr.contains("it is no card of a node"), "{bad:?}");
    // Without a daemon all else works.
    ground.run(&["message", "send", "1", "hello"]).ok();
}
