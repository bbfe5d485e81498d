//! Spans over OTLP: one per run, a child of the span that enqueued the job. The receiver is a fake: it takes
//! what is sent over HTTP and looks for the bytes of ids in it, as protobuf writes them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use crate::common::{BOUND, Done, Ground, Running};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const SPAN: &str = "b7ad6b7169203331";

/// A collector that only remembers.
struct FakeCollector {
    endpoint: String,
    bodies: Receiver<(String, Vec<u8>)>,
    logins: Receiver<String>,
}

impl FakeCollector {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let (sender, bodies) = mpsc::channel();
        let (shown, logins) = mpsc::channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (sender, shown) = (sender.clone(), shown.clone());
                thread::spawn(move || serve(stream.unwrap(), &sender, &shown));
            }
        });
        Self {
            endpoint,
            bodies,
            logins,
        }
    }

    /// First request, and its path.
    fn taken(&self) -> (String, Vec<u8>) {
        self.bodies.recv_timeout(BOUND).expect("spans are exported")
    }
}

/// Takes requests off a connection until it ends.
fn serve(stream: TcpStream, sender: &Sender<(String, Vec<u8>)>, shown: &Sender<String>) {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut path, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            let line = line.trim_end().to_lowercase();
            if let Some(rest) = line.strip_prefix("post ") {
                path = rest.split(' ').next().unwrap().to_owned();
            } else if let Some(bytes) = line.strip_prefix("content-length: ") {
                length = bytes.parse().unwrap();
            } else if let Some(login) = line.strip_prefix("authorization: ") {
                shown.send(login.to_owned()).ok();
            } else if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        // The test may have seen enough.
        sender.send((path, body)).ok();
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
        reader.get_mut().write_all(answer).ok();
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.map(byte).collect()
}

fn holds(body: &[u8], part: &[u8]) -> bool {
    body.windows(part.len()).any(|window| window == part)
}

fn run(ground: &Ground, endpoint: &str, args: &[&str]) -> Done {
    let mut command = ground.command(&[&["run"], args].concat());
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint);
    command.env("OTEL_SERVICE_NAME", "the-name-of-the-service");
    Running::start(command).ended()
}

#[test]
fn a_run_is_a_span_of_the_trace_that_asked_for_it() {
    let (ground, collector) = (Ground::embedded().unwrap(), FakeCollector::start());
    ground.file("trace.rhai", "TRACEPARENT");
    let parent = format!("00-{TRACE}-{SPAN}-01");
    let args = ["trace.rhai", "--traceparent", &parent];
    let done = run(&ground, &collector.endpoint, &args).ok();
    let (path, body) = collector.taken();
    assert_eq!(path, "/v1/traces");
    // The fields 1 (trace id), 4 (parent) and 2 (its own id) of a span, each with its length.
    assert!(holds(&body, &[&[0x0a, 16], &*bytes(TRACE)].concat()));
    assert!(holds(&body, &[&[0x22, 8], &*bytes(SPAN)].concat()));
    assert!(holds(&body, b"the-name-of-the-service"));
    // What the script calls is a part of the run's own span.
    let seen: Vec<_> = done.stdout.trim().split('-').collect();
    assert_eq!((seen[1], seen[3]), (TRACE, "01"), "{done:?}");
    assert_ne!(seen[2], SPAN, "{done:?}");
    assert!(holds(&body, &[&[0x12, 8], &*bytes(seen[2])].concat()));
}

#[test]
fn a_failure_is_told_by_its_kind_and_nothing_of_what_it_says() {
    let (ground, collector) = (Ground::embedded().unwrap(), FakeCollector::start());
    ground.file("bad.rhai", "throw \"tell-nobody\"");
    run(&ground, &collector.endpoint, &["bad.rhai"]).exits(1);
    let (_, body) = collector.taken();
    assert!(holds(&body, b"script") && !holds(&body, b"tell-nobody"));
}

#[test]
fn a_login_that_is_taken_out_of_the_environment_is_sent() {
    let (ground, collector) = (Ground::embedded().unwrap(), FakeCollector::start());
    ground.file("a.rhai", "1");
    let mut command = ground.command(&["run", "a.rhai"]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint);
    let headers = "x-other=1, Authorization = Bearer%20geheim";
    command.env("OTEL_EXPORTER_OTLP_HEADERS", headers);
    Running::start(command).ended().ok();
    assert_eq!(collector.taken().0, "/v1/traces");
    assert_eq!(
        collector.logins.recv_timeout(BOUND).unwrap(),
        "bearer geheim"
    );
}

#[test]
fn a_collector_that_is_away_holds_nobody_up() {
    let ground = Ground::embedded().unwrap();
    ground.file("a.rhai", "1");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let away = format!("http://{}", taken.local_addr().unwrap());
    drop(taken);
    assert_eq!(run(&ground, &away, &["a.rhai"]).ok().stdout, "1\n");
}
