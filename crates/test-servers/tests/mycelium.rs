//! The fake Mycelium daemon as processes, and the real one where `MYCELIUM_BIN` names it: both have to pass.

#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use data_encoding::BASE64;
use meshwork_test_servers::say;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Longest time of a step.
const BOUND: Duration = Duration::from_secs(30);
/// Longest time of a call.
const CALL: Duration = Duration::from_secs(15);

/// A daemon; it ends with the test.
struct Daemon {
    child: Child,
    program: PathBuf,
    args: Vec<String>,
    rpc: SocketAddr,
    pk: String,
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn spawn(program: &PathBuf, args: &[String]) -> Child {
    let mut command = Command::new(program);
    command
        .args(args)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().unwrap()
}

impl Daemon {
    /// Starts a daemon with links to `peers`. Returns it with the address for links to it.
    fn start(program: &PathBuf, dir: &TempDir, peers: &[String]) -> (Self, String) {
        let (port, rpc) = (free_port(), free_port());
        let key = dir.path().join(format!("{port}.key"));
        let api = format!("127.0.0.1:{}", free_port());
        let rpc_at = format!("127.0.0.1:{rpc}");
        let mut args: Vec<String> = ["-k", key.to_str().unwrap(), "--no-tun"]
            .map(str::to_owned)
            .into();
        args.extend(["--disable-peer-discovery", "--disable-quic", "-t"].map(str::to_owned));
        args.extend([port.to_string(), "--api-addr".to_owned(), api]);
        args.extend(["--jsonrpc-addr".to_owned(), rpc_at.clone()]);
        if !peers.is_empty() {
            args.push("--peers".to_owned());
            args.extend(peers.iter().cloned());
        }
        let mut daemon = Self {
            child: spawn(program, &args),
            program: program.clone(),
            args,
            rpc: rpc_at.parse().unwrap(),
            pk: String::new(),
        };
        daemon.pk = daemon.info()["nodePubkey"].as_str().unwrap().to_owned();
        (daemon, format!("tcp://127.0.0.1:{port}"))
    }

    /// Returns its description, once it answers.
    fn info(&self) -> Value {
        eventually("the daemon answers", || {
            self.try_call("getInfo", json!([])).ok()
        })
        .unwrap()
    }

    /// Kills it and starts it again.
    fn restart(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.child = spawn(&self.program, &self.args);
        self.info();
    }

