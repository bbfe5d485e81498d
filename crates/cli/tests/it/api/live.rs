//! Events and logs while they come.

use std::collections::BTreeSet;
use std::io::Write;
use std::net::TcpStream;

use meshwork_model::job::NewJob;
use meshwork_model::route::Route;
use meshwork_test_servers::servers::RealServer;
use serde_json::json;

use super::sse::{Event, Events, narrow, refused, request};
use super::{Server, bearer};
use crate::common::{Ground, claimed, eventually, on_all_data, wait};

fn create(server: &Server, id: &str) {
    let body = json!({"type": "osis", "script": "1", "id": id});
    assert_eq!(server.rest("POST", "/v1/jobs", &body).0, 201, "{id}");
}

fn cancel(server: &Server, id: &str) {
    let path = format!("/v1/jobs/{id}/cancel");
    assert_eq!(server.rest("POST", &path, &json!({})).0, 200, "{id}");
}

fn ids(events: &[Event]) -> Vec<String> {
    events.iter().map(|event| event.id.clone()).collect()
}

on_all_data! {
    fn events_are_streamed_and_resumed(ground: &Ground) {
        let server = Server::open(ground);
        create(&server, "before");
        let mut of_job = Events::open(&server, "/v1/events?job=e-1", "");
        let mut all = Events::open(&server, "/v1/events", "");
        create(&server, "e-1");
        create(&server, "e-2");
        cancel(&server, "e-1");
        let of_job = of_job.until("e-1", "error");
        assert!(of_job.iter().all(|event| event.kind == "event" && event.data["job"] == "e-1"));
        let all = all.until("e-1", "error");
        assert!(all.iter().any(|event| event.data["job"] == "e-2"), "{all:?}");
        assert!(all.iter().all(|event| event.data["job"] != "before"), "{all:?}");
        // The same as without a stream, also page by page.
        let page = |query: &str| server.rest("GET", &format!("/v1/jobs/e-1/events{query}"), &json!({})).1;
        let stored: Vec<_> = page("")["events"].as_array().unwrap().iter().map(|it| it["event"].clone()).collect();
        assert_eq!(stored, of_job.iter().map(|it| it.data["event"].clone()).collect::<Vec<_>>());
        let first = page("?after=0&limit=1");
        assert_eq!((&first["events"][0]["id"], &first["more"]), (&json!(of_job[0].id), &json!(true)));
        let rest = page(&format!("?after={}", first["last"].as_str().unwrap()));
        assert_eq!((rest["events"].as_array().unwrap().len(), &rest["more"]), (of_job.len() - 1, &json!(false)));
        // From the beginning, for a queue; and from where a client was.
        let mut of_queue = Events::open(&server, "/v1/events?queue=osis&from=0", "");
        let of_queue = of_queue.until("e-1", "error");
        assert_eq!(of_queue[0].data["job"], "before");
        assert_eq!(of_queue[0].data["queue"], "osis");
        assert_eq!(ids(&of_queue[of_queue.len() - all.len()..]), ids(&all));
        for at in 0..all.len() - 1 {
            let last = format!("last-event-id: {}\r\n", all[at].id);
            let rest = Events::open(&server, "/v1/events?from=0", &last).until("e-1", "error");
            assert_eq!(ids(&rest), ids(&all[at + 1..]), "after {}", all[at].id);
        }
        for query in ["from=x", "job=a&queue=b", "job=a&job=b", "colour=red", "queue=o+s", "flow=x"] {
            assert_eq!(refused(&server, &format!("/v1/events?{query}"), ""), 400, "{query}");
        }
        server.stop();
    }

    fn a_log_is_streamed_to_its_end(ground: &Ground) {
        let server = Server::open(ground);
        create(&server, "l-1");
        let worker = ground.broker();
        let taken = claimed(&worker);
        let print = |stream: &str, line: &str| {
            wait(worker.log(&taken, &[(stream, line.as_bytes())], None)).unwrap();
        };
        print("stdout", "one");
        let path = "/v1/jobs/l-1/logs?follow=true";
        let mut followers = [Events::open(&server, path, ""), Events::open(&server, path, "")];
        let first = followers[0].next();
        assert_eq!((first.kind.as_str(), &first.data["line"]), ("line", &json!("one")));
        print("stderr", "two");
        let second = followers[0].next();
        assert_eq!((&second.data["line"], &second.data["stream"]), (&json!("two"), &json!("stderr")));
        wait(worker.complete(&taken, b"4", b"one\n", b"two\n")).unwrap();
        assert_eq!(followers[0].next().kind, "end");
        assert!(followers[0].try_next().is_none());
        assert_eq!([followers[1].next(), followers[1].next()], [first.clone(), second.clone()]);
        assert_eq!(followers[1].next().kind, "end");
        // After its end, and from a line on.
        let mut rest = Events::open(&server, &format!("{path}&after={}", first.id), "");
        assert_eq!((rest.next(), rest.next().kind), (second, "end".to_owned()));
        let (_, page) = server.rest("GET", &format!("/v1/jobs/l-1/logs?limit=1&after={}", first.id), &json!({}));
        assert_eq!(page["lines"][0]["line"], "two");
        let (_, whole) = server.rest("GET", "/v1/jobs/l-1/logs?follow=false", &json!({}));
        assert_eq!(whole["lines"].as_array().unwrap().len(), 2);
        assert_eq!(refused(&server, "/v1/jobs/none/logs?follow=true", ""), 404);
        assert_eq!(refused(&server, "/v1/jobs/l-1/logs?follow=perhaps", ""), 400);
        assert_eq!(refused(&server, "/v1/jobs/l-1/logs?follow=true&limit=1", ""), 400);
        server.stop();
    }

    fn a_stream_needs_a_key_and_ends_with_it(ground: &Ground) {
        let key = |name: &str, scope: &str| ground.run(&["key", "create", name, "--scope", scope]).ok().stdout.trim().to_owned();
        let (root, viewer) = (key("root", "admin"), key("viewer", "viewer"));
        let server = Server::start(ground, &[]);
        assert_eq!(refused(&server, "/v1/events", ""), 401);
        assert_eq!(refused(&server, "/v1/jobs/x/logs?follow=true", ""), 401);
        let mut stream = Events::open(&server, "/v1/events", &bearer(&viewer));
        let mut other = Events::open(&server, "/v1/events", &bearer(&root));
        ground.run(&["key", "revoke", "viewer"]).ok();
        let closed = stream.next();
        assert_eq!(closed.kind, "closed");
        assert!(closed.data["reason"].as_str().unwrap().contains("revoked"), "{closed:?}");
        assert!(stream.try_next().is_none());
let body = json!({"type": "osis", "script": "1", "id": "k-1"}).to_string();
        assert_eq!(server.send("POST", "/v1/jobs", &bearer(&root), &body).status, 201);
        assert_eq!(other.next().data["job"], "k-1");
        // A server that stops tells its clients, and does not wait for them.
        server.stop();
        assert_eq!(other.next().kind, "closed");
    }
}

