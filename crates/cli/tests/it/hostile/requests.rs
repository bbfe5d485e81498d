//! Requests that browsers or proxies are misused for, and bodies that take up room.

use std::io::{Read, Write};

use super::{Gateway, Supervisor, Target, answer, on_both_servers};
use crate::common::http::{Came, JSON, came, connect, post, text};
use crate::common::{Ground, eventually};

/// Options under which another name and another origin are right.
const ALLOWED: [&str; 4] = [
    "--allow-host",
    "api.example",
    "--allow-origin",
    "https://app.example",
];

/// Sends the request with these headers.
fn send<T: Target>(address: &str, target: &str, version: &str, headers: &str) -> Came {
    let (length, body) = (T::BODY.len(), T::BODY);
    let text = format!(
        "POST {target} HTTP/{version}\r\nconnection: close\r\n{JSON}{headers}content-length: {length}\r\n\r\n{body}"
    );
    came(connect(address, &text))
}

/// Headers that are refused, with the codes.
fn foreign(address: &str) -> Vec<(String, &'static str)> {
    let port = address.rsplit_once(':').unwrap().1;
    let host = format!("host: {address}\r\n");
    let hosts = [
        format!("evil.example:{port}"),
        format!("localhost.evil.example:{port}"),
        "localhost:1".to_owned(),
        "localhost".to_owned(),
        format!("[::2]:{port}"),
    ];
    let broken = [
        format!("host: localhost:{port}@evil.example\r\n"),
        format!("{host}host: evil.example\r\n"),
        "host: \r\n".to_owned(),
        String::new(),
    ];
    let origins = [
        "http://evil.example".to_owned(),
        format!("http://localhost:{port}"),
        "null".to_owned(),
        format!("http://{address}\r\norigin: http://evil.example"),
        "http://app.example".to_owned(),
    ];
    let hosts = hosts.map(|name| (format!("host: {name}\r\n"), "HOST_NOT_ALLOWED"));
    let origins =
        origins.map(|origin| (format!("{host}origin: {origin}\r\n"), "ORIGIN_NOT_ALLOWED"));
    let broken = broken.map(|headers| (headers, "BAD_HOST"));
    hosts.into_iter().chain(broken).chain(origins).collect()
}

fn a_page_of_another_host_is_refused<T: Target>(ground: &Ground) {
    let server = T::start(ground, &ALLOWED, false);
    let address = server.address.clone();
    let port = address.rsplit_once(':').unwrap().1;
    let host = format!("host: {address}\r\n");
    for headers in [
        host.clone(),
        format!("host: LocalHost:{port}\r\n"),
        format!("host: localhost.:{port}\r\n"),
        format!("host: [::1]:{port}\r\n"),
        "host: api.example\r\norigin: https://api.example\r\n".to_owned(),
        "host: API.example.:8443\r\n".to_owned(),
        format!("{host}origin: http://{address}\r\n"),
        format!("{host}origin: https://app.example\r\n"),
        format!("{host}origin: HTTPS://App.Example:443\r\n"),
    ] {
        let came = send::<T>(&address, T::PATH, "1.1", &headers);
        assert_eq!(came.status, 200, "{headers}");
        assert!(came.body.contains(T::ANSWER), "{headers}: {}", came.body);
    }
    for (headers, code) in foreign(&address) {
        let came = send::<T>(&address, T::PATH, "1.1", &headers);
        let status = if code == "BAD_HOST" { 400 } else { 403 };
        let found = (came.status, T::code(&came));
        assert_eq!(found, (status, code.to_owned()), "{headers}: {}", came.body);
    }
    server.stop();
}

/// The target in its absolute form says the host too.
fn the_target_names_the_host_too<T: Target>(ground: &Ground) {
    let server = T::start(ground, &ALLOWED, false);
    let (address, path) = (server.address.clone(), T::PATH);
    let host = format!("host: {address}\r\n");
    let absolute = |host: &str| format!("http://{host}{path}");
    let own = send::<T>(&address, &absolute(&address), "1.1", &host);
    assert_eq!(own.status, 200);
    for (target, headers) in [
        (absolute("evil.example"), host.as_str()),
        (absolute(&address), "host: evil.example\r\n"),
    ] {
        let refused = send::<T>(&address, &target, "1.1", headers);
        let found = (refused.status, T::code(&refused));
        assert_eq!(found, (403, "HOST_NOT_ALLOWED".to_owned()), "{target}");
    }
    // No browser says HTTP/1.0; a load balancer does, and gives no host.
    let old = send::<T>(&address, T::PATH, "1.0", "");
    assert_eq!(T::code(&old), "BAD_HOST");
    let probe = |text: &str| came(connect(&address, text));
    assert_eq!(probe("GET /healthz HTTP/1.0\r\n\r\n").status, 200);
    let foreign = probe("GET /healthz HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n");
    assert_eq!(T::code(&foreign), "HOST_NOT_ALLOWED");
    server.stop();
}

