//! Commands that start while the server is away: they retry for a while and say so once. Errors that no later try
//! mends end them at once.

use std::collections::VecDeque;

use crate::common::{Ground, Running, json, wait};
use meshwork_test_servers::servers::{RealSentinels, RealServer};

const SERVER: i32 = 3;
const NOT_ENDED: i32 = 4;
/// Said once when a command begins to retry, with the default of `--connect-timeout`.
const RETRYING: &str = "retrying for up to 15 s: ";
/// Keys that a server has to load, and how long it takes over each, in microseconds: four seconds in all, which is
/// longer than a call repeats what a server refuses while it loads.
const KEYS: usize = 8000;
const PER_KEY: &str = "500";

/// The command with its own default for `--connect-timeout`.
fn start(ground: &Ground, args: &[&str]) -> Running {
    let mut command = ground.command(args);
    command.env_remove("MESHWORK_CONNECT_TIMEOUT");
    Running::start(command)
}

/// Starts the commands while nobody answers, and waits until each has said so.
fn waiting(ground: &Ground, commands: &[&[&str]], why: &str) -> VecDeque<Running> {
    let mut waiting: VecDeque<_> = commands.iter().map(|args| start(ground, args)).collect();
    for one in &mut waiting {
        let said = one.said();
        assert!(said.contains(RETRYING) && said.contains(why), "{said}");
    }
    waiting
}

/// Waits for the end of a command that has begun to retry.
fn ended(one: Running, code: i32) -> crate::common::Done {
    let done = one.ended().exits(code);
    assert!(!done.stderr.contains(RETRYING), "said twice: {done:?}");
    done
}

#[test]
fn a_server_that_is_started_later() {
    let Some(mut server) = RealServer::redis().start() else {
        return;
    };
    let ground = Ground::url(server.url());
    ground.file("a.rhai", "41 + 1");
    server.kill9();
    let commands: [&[&str]; 8] = [
        &["worker", "--json", "--type", "osis"],
        &["service", "--name", "demo", "--handler", "demo.x=a.rhai"],
        &["run", "a.rhai", "--json"],
        &["job", "submit", "a.rhai"],
        &["job", "list", "--json"],
        &["bananas", "submit", "count"],
        &["action", "send", "demo.x"],
        &["action", "call", "other.x", "--wait", "0.1"],
    ];
    let mut waiting = waiting(&ground, &commands, "no answer");
    server.start_again();
    let mut worker = waiting.pop_front().unwrap();
    assert_eq!(json(&worker.line())["event"], "listening");
    let service = waiting.pop_front().unwrap();
    let run = ended(waiting.pop_front().unwrap(), 0);
    assert_eq!(run.json()["output"], 42, "stdout is JSON alone");
    ended(waiting.pop_back().unwrap(), NOT_ENDED);
    for one in waiting {
        ended(one, 0);
    }
    worker.stop();
    drop(service);
}

#[test]
fn a_server_that_is_killed_and_loads_for_a_while() {
    let options = RealServer::redis().append_only();
    let Some(mut server) = options.args(&["--key-load-delay", PER_KEY]).start() else {
        return;
    };
    let fill = format!("for i = 1, {KEYS} do redis.call('SET', 'filler:' .. i, i) end");
    server.say::<()>(&["EVAL", &fill, "0"]).unwrap();
    let ground = Ground::url(server.url());
    ground.file("a.rhai", "41 + 1");
    let before = ground.run(&["job", "submit", "a.rhai"]).ok().stdout;
    server.kill9();
    let commands: [&[&str]; 2] = [
        &["job", "submit", "a.rhai"],
        &["job", "status", before.trim()],
    ];
    let waiting = waiting(&ground, &commands, "no answer");
    server.start_again();
    for one in waiting {
        ended(one, 0);
    }
}

#[test]
fn a_failover() {
    let Some(mut sentinels) = wait(RealSentinels::start(RealServer::redis(), None)) else {
        return;
    };
    let ground = Ground::url(sentinels.url(""));
    ground.file("a.rhai", "41 + 1");
    sentinels.server_mut(0).kill9();
    let waiting = waiting(&ground, &[&["job", "submit", "a.rhai"][..]; 5], "");
    for one in waiting {
        ended(one, 0);
    }
    assert_eq!(ground.jobs().len(), 5);
}

#[test]
fn a_note_for_machines_is_json() {
    let ground = Ground::url("redis://127.0.0.1:1");
    let args = [
        "job",
        "list",
        "--json",
        "--log-format",
        "json",
        "--connect-timeout",
        "0.1",
    ];
    let done = start(&ground, &args).ended().exits(SERVER);
    let lines: Vec<_> = done.stderr.lines().map(json).collect();
    let levels: Vec<_> = lines
        .iter()
        .map(|line| line["level"].as_str().unwrap())
        .collect();
    assert_eq!(levels, ["INFO", "ERROR"], "{done:?}");
    assert_eq!(done.stdout, "");
}

#[test]
fn a_server_that_stays_away() {
    // Nobody listens to a port that was just free.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let ground = Ground::url(format!("redis://{address}"));
    for (patience, retries) in [("0.5", true), ("0", false)] {
        let done = start(&ground, &["job", "list", "--connect-timeout", patience]).ended();
        let done = done.exits(SERVER);
        let said = done.stderr.contains("retrying for up to 500 ms: ");
        assert_eq!(said, retries, "{done:?}");
        assert!(done.stderr.contains("error: no answer from"), "{done:?}");
    }
    let done = start(&ground, &["doctor"]).ended().exits(SERVER);
    assert!(!done.stderr.contains("retrying"), "{done:?}");
    let done = start(&ground, &["job", "list", "--connect-timeout", "-1"]).ended();
    assert!(done.exits(2).stderr.contains("--connect-timeout"));
}

#[test]
fn errors_that_no_later_try_mends() {
    let Some(server) = RealServer::redis().password("geheim").tls().start() else {
        return;
    };
    let tls = server.tls_files().unwrap();
    let ca = ["--tls-ca", tls.ca.to_str().unwrap()];
    let (cert, key) = (
        tls.client_cert.to_str().unwrap(),
        tls.client_key.to_str().unwrap(),
    );
    let all = [&ca[..], &["--tls-cert", cert, "--tls-key", key]].concat();
    let wrong = server.url().replace("geheim", "falsch");
    for (url, files, words) in [
        (wrong, &all[..], "refuses the credentials"),
        (server.url_of(9999), &all, "no such database"),
        (server.url(), &[], "certificate"),
        (server.url(), &ca, "ertificate"),
        ("redis://".to_owned(), &[], "redis://"),
    ] {
        let args = [&["job", "list"], files].concat();
        let done = start(&Ground::url(url), &args).ended();
        assert_ne!(done.code, Some(0), "{done:?}");
        assert!(done.stderr.contains(words), "{words}: {done:?}");
        assert!(!done.stderr.contains("retrying"), "{done:?}");
    }
}