    fn try_call(&self, method: &str, params: Value) -> std::io::Result<Result<Value, i64>> {
        let body =
            json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let mut stream = TcpStream::connect(self.rpc)?;
        stream.set_read_timeout(Some(CALL))?;
        write!(
            stream,
            "POST / HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nConnection: close\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.rpc,
            body.len()
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let broken = || std::io::Error::other(format!("no JSON: {answer}"));
        let from = answer.find('{').ok_or_else(broken)?;
        let to = answer.rfind('}').ok_or_else(broken)?;
        let answer: Value = serde_json::from_str(&answer[from..=to]).map_err(|_| broken())?;
        Ok(match answer.get("result") {
            Some(result) => Ok(result.clone()),
            None => Err(answer["error"]["code"].as_i64().unwrap()),
        })
    }

    fn call(&self, method: &str, params: Value) -> Value {
        self.try_call(method, params).unwrap().unwrap()
    }

    /// Sends a payload, and returns the id.
    fn push(&self, to: &str, topic: &str, payload: &[u8]) -> String {
        let message = json!({
            "dst": {"pk": to}, "topic": BASE64.encode(topic.as_bytes()), "payload": BASE64.encode(payload),
        });
        let pushed = self.call("pushMessage", json!([message, null]));
        pushed["id"].as_str().unwrap().to_owned()
    }

    /// Pops a message of a topic.
    fn pop(&self, topic: &str) -> Option<Value> {
        let popped = self.call(
            "popMessage",
            json!([false, 0, BASE64.encode(topic.as_bytes())]),
        );
        (!popped.is_null()).then_some(popped)
    }

    /// Waits for a message of a topic, and returns its payload.
    fn next(&self, topic: &str) -> Vec<u8> {
        let message = eventually("a message arrives", || self.pop(topic));
        BASE64
            .decode(message["payload"].as_str().unwrap().as_bytes())
            .unwrap()
    }

    fn state(&self, id: &str) -> Value {
        self.call("getMessageInfo", json!([id]))["state"].clone()
    }
}

fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    let look = async || look();
    runtime
        .unwrap()
        .block_on(meshwork_test_servers::eventually(what, BOUND, look))
}

/// Runs a test with the fake, and with the real daemon if there is one.
fn on_daemons(test: impl Fn(&PathBuf, &TempDir)) {
    test(
        &env!("CARGO_BIN_EXE_fake-mycelium").into(),
        &TempDir::new().unwrap(),
    );
    match std::env::var_os("MYCELIUM_BIN") {
        Some(real) => test(&real.into(), &TempDir::new().unwrap()),
        None => say("skipped with the real daemon: MYCELIUM_BIN names none"),
    }
}

#[test]
fn messages_arrive_through_a_daemon_between_them_each_once() {
    on_daemons(|program, dir| {
        let (middle, at) = Daemon::start(program, dir, &[]);
        let (one, _) = Daemon::start(program, dir, std::slice::from_ref(&at));
        let (other, _) = Daemon::start(program, dir, &[at]);
        one.push(&other.pk, "t", b"first");
        assert_eq!(other.next("t"), b"first");
        assert!(middle.pop("t").is_none() && other.pop("t").is_none());
        for number in 0..50_u8 {
            one.push(&other.pk, "t", &[number]);
        }
        let mut got: Vec<u8> = (0..50).map(|_| other.next("t")[0]).collect();
        got.sort_unstable();
        assert_eq!(got, (0..50).collect::<Vec<_>>());
        let id = one.push(&other.pk, "u", b"x");
        assert_eq!(other.next("u"), b"x");
        eventually("it is read", || (one.state(&id) == "read").then_some(()));
    });
}

#[test]
fn some_messages_stay() {
    on_daemons(|program, dir| {
        let (one, at) = Daemon::start(program, dir, &[]);
        let (other, _) = Daemon::start(program, dir, &[at]);
        let own = one.push(&one.pk, "t", b"to itself");
        let unknown = one.push(&"7".repeat(64), "t", b"to nobody");
        let stuck = one.push(&other.pk, "t", &[0; 1301]);
        one.push(&other.pk, "t", &[1; 1300]);
        one.push(&other.pk, "t", &[2; 1550]);
        let mut lengths = [other.next("t").len(), other.next("t").len()];
        lengths.sort_unstable();
        assert_eq!(lengths, [1300, 1550]);
        assert_eq!(
            (one.state(&own), one.state(&unknown)),
            (json!("pending"), json!("pending"))
        );
        assert!(
            one.state(&stuck)["sending"].is_object(),
            "{}",
            one.state(&stuck)
        );
        assert!(other.pop("t").is_none() && one.pop("t").is_none());
        let wrong = one.try_call("getMessageInfo", json!(["0000000000000000"]));
        assert_eq!(wrong.unwrap(), Err(-32019));
    });
}

#[test]
fn a_restart_loses_what_waits() {
    on_daemons(|program, dir| {
        let (one, at) = Daemon::start(program, dir, &[]);
        let (mut other, _) = Daemon::start(program, dir, &[at]);
        let id = one.push(&other.pk, "t", b"lost");
        eventually("it is received", || {
            (one.state(&id) == "received").then_some(())
        });
        other.restart();
        one.push(&other.pk, "t", b"kept");
        assert_eq!(other.next("t"), b"kept");
        assert!(other.pop("t").is_none());
        assert_eq!(one.state(&id), "received");
    });
}

#[test]
fn a_waiting_pop_holds_up_other_calls() {
    on_daemons(|program, dir| {
        let (one, _) = Daemon::start(program, dir, &[]);
        std::thread::scope(|scope| {
            let before = Instant::now();
            let waiting =
                scope.spawn(|| one.call("popMessage", json!([false, 2, BASE64.encode(b"t")])));
            // The pop holds the daemon once another call takes long.
            eventually("a call is held up", || {
                let call = Instant::now();
                one.call("getInfo", json!([]));
                (call.elapsed() > Duration::from_millis(200)).then_some(())
            });
            assert!(waiting.join().unwrap().is_null());
            assert!(before.elapsed() >= Duration::from_secs(2));
        });
    });
}

#[test]
fn a_reply_arrives_without_a_topic() {
    on_daemons(|program, dir| {
        let (one, at) = Daemon::start(program, dir, &[]);
        let (other, _) = Daemon::start(program, dir, &[at]);
        let reply = json!({"dst": {"pk": one.pk}, "payload": BASE64.encode(b"r")});
        other.call("pushMessageReply", json!(["0123456789abcdef", reply]));
        assert_eq!(one.next(""), b"r");
    });
}