/// A page whose origin is allowed may ask what it may send, and may read the answer.
fn an_allowed_origin_reads_the_answer<T: Target>(ground: &Ground) {
    let server = T::start(ground, &["--allow-origin", "https://app.example"], true);
    let address = server.address.clone();
    let path = T::PATH;
    let ask = |origin: &str| {
        let text = format!(
            "OPTIONS {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\norigin: {origin}\r\naccess-control-request-method: POST\r\n\r\n"
        );
        came(connect(&address, &text))
    };
    let response = ask("https://app.example");
    assert_eq!(
        (
            response.status,
            response.header("access-control-allow-origin")
        ),
        (204, Some("https://app.example"))
    );
    assert!(
        response
            .header("access-control-allow-headers")
            .unwrap()
            .contains("authorization")
    );
    assert_eq!(ask("https://evil.example").status, 403);
    let refused = post(
        &address,
        T::PATH,
        &format!("{JSON}origin: https://app.example\r\n"),
        T::BODY,
    );
    assert_eq!(
        (
            refused.status,
            refused.header("access-control-allow-origin")
        ),
        (T::NO_TOKEN, Some("https://app.example"))
    );
    server.stop();
}

fn a_request_with_two_lengths_is_refused<T: Target>(ground: &Ground) {
    let server = T::start(ground, &[], false);
    let address = server.address.clone();
    let (path, body) = (T::PATH, T::BODY);
    let chunked = format!("{:x}\r\n{body}\r\n0\r\n\r\n", T::BODY.len());
    let head = format!("POST {path} HTTP/1.1\r\nhost: {address}\r\n{JSON}");
    let length = format!("content-length: {}\r\n", chunked.len());
    let coded = "transfer-encoding: chunked\r\n";
    for lengths in [format!("{length}{coded}"), format!("{coded}{length}")] {
        let came = came(connect(&address, &format!("{head}{lengths}\r\n{chunked}")));
        assert_eq!(came.status, 400, "{}", came.body);
        assert_eq!(T::code(&came), "TWO_LENGTHS");
        assert_eq!(came.header("connection"), Some("close"));
    }
    // A request that is hidden behind a body is never seen.
    let hidden =
        format!("{head}{coded}\r\n{chunked}GET /healthz HTTP/1.1\r\nhost: {address}\r\n\r\n");
    let mut stream = connect(&address, &hidden);
    let mut answers = String::new();
    stream.read_to_string(&mut answers).ok();
    assert_eq!(answers.matches("HTTP/1.1").count(), 1, "{answers}");
    assert!(answers.starts_with("HTTP/1.1 200"), "{answers}");
    server.stop();
}

fn bodies_are_bounded_together<T: Target>(ground: &Ground) {
    const MIB: usize = 1024 * 1024;
    let server = T::start(ground, &["--max-body", "67108864"], false);
    let address = server.address.clone();
    let path = T::PATH;
    let head = |length: usize| {
        format!(
            "POST {path} HTTP/1.1\r\nhost: {address}\r\n{JSON}content-length: {length}\r\nconnection: close\r\n\r\n"
        )
    };
    let mut first = connect(&address, &head(40 * MIB));
    first.write_all(&vec![b' '; 40 * MIB - 1]).unwrap();
    eventually("there is no room for both", || {
        let mut second = connect(&address, &head(30 * MIB));
        // It is refused before all of it is there.
        second.write_all(&vec![b' '; 30 * MIB]).ok();
        let came = came(second);
        (came.status == 503 && T::code(&came) == "TOO_MANY_BODIES").then_some(())
    });
    first.write_all(b"x").unwrap();
    assert_eq!(T::code(&came(first)), T::NO_JSON);
    let mut third = connect(&address, &head(30 * MIB));
    third.write_all(&vec![b' '; 30 * MIB]).unwrap();
    assert_eq!(T::code(&came(third)), T::NO_JSON);
    server.stop();
}

fn a_slow_body_holds_no_slot<T: Target>(ground: &Ground) {
    let server = T::start(ground, &[T::REQUESTS, "1"], false);
    let address = server.address.clone();
    let whole = text(
        &address,
        T::PATH,
        &format!("{JSON}expect: 100-continue\r\n"),
        T::BODY,
    );
    let mut slow = connect(&address, &whole[..whole.len() - T::BODY.len()]);
    // The refusal comes when the body is read.
    assert_eq!(answer(&mut slow).status, 100);
    slow.write_all(&T::BODY.as_bytes()[..1]).unwrap();
    let other = post(&address, T::PATH, JSON, T::BODY);
    assert_eq!(other.status, 200, "{}", other.body);
    slow.write_all(&T::BODY.as_bytes()[1..]).unwrap();
    assert_eq!(answer(&mut slow).status, 200);
    server.stop();
}

fn a_body_with_a_coding_is_refused_by_name<T: Target>(ground: &Ground) {
    let server = T::start(ground, &[], false);
    let gzip = format!("{JSON}content-encoding: gzip\r\n");
    let came = post(&server.address, T::PATH, &gzip, T::BODY);
    assert_eq!(came.status, 415, "{}", came.body);
    assert!(came.body.contains("gzip"), "{}", came.body);
    let plain = format!("{JSON}content-encoding: identity\r\n");
    assert_eq!(post(&server.address, T::PATH, &plain, T::BODY).status, 200);
    server.stop();
}

on_both_servers! {
    a_body_with_a_coding_is_refused_by_name
    a_page_of_another_host_is_refused
    the_target_names_the_host_too
    an_allowed_origin_reads_the_answer
    a_request_with_two_lengths_is_refused
    bodies_are_bounded_together
    a_slow_body_holds_no_slot
}
