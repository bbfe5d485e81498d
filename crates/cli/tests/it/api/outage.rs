//! The API without its store, and a supervisor that is killed.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use meshwork_test_servers::servers::RealServer;
use serde_json::{Value, json};

use super::socket::{open, open_at};
use super::sse::Events;
use super::{Server, bearer};
use crate::common::http::JSON;
use crate::common::{BOUND, Ground, eventually, json as parsed, on_all_data};

/// Time in which a call is refused while the store is away: a second, and one more for a busy host.
const REFUSED_WITHIN: Duration = Duration::from_secs(2);
/// Time in which a call ends while the store is frozen: 1.6 s, and more for a busy host.
const ENDED_WITHIN: Duration = Duration::from_secs(4);
/// Jobs that are created while the supervisor is killed; another number is set by `MESHWORK_API_JOBS`.
const JOBS: usize = 200;
const KILLS: usize = 5;
const CLIENTS: usize = 4;

#[test]
fn an_absent_store_is_told_and_all_goes_on_when_it_returns() {
    let Some(mut redis) = RealServer::redis().append_only().start() else {
        return;
    };
    let ground = Ground::url(redis.url());
    let server = Server::open(&ground);
    let api = server.api.clone();
    let create = |id: &str| {
        let body = json!({"type": "osis", "script": "1", "id": id});
        api.rest("POST", "/v1/jobs", &body)
    };
    let status = |path: &str| api.send("GET", path, "", "").status;
    let mut events = Events::open(&server, "/v1/events?queue=osis", "");
    let mut socket = open(&server);
    socket.subscribe(&json!({"topic": "events"}));
    assert_eq!(create("o-1").0, 201);
    events.until("o-1", "enqueue");
    socket.until("o-1", "enqueue");
    redis.kill9();
    let job = json!({"type": "osis", "script": "1", "id": "o-2"}).to_string();
    let waits = json!({"type": "osis", "script": "1", "id": "o-2", "wait": "5m"}).to_string();
    // Three times: the connection is found lost, opened again, and given up.
    for _ in 0..3 {
        for (verb, path, body) in [
            ("POST", "/v1/jobs", job.as_str()),
            ("POST", "/v1/jobs", &waits),
            ("GET", "/v1/jobs/o-1", ""),
            ("GET", "/v1/jobs/o-1/result?wait=5m", ""),
            ("GET", "/v1/jobs?limit=1000", ""),
            ("GET", "/v1/queues", ""),
            ("GET", "/v1/events", ""),
            ("GET", "/v1/jobs/o-1/logs?follow=true", ""),
        ] {
            let began = Instant::now();
            let answer = api.send(verb, path, "", body);
            let took = began.elapsed();
            // What was read before the absence is answered from memory.
            if path == "/v1/queues" && answer.status == 200 {
                continue;
            }
            let code = answer.json()["code"].clone();
            assert_eq!(
                (answer.status, code),
                (503, json!("storage_error")),
                "{path}"
            );
            assert_eq!(answer.header("retry-after"), Some("1"), "{path}");
            assert!(took < REFUSED_WITHIN, "{path}: {took:?}");
        }
        let second = Instant::now();
        for (method, params) in [
            ("job.get", json!({"id": "o-1"})),
            ("get_job_output", json!(["o-1"])),
        ] {
            let error = api.rpc(method, &params, "")["error"]["code"].clone();
            assert_eq!(error, -32009, "{method}");
        }
        assert!(second.elapsed() < 2 * REFUSED_WITHIN);
    }
    eventually("it is not ready", || {
        (status("/readyz") == 503).then_some(())
    });
    assert_eq!(status("/healthz"), 200);
    redis.start_again();
    eventually("it is ready", || (status("/readyz") == 200).then_some(()));
    eventually("jobs are created", || {
        (create("o-2").0 == 201).then_some(())
    });
    events.until("o-2", "enqueue");
    socket.until("o-2", "enqueue");
    server.stop();
}

