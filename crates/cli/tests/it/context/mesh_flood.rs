//! A node that sends far more frames than it may: the others are served, and the supervisor needs little memory.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use data_encoding::BASE64;
use meshwork::context::read_key;
use meshwork_model::mesh::{Frame, Item};
use serde_json::{Value, json};

use super::mesh::{Node, SEND};
use crate::common::eventually;

/// Number of frames, unless MESHWORK_FLOOD names another one.
const FRAMES: usize = 3_000;
/// Frames in a call of the daemon.
const BATCH: usize = 500;
/// Frames that are refused at least.
const BUSY: u64 = 100;
/// Greatest memory of the supervisor, in KiB.
const MEMORY: u64 = 200 * 1024;

/// Calls of a batch to the JSON-RPC API of a daemon.
fn post(url: &str, calls: &[Value]) {
    let (host, body) = (
        url.strip_prefix("http://").unwrap(),
        json!(calls).to_string(),
    );
    let mut stream = TcpStream::connect(host).unwrap();
    let length = body.len();
    let head = format!(
        "POST / HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

/// Greatest memory that a process had, in KiB.
fn memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.unwrap().split_whitespace().next().unwrap();
    number.parse().unwrap()
}

/// Number of refused frames of a node for this reason.
fn refused(node: &Node, name: &str, code: &str) -> u64 {
    let peers = node.ground.run(&["mesh", "peers", "--json"]).ok().jsons();
    let peer = peers.iter().find(|peer| peer["name"] == name).unwrap();
    peer["refused"][code].as_u64().unwrap_or(0)
}

#[test]
fn a_node_that_floods_gets_busy_and_two_others_are_served() {
    let frames = std::env::var("MESHWORK_FLOOD").map_or(FRAMES, |many| many.parse().unwrap());
    let Some(mut bob) = Node::start(&[]) else {
        return;
    };
    let mut others = ["alice", "carol"].map(|name| (name, Node::start(&[&bob]).unwrap()));
    for (name, other) in &mut others {
        other.trust(&bob, "bob");
        bob.trust(other, name);
        other.serve_with(&[]);
        other.ground.file("sum.py", "result = 1");
    }
    let mallory = Node::start(&[&bob]).unwrap();
    bob.trust(&mallory, "mallory");
    let key = read_key(&mallory.ground.path(".config/meshwork/node.key")).unwrap();
    let id = |node: &Node| node.field(0, "mw:node", "id");
    let (to, from) = (id(&bob), id(&mallory));
    let (now, _): (u64, u64) = bob.plain(0).ask(&["TIME"]).unwrap();
    let calls: Vec<Value> = (0..BATCH as u64)
        .map(|number| {
            let frame = Frame {
                dst: to.parse().unwrap(),
                src: from.parse().unwrap(),
                sent_ms: now * 1000,
                items: vec![Item::Ping { id: number }],
            };
            let message = json!({
                "dst": {"pk": bob.daemon.pk()},
                "topic": BASE64.encode(format!("meshwork.v1/{to}").as_bytes()),
                "payload": BASE64.encode(&frame.seal(&key).unwrap()),
            });
            json!({"jsonrpc": "2.0", "id": number, "method": "pushMessage", "params": [message, null]})
        })
        .collect();
    // They wait in the daemon when the supervisor starts: how fast they come does not depend on this busy host.
    for _ in 0..frames / BATCH {
        post(&mallory.daemon.url(), &calls);
    }
    let began = Instant::now();
    bob.serve();
    for (name, other) in &others {
        let began = Instant::now();
        other.ground.run(&[&SEND[..], &["--wait"]].concat()).ok();
        println!("{name}: processed after {} ms", began.elapsed().as_millis());
    }
    // 100 frames of a second are accepted.
    let busy = eventually("many frames are refused", || {
        let busy = refused(&bob, "mallory", "busy");
        (busy >= BUSY).then_some(busy)
    });
    let pid = bob.supervisor.as_ref().unwrap().pid();
    let (memory, took) = (memory(pid), began.elapsed().as_millis());
    println!("{frames} frames: {busy} busy after {took} ms, supervisor at most {memory} KiB");
    assert!(memory < MEMORY, "{memory} KiB");
}
