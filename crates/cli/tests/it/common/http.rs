//! HTTP as a program speaks it that has nothing but a socket, and a gateway to speak it to.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use super::{BOUND, Ground, Running, json};

pub(crate) const JSON: &str = "content-type: application/json\r\n";

/// Response: the status, the head in small letters, the body.
pub(crate) struct Came {
    pub(crate) status: u16,
    pub(crate) head: String,
    /// The head as it was written.
    pub(crate) raw_head: String,
    pub(crate) body: String,
}

impl Came {
    pub(crate) fn json(&self) -> Value {
        json(&self.body)
    }

    /// The code of the error.
    pub(crate) fn code(&self) -> String {
        self.json()["error"]["error_code"]
            .as_str()
            .unwrap_or("")
            .to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

pub(crate) fn connect(address: &str, request: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(BOUND)).unwrap();
    // It may be refused before all of it is there.
    stream.write_all(request.as_bytes()).ok();
    stream
}

pub(crate) fn came(mut stream: TcpStream) -> Came {
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok();
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let raw_head = head.to_owned();
    let head = head.to_lowercase();
    Came {
        status: head
            .split(' ')
            .nth(1)
            .and_then(|it| it.parse().ok())
            .unwrap_or(0),
        head,
        raw_head,
        body: body.to_owned(),
    }
}

/// A request for an action.
pub(crate) fn text(address: &str, path: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n{body}"
    )
}

pub(crate) fn post(address: &str, path: &str, headers: &str, body: &str) -> Came {
    came(connect(address, &text(address, path, headers, body)))
}

pub(crate) fn get(address: &str, path: &str) -> Came {
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    came(connect(address, &request))
}

/// A gateway, and where it is.
pub(crate) fn gateway(ground: &Ground, words: &[&str], token: Option<&str>) -> (Running, String) {
    let mut command = ground.command(
        &[
            &["action", "gateway", "--addr", "127.0.0.1:0", "--json"],
            words,
        ]
        .concat(),
    );
    match token {
        Some(token) => command.env("MESHWORK_GATEWAY_TOKEN", token),
        None => command.arg("--insecure-no-auth"),
    };
    let mut running = Running::start(command);
    let event = json(&running.line());
    assert_eq!(event["event"], "listening");
    let address = event["url"]
        .as_str()
        .unwrap()
        .strip_prefix("http://")
        .unwrap()
        .to_owned();
    (running, address)
}

/// The service `demo`: it counts, fails, and waits until the file `go_on` is there, when it has made `began`.
pub(crate) fn service(ground: &Ground, dialect: &str) -> Running {
    service_with(ground, dialect, &[])
}

/// The same with these further words.
pub(crate) fn service_with(ground: &Ground, dialect: &str, words: &[&str]) -> Running {
    ground.file("count.rhai", "#{count: parse_json(INPUT).items.len()}");
    ground.file("fail.rhai", "throw \"boom\"");
    let (began, go_on) = (ground.path("began"), ground.path("go_on"));
    let slow = format!(
        "import os, time\nopen({began:?}, 'w').close()\nwhile not os.path.exists({go_on:?}): time.sleep(0.01)\nprint('{{}}')\n"
    );
    ground.file("slow.py", slow);
    let first = [
        "service",
        "--name",
        "demo",
        "--handler",
        "demo.batch.count=count.rhai",
        "--handler",
        "demo.fail=fail.rhai",
        "--handler",
        "demo.slow=slow.py",
        "--dialect",
        dialect,
        "--json",
    ];
    let mut running = ground.start(&[&first, words].concat());
    assert_eq!(json(&running.line())["event"], "listening");
    running
}
