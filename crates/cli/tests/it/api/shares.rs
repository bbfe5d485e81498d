//! Shares of the API: a greedy caller, or a stranger, takes nothing from its neighbours.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Instant;

use meshwork::context::{Node, new_key};
use serde_json::{Value, json};
use tungstenite::protocol::frame::coding::CloseCode;

use super::socket::{Socket, handshake, open_at, try_open};
use super::sse::narrow;
use super::{Server, bearer};
use crate::common::http::came;
use crate::common::{BOUND, Ground, eventually, on_all_data, wait};

/// Connections of one address, for tests in which it has those of many clients.
const MANY: [&str; 2] = ["--peer-connections", "2000"];
/// Places for sockets without a login.
const ANONYMOUS: usize = 128;

fn key(ground: &Ground, name: &str) -> String {
    let made = ground.run(&["key", "create", name, "--scope", "user"]).ok();
    made.stdout.trim().to_owned()
}

fn status(server: &Server, headers: &str) -> u16 {
    server.send("GET", "/v1/system", headers, "").status
}

/// A request of JSON-RPC.
fn call(method: &str, params: &Value, id: usize) -> String {
    json!({"jsonrpc": "2.0", "method": method, "params": params, "id": id}).to_string()
}

on_all_data! {
    fn a_caller_with_many_waiting_calls_leaves_room_for_others(ground: &Ground) {
        let (greedy, neighbour) = (key(ground, "greedy"), key(ground, "neighbour"));
        let server = Server::start(ground, &MANY);
        let later = json!({"type": "osis", "script": "1", "id": "later", "delay": "1h"}).to_string();
        assert_eq!(server.send("POST", "/v1/jobs", &bearer(&greedy), &later).status, 201);
        let mut sockets: Vec<Socket<TcpStream>> = (0..66)
            .map(|_| try_open(&server, &bearer(&greedy)).ok().unwrap())
            .collect();
        for socket in &mut sockets {
            for id in 0..16 {
                socket.send(&call("job.result", &json!({"id": "later", "wait": "5m"}), id));
            }
        }
        // The calls beyond its share are refused, and wait nowhere.
        eventually("its share is taken", || (status(&server, &bearer(&greedy)) == 429).then_some(()));
        let mut other = try_open(&server, &bearer(&neighbour)).ok().unwrap();
        for _ in 0..20 {
            assert_eq!(status(&server, &bearer(&neighbour)), 200);
            assert!(other.call("system.info", &json!({}))["result"].is_object());
        }
        assert_eq!(status(&server, &bearer(&greedy)), 429);
        drop(sockets);
        eventually("its places are free", || (status(&server, &bearer(&greedy)) == 200).then_some(()));
        server.stop();
    }

    fn a_socket_without_a_login_ends_and_takes_no_other_place(ground: &Ground) {
        let root = key(ground, "root");
        let server = Server::start(ground, &MANY);
        let nobody = "ab".repeat(32);
        let mut sockets = Vec::new();
        let refused = loop {
            match open_at(&server, &nobody, "") {
                Ok(socket) => sockets.push(socket),
                Err(status) => break status,
            }
        };
        // One address has half of the places.
        assert_eq!((refused, sockets.len()), (429, ANONYMOUS / 2));
        let mut keyed = try_open(&server, &bearer(&root)).ok().unwrap();
        let secret = format!(r#"{{"jsonrpc":"2.0","method":"list_jobs","params":{{"secret":"{root}"}},"id":7}}"#);
        sockets[0].send(&secret);
        assert_eq!(sockets[0].next()["result"], json!([]));
        assert_eq!(sockets[1].closed(), Some(CloseCode::Policy));
        // One that has shown a key stays, and so does that of a key.
        assert!(keyed.call("system.info", &json!({}))["result"].is_object());
        assert_eq!(sockets[0].call("whoami", &json!([]))["result"]["authenticated"], false);
        eventually("there is room again", || open_at(&server, &nobody, "").ok());
        server.stop();
    }

    fn a_flood_of_nonces_stops_no_login(ground: &Ground) {
        key(ground, "root");
        ground.run(&["context", "create"]).ok();
        let server = Server::start(ground, &[]);
        let secret = new_key();
        let actor = wait(Node::of(&ground.broker()).trust(secret.public(), None)).unwrap();
        let pubkey = actor.pubkey.to_string();
        let sign = |nonce: &Value| -> String {
            let signature = secret.sign(nonce.as_str().unwrap().as_bytes());
            signature.iter().map(|byte| format!("{byte:02x}")).collect()
        };
        let fetch = || server.rpc("fetch_nonce", &json!([pubkey]), "")["result"].clone();
        let before = fetch();
        for batch in 0..105 {
            let calls: Vec<_> = (0..100)
                .map(|at| call("fetch_nonce", &json!([format!("{:064x}", batch * 100 + at)]), at))
                .collect();
            let answer = server.send("POST", "/rpc", "", &format!("[{}]", calls.join(",")));
            assert!(!answer.body.contains("error"), "{}", answer.body);
        }
        // A named one is valid all the same, once; the latest one needs no name.
        let named = json!({"pubkey": pubkey, "signature": sign(&before), "nonce": before});
        assert_eq!(server.rpc("authenticate", &named, "")["result"], true);
        assert_eq!(server.rpc("authenticate", &named, "")["error"]["code"], -32002);
        let latest = sign(&fetch());
        assert_eq!(server.rpc("authenticate", &json!([pubkey, latest]), "")["result"], true);
        server.stop();
    }

    fn wrong_keys_refuse_no_right_one_of_their_address(ground: &Ground) {
        let root = bearer(&key(ground, "root"));
        let server = Server::start(ground, &["--trusted-proxy", "127.0.0.0/8"]);
        let wrong = bearer("mwk_x.y");
        let refused = eventually("there are too many", || {
            let answer = server.send("GET", "/v1/system", &wrong, "");
            assert_eq!(status(&server, &root), 200);
            (answer.status == 429).then_some(answer)
        });
        assert_eq!(refused.header("retry-after"), Some("1"));
        // They count for the client that the proxy names, by a header or before the first request.
        let by_header = |client: &str| status(&server, &format!("{wrong}x-forwarded-for: 127.0.0.1, {client}\r\n"));
        let by_protocol = |last: u8| {
            let mut stream = TcpStream::connect(&server.address).unwrap();
            stream.set_read_timeout(Some(BOUND)).unwrap();
            let head = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c";
            stream.write_all(&[head, &[203, 0, 113, last, 127, 0, 0, 1, 1, 1, 2, 2][..]].concat()).unwrap();
            let request = format!("GET /v1/system HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n{wrong}\r\n", server.address);
            stream.write_all(request.as_bytes()).unwrap();
            came(stream).status
        };
        eventually("one client has to wait", || (by_header("203.0.113.9") == 429).then_some(()));
        assert_eq!(by_header("203.0.113.10"), 401);
        eventually("it is the same client", || {
            by_header("203.0.113.9");
            (by_protocol(9) == 429).then_some(())
        });
        assert_eq!(by_protocol(11), 401);
        server.stop();
    }
}

/// Number of open files of a process.
fn descriptors(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .count()
}

/// Memory of a process, in KiB: `VmRSS`, or `VmHWM` for the most.
fn memory(pid: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let number = line
        .unwrap()
        .trim_start_matches(':')
        .split_whitespace()
        .next();
    number.unwrap().parse().unwrap()
}

#[test]
fn sockets_that_read_nothing_take_little_memory_and_stall_nobody() {
    const SOCKETS: usize = 60;
    /// More memory than before, in KiB: for answers, their copies, and pages that are made. Without a bound it was 330 MiB in
    /// an optimized build, and grew with each socket.
    const MORE: u64 = 240 * 1024;
    let Some(ground) = Ground::redis() else {
        return;
    };
    let (greedy, other) = (
        bearer(&key(&ground, "greedy")),
        bearer(&key(&ground, "other")),
    );
    let jobs: String = (0..1000)
        .map(|at| {
            format!("{{\"id\":\"m-{at}\",\"type\":\"osis\",\"script\":\"1\",\"delay\":\"1h\"}}\n")
        })
        .collect();
    let file = ground.file("jobs.jsonl", jobs);
    ground
        .run(&["job", "enqueue", "--jsonl", file.to_str().unwrap()])
        .ok();
    let server = Server::start(&ground, &MANY);
    let page = json!({"state": "delayed", "limit": 1000});
    let list = || {
        let answer = server.rpc("job.list", &page, &other);
        let jobs = answer["result"]["jobs"].as_array();
        assert_eq!(jobs.map(Vec::len), Some(1000), "{}", answer["error"]);
    };
    list();
    let pid = server.running.pid();
    let before = memory(pid, "VmRSS");
    let mut sockets: Vec<_> = (0..SOCKETS)
        .map(|_| {
            let stream = narrow(&server.address);
            handshake((&server.address, "rpc"), &greedy, stream)
                .ok()
                .unwrap()
        })
        .collect();
    for socket in &mut sockets {
        for id in 0..16 {
            socket.send(&call("job.list", &page, id));
        }
    }
    let open = descriptors(pid);
    // A neighbour reads ten pages meanwhile; without shares each took ten seconds.
    let began = Instant::now();
    for _ in 0..10 {
        list();
    }
    let took = began.elapsed();
    // Those for which answers wait in the server; the system has taken all for others.
    eventually("the server closes sockets that take nothing", || {
        (descriptors(pid) + SOCKETS / 6 <= open).then_some(())
    });
    drop(sockets);
    let (most, after) = (memory(pid, "VmHWM"), memory(pid, "VmRSS"));
    println!(
        "{before} KiB before, {most} at most, {after} after; ten pages of a neighbour in {took:?}"
    );
    assert!(took < BOUND, "{took:?}");
    assert!(most < before + MORE, "{before} KiB, {most}, {after}");
    server.stop();
}

#[test]
fn the_header_of_a_proxy_is_taken_from_a_trusted_one_alone() {
    let Some(ground) = Ground::redis() else {
        return;
    };
    let server = Server::start(
        &ground,
        &["--insecure-no-auth", "--trusted-proxy", "192.0.2.7"],
    );
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.set_read_timeout(Some(BOUND)).unwrap();
    stream
        .write_all(b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0GET /healthz HTTP/1.1\r\n\r\n")
        .unwrap();
    assert_eq!(came(stream).status, 400);
    server.stop();
    let server = Server::start(
        &ground,
        &["--insecure-no-auth", "--trusted-proxy", "127.0.0.1"],
    );
    // A header that breaks off, and one of another version.
    for bytes in [
        &b"\r\n\r\n\0\r\nQU"[..],
        b"\r\n\r\n\0\r\nQUIT\n\x11\x11\0\x0c............",
    ] {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        stream.set_read_timeout(Some(BOUND)).unwrap();
        stream.write_all(bytes).unwrap();
        // The server may have closed it before.
        stream.shutdown(Shutdown::Write).ok();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok();
        assert_eq!(answer, b"");
    }
    assert_eq!(status(&server, ""), 200);
    server.stop();
    let bad = [
        "supervisor",
        "--listen",
        "127.0.0.1:0",
        "--trusted-proxy",
        "10.0.0.0/33",
    ];
    assert!(ground.run(&bad).exits(2).stderr.contains("10.0.0.0/8"));
}