/// A frozen store keeps its connections, and answers nothing.
#[test]
fn a_frozen_or_killed_store_ends_calls_of_an_actor_in_time() {
    let Some(mut redis) = RealServer::redis().append_only().start() else {
        return;
    };
    let ground = Ground::url(redis.url());
    ground.run(&["context", "create"]).ok();
    ground
        .run(&["actor", "grant-node", "1", "--scope", "user"])
        .ok();
    let made = ground.run(&["key", "create", "mine", "--scope", "user", "--actor", "1"]);
    let key = bearer(made.ok().stdout.trim());
    let server = Server::start(&ground, &[]);
    let job = json!({"type": "osis", "script": "1", "id": "f-1"}).to_string();
    assert_eq!(server.send("POST", "/v1/jobs", &key, &job).status, 201);
    let mut socket = open_at(&server, "rpc", &key).unwrap();
    let rpc = |method: &str, params: Value| {
        json!({"jsonrpc": "2.0", "method": method, "params": params, "id": 1}).to_string()
    };
    let calls = [
        ("GET", "/v1/jobs/f-1", String::new()),
        ("POST", "/v1/jobs", job),
        ("GET", "/v1/jobs/f-1/result?wait=5m", String::new()),
        ("GET", "/v1/jobs/f-1/logs?follow=true", String::new()),
        ("GET", "/v1/events", String::new()),
        ("GET", "/v1/contexts", String::new()),
        ("GET", "/metrics", String::new()),
        ("POST", "/rpc", rpc("get_job_output", json!(["f-1"]))),
        ("POST", "/rpc", rpc("job.get", json!({"id": "f-1"}))),
    ];
    let api = server.api.clone();
    for is_killed in [false, true] {
        match is_killed {
            false => redis.pause(),
            true => redis.kill9(),
        }
        // What was read a moment ago, such as the key, is known in the first round.
        for round in 0..2 {
            let ends = &|verb: &str, path: &str, body: &str| {
                let began = Instant::now();
                let answer = api.send(verb, path, &key, body);
                let took = began.elapsed();
                let is_refused = match path {
                    // An error of a call by JSON-RPC is an answer.
                    "/rpc" if answer.status == 200 => answer.json()["error"]["code"] == -32009,
                    // The key is known, and the page has what needs no store.
                    "/metrics" if answer.status == 200 => {
                        answer.body.contains("meshwork_store_up 0")
                    }
                    _ => answer.status == 503 && answer.header("retry-after") == Some("1"),
                };
                let came = format!("{round} {path} {body}: {} {}", answer.status, answer.body);
                assert!(is_refused && took < ENDED_WITHIN, "{took:?} {came}");
            };
            // More at once than an address may have connections without a key.
            thread::scope(|scope| {
                for (verb, path, body) in &calls {
                    scope.spawn(move || ends(verb, path, body));
                }
            });
            let began = Instant::now();
            let refused = socket.call("subscribe", &json!({"topic": "log:f-1"}));
            assert_eq!(refused["error"]["code"], -32009, "{refused}");
            assert!(began.elapsed() < ENDED_WITHIN, "{:?}", began.elapsed());
        }
        match is_killed {
            false => redis.resume(),
            true => redis.start_again(),
        }
        eventually("jobs are read", || {
            (server.send("GET", "/v1/jobs/f-1", &key, "").status == 200).then_some(())
        });
    }
    server.stop();
}

/// Sends a creation; none if the supervisor is gone before it has answered.
fn try_create(address: &str, key: &str) -> Option<String> {
    let body = json!({"type": "osis", "script": "1"}).to_string();
    let length = body.len();
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(BOUND)).ok()?;
    let request = format!(
        "POST /v1/jobs HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{JSON}idempotency-key: {key}\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    assert!(head.starts_with("HTTP/1.1 201"), "{answer}");
    Some(parsed(body)["id"].as_str().unwrap().to_owned())
}

on_all_data! {
    /// The client repeats a creation with the same key until it has an answer.
    fn each_job_exists_once_although_the_supervisor_is_killed(ground: &Ground) {
        let jobs = std::env::var("MESHWORK_API_JOBS").map_or(JOBS, |text| text.parse().unwrap());
        let server = Mutex::new(Some(Server::open(ground)));
        let address = Mutex::new(server.lock().unwrap().as_ref().unwrap().address.clone());
        let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let ids = Mutex::new(BTreeMap::new());
        thread::scope(|scope| {
            for _ in 0..CLIENTS {
                scope.spawn(|| loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= jobs {
                        return;
                    }
                    let id = eventually("the job is created", || {
                        let address = address.lock().unwrap().clone();
                        try_create(&address, &format!("k-{number}"))
                    });
                    ids.lock().unwrap().insert(number, id);
                    done.fetch_add(1, Ordering::Relaxed);
                });
            }
            for kill in 1..=KILLS {
                eventually("some are created", || {
                    (done.load(Ordering::Relaxed) >= jobs * kill / (KILLS + 1)).then_some(())
                });
                server.lock().unwrap().take().unwrap().running.kill();
                let again = Server::open(ground);
                address.lock().unwrap().clone_from(&again.address);
                *server.lock().unwrap() = Some(again);
            }
        });
        let ids = ids.into_inner().unwrap();
        let mut expected: Vec<_> = ids.into_values().collect();
        expected.sort();
        let list = ground.run(&["job", "list", "--json", "--limit", "20000"]).ok().jsons();
        let mut stored: Vec<_> = list.iter().map(|job| job["id"].as_str().unwrap().to_owned()).collect();
        stored.sort();
        assert_eq!((stored.len(), stored), (jobs, expected));
        server.into_inner().unwrap().unwrap().stop();
    }
}
