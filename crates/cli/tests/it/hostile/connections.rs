//! Connections that are many, idle or slow.

use std::io::{Read, Write};
use std::time::Duration;

use super::{Gateway, Supervisor, Target, answer, from, kept, on_both_servers};
use crate::common::http::{JSON, came, connect, get, post, text};
use crate::common::{Ground, eventually};

/// Connections that an address may have.
const A_PEER: usize = 64;

/// Connections that say nothing and such that never end their head, from the address of all others.
fn idle_and_slow_connections_shut_nobody_out<T: Target>(ground: &Ground) {
    let server = T::start(ground, &[T::REQUESTS, "8"], true);
    let address = server.address.clone();
    let token = server.token.as_str();
    let mut client = connect(&address, &kept::<T>(&address, &server.token));
    assert_eq!(answer(&mut client).status, 200);
    for number in [72, 500] {
        let crowd: Vec<_> = (0..number)
            .map(|at| connect(&address, ["", "GET /healthz HTTP/1.1\r\nho"][at % 2]))
            .collect();
        client
            .write_all(kept::<T>(&address, &server.token).as_bytes())
            .unwrap();
        assert_eq!(answer(&mut client).status, 200, "beside {number}");
        assert_eq!(
            post(&address, T::PATH, &format!("{JSON}{token}"), T::BODY).status,
            200,
            "beside {number}"
        );
        for path in ["/healthz", "/readyz"] {
            assert_eq!(get(&address, path).status, 200, "beside {number}");
            assert_eq!(
                came(from(
                    [127, 0, 0, 2],
                    &address,
                    &format!("GET {path} HTTP/1.0\r\n\r\n")
                ))
                .status,
                200
            );
        }
        drop(crowd);
    }
    server.stop();
}

/// Without a required token, neither idle connections nor slow bodies block a new connection.
fn an_open_server_is_not_shut_either<T: Target>(ground: &Ground) {
    let server = T::start(ground, &[T::REQUESTS, "8"], false);
    let address = server.address.clone();
    let whole = text(&address, T::PATH, JSON, T::BODY);
    let slow = &whole[..whole.len() - 1];
    let _crowd: Vec<_> = (0..144)
        .map(|at| connect(&address, ["", slow][at % 2]))
        .collect();
    for path in ["/healthz", "/readyz"] {
        assert_eq!(get(&address, path).status, 200);
    }
    assert_eq!(post(&address, T::PATH, JSON, T::BODY).status, 200);
    server.stop();
}

/// A burst of clients with the token is no attack: each one is answered.
fn many_clients_at_once_are_served<T: Target>(ground: &Ground) {
    let server = T::start(ground, &[], true);
    let address = server.address.clone();
    let token = server.token.as_str();
    let request = text(&address, T::PATH, &format!("{JSON}{token}"), T::BODY);
    let all: Vec<_> = (0..50).map(|_| connect(&address, &request)).collect();
    for stream in all {
        assert_eq!(came(stream).status, 200);
    }
    server.stop();
}

/// A client with a token is refused beyond its limit of connections; other clients and probes are answered.
fn an_address_has_so_many_connections<T: Target>(ground: &Ground) {
    let server = T::start(ground, &[], true);
    let address = server.address.clone();
    let token = server.token.as_str();
    let mut all: Vec<_> = (0..A_PEER)
        .map(|_| connect(&address, &kept::<T>(&address, &server.token)))
        .collect();
    for stream in &mut all {
        assert_eq!(answer(stream).status, 200);
    }
    let request = text(&address, T::PATH, &format!("{JSON}{token}"), T::BODY);
    let refused = came(connect(&address, &request));
    assert_eq!(
        (
            refused.status,
            T::code(&refused).as_str(),
            refused.header("retry-after")
        ),
        (503, "TOO_MANY_CONNECTIONS", Some("1"))
    );
    assert_eq!(get(&address, "/healthz").status, 200);
    assert_eq!(get(&address, "/readyz").status, 200);
    assert_eq!(came(from([127, 0, 0, 2], &address, &request)).status, 200);
    drop(all.pop());
    eventually("there is room", || {
        (came(connect(&address, &request)).status == 200).then_some(())
    });
    server.stop();
}

/// Every byte comes in its time, and the head does not.
fn a_head_has_to_come_in_time_as_a_whole<T: Target>(ground: &Ground) {
    let server = T::start(ground, &["--read-timeout", "0.5"], true);
    let address = server.address.clone();
    let mut slow = connect(&address, "GET /healthz HTTP/1.1\r\nx: ");
    slow.set_read_timeout(Some(Duration::from_millis(20)))
        .unwrap();
    let cut = (0..2_000).any(|_| {
        slow.write_all(b"x").is_err() || !matches!(slow.read(&mut [0]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
    });
    assert!(cut, "it may go on for 40 s");
    // So does one that goes on.
    let mut kept = connect(
        &address,
        &format!("GET /healthz HTTP/1.1\r\nhost: {address}\r\n\r\n"),
    );
    assert_eq!(answer(&mut kept).status, 200);
    assert_eq!(kept.read(&mut [0]).unwrap(), 0);
    server.stop();
}

on_both_servers! {
    idle_and_slow_connections_shut_nobody_out
    an_open_server_is_not_shut_either
    many_clients_at_once_are_served
    an_address_has_so_many_connections
    a_head_has_to_come_in_time_as_a_whole
}