#[test]
fn an_id_that_is_no_longer_stored_gets_a_gap_first() {
    let Some(ground) = Ground::redis() else {
        return;
    };
    let server = Server::open(&ground);
    create(&server, "g-1");
    let first = Events::open(&server, "/v1/events?from=0", "").next();
    create(&server, "g-2");
    cancel(&server, "g-1");
    let stream = ground.broker().keys().events();
    ground.raw(&format!("XTRIM {stream} MAXLEN 1"));
    let mut resumed = Events::open(&server, &format!("/v1/events?from={}", first.id), "");
    assert_eq!(resumed.next().kind, "gap");
    assert_eq!(resumed.next().data["job"], "g-1");
    // An id of another store.
    let mut foreign = Events::open(&server, "/v1/events?from=99999999999999-0", "");
    assert_eq!(
        (
            foreign.next().kind.as_str(),
            foreign.next().data["job"].as_str()
        ),
        ("gap", Some("g-1"))
    );
    // The store is emptied while a client listens.
    ground.raw("FLUSHDB");
    create(&server, "g-3");
    resumed.until("g-3", "enqueue");
    server.stop();
}

/// A subscriber with a small buffer, so that it is soon behind.
fn lazy(server: &Server, path: &str, headers: &str) -> TcpStream {
    let mut stream = narrow(&server.address);
    stream
        .write_all(request(server, path, headers).as_bytes())
        .unwrap();
    stream
}

fn job(number: usize) -> NewJob {
    let id = format!("f-{number}").parse().unwrap();
    NewJob::new(id, Route::to("osis".parse().unwrap()), "1")
}

#[test]
fn who_reads_nothing_is_closed_and_resumes_without_a_gap() {
    const MANY: usize = 20_000;
    // Half of what a subscriber may be behind, so that no pause of this process closes the one that reads.
    const PORTION: usize = 500;
    let Some(ground) = Ground::redis() else {
        return;
    };
    let server = Server::open(&ground);
    let slow = lazy(&server, "/v1/events", "");
    // It is subscribed when its head has come; it reads no more than that.
    let mut slow = Events::over(slow);
    let mut healthy = Events::open(&server, "/v1/events", "");
    let (broker, mut expected) = (ground.broker(), Vec::with_capacity(MANY));
    for first in (0..MANY).step_by(PORTION) {
        let jobs: Vec<_> = (first..first + PORTION).map(job).collect();
        wait(broker.enqueue(&jobs)).unwrap();
        expected.extend((0..PORTION).map(|_| healthy.next().id));
    }
    let (mut seen, mut last) = (Vec::new(), None);
    while let Some(event) = slow.try_next() {
        match event.kind.as_str() {
            "event" => seen.push(event.id),
            "closed" => last = event.data["last"].as_str().map(str::to_owned),
            kind => panic!("{kind}"),
        }
    }
    assert!(seen.len() < MANY, "it was not closed");
    if let Some(last) = last {
        assert_eq!(seen.last(), Some(&last));
    }
    let id = seen.last().cloned().unwrap();
    let mut resumed = Events::open(&server, "/v1/events", &format!("last-event-id: {id}\r\n"));
    while seen.len() < MANY {
        let event = resumed.next();
        assert_eq!(event.kind, "event");
        seen.push(event.id);
    }
    assert_eq!(seen, expected);
    assert_eq!(
        BTreeSet::from_iter(&seen).len(),
        MANY,
        "each event has an id of its own"
    );
    server.stop();
}

#[test]
fn a_thousand_subscribers_need_one_connection_to_the_store() {
    const MANY: usize = 1000;
    let Some(redis) = RealServer::redis().start() else {
        return;
    };
    let ground = Ground::url(redis.url());
    let server = Server::start(
        &ground,
        &["--insecure-no-auth", "--peer-connections", "2000"],
    );
    let connections = || {
        redis
            .info("connected_clients")
            .unwrap()
            .parse::<usize>()
            .unwrap()
    };
    let idle = connections();
    let open = || Events::open(&server, "/v1/events?job=m-1", "");
    let mut first = open();
    let with_one = eventually("one reads", || {
        Some(connections()).filter(|count| *count > idle)
    });
    let mut others: Vec<_> = (1..MANY).map(|_| open()).collect();
    assert_eq!(connections(), with_one);
    create(&server, "m-1");
    cancel(&server, "m-1");
    let expected = first.until("m-1", "error");
    for other in &mut others {
        assert_eq!(other.until("m-1", "error"), expected);
    }
    drop((first, others));
    // Nobody listens.
    eventually("the reader has ended", || {
        (connections() <= idle).then_some(())
    });
    server.stop();
}
