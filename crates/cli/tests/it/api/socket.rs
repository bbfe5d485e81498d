//! JSON-RPC over WebSockets.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use meshwork::context::{Node, new_key};
use meshwork_model::actor_key::SecretKey;
use meshwork_model::api_key::Scope;
use serde_json::{Value, json};
use tungstenite::client::IntoClientRequest;
use tungstenite::http::{HeaderName, HeaderValue};
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::{Error, HandshakeError, Message, WebSocket};

use super::{Api, Server, bearer};
use crate::common::http::{came, connect};
use crate::common::{BOUND, Ground, eventually, json as parsed, on_all_data, wait};

/// A client, and the notifications that came before a response.
pub(crate) struct Socket<S: Read + Write>(WebSocket<S>, VecDeque<Value>);

/// Opens a socket, or returns the status of the refusal.
pub(super) fn try_open(server: &Server, headers: &str) -> Result<Socket<TcpStream>, u16> {
    open_at(server, "rpc", headers)
}

/// Opens a socket at a path.
pub(crate) fn open_at(server: &Api, path: &str, headers: &str) -> Result<Socket<TcpStream>, u16> {
    let stream = TcpStream::connect(&server.address).unwrap();
    stream.set_read_timeout(Some(BOUND)).unwrap();
    handshake((&server.address, path), headers, stream)
}

pub(super) fn handshake<S: Read + Write>(
    (host, path): (&str, &str),
    headers: &str,
    stream: S,
) -> Result<Socket<S>, u16> {
    let request = format!("ws://{host}/{path}").into_client_request();
    let mut request = request.unwrap();
    for line in headers.lines() {
        let (name, value) = line.split_once(": ").unwrap();
        let name: HeaderName = name.parse().unwrap();
        request
            .headers_mut()
            .insert(name, HeaderValue::from_str(value).unwrap());
    }
    match tungstenite::client(request, stream) {
        Ok((socket, _)) => Ok(Socket(socket, VecDeque::new())),
        Err(HandshakeError::Failure(Error::Http(response))) => Err(response.status().as_u16()),
        Err(error) => panic!("{error}"),
    }
}

pub(super) fn open(server: &Server) -> Socket<TcpStream> {
    try_open(server, "").unwrap_or_else(|status| panic!("refused with {status}"))
}

impl<S: Read + Write> Socket<S> {
    pub(crate) fn send(&mut self, text: &str) {
        self.0.send(Message::text(text)).unwrap();
    }

    /// The next text.
    pub(crate) fn next(&mut self) -> Value {
        match self.1.pop_front() {
            Some(before) => before,
            None => self.read(),
        }
    }

    fn read(&mut self) -> Value {
        loop {
            match self.0.read().unwrap() {
                Message::Text(text) => return parsed(&text),
                Message::Ping(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// Calls a method.
    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Value {
        let request = json!({"jsonrpc": "2.0", "method": method, "params": params, "id": 7});
        self.send(&request.to_string());
        loop {
            let text = self.read();
            match text.get("method") {
                Some(_) => self.1.push_back(text),
                None => {
                    assert_eq!(text["id"], 7, "{text}");
                    return text;
                }
            }
        }
    }

    /// Logs an actor in with a signed nonce.
    pub(crate) fn log_in(&mut self, secret: &SecretKey) {
        let pubkey = secret.public().to_string();
        let nonce = self.call("fetch_nonce", &json!([pubkey]))["result"].clone();
        let signature = secret.sign(nonce.as_str().unwrap().as_bytes());
        let signature: String = signature.iter().map(|byte| format!("{byte:02x}")).collect();
        let answer = self.call("authenticate", &json!([pubkey, signature]));
        assert_eq!(answer["result"], true, "{answer}");
    }

    pub(super) fn subscribe(&mut self, params: &Value) -> String {
        let response = self.call("subscribe", params);
        response["result"]["subscription"]
            .as_str()
            .unwrap_or_else(|| panic!("{response}"))
            .to_owned()
    }

    /// Reads until the job has had this event.
    pub(super) fn until(&mut self, job: &str, event: &str) {
        loop {
            let item = self.next()["params"]["item"].clone();
            if item["job"] == job && item["event"] == event {
                return;
            }
        }
    }

    /// The notifications that came before responses.
    pub(crate) fn noticed(&mut self) -> Vec<Value> {
        self.1.drain(..).collect()
    }

    /// The code with which the server closes it; none if it was cut.
    pub(crate) fn closed(&mut self) -> Option<CloseCode> {
        loop {
            match self.0.read() {
                Ok(Message::Close(frame)) => return frame.map(|frame| frame.code),
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }
}

fn create(server: &Server, id: &str) {
    let body = json!({"type": "osis", "script": "1", "id": id});
    assert_eq!(server.rest("POST", "/v1/jobs", &body).0, 201, "{id}");
}

on_all_data! {
    fn methods_and_subscriptions_share_a_socket(ground: &Ground) {
        let server = Server::open(ground);
        let mut socket = open(&server);
        assert_eq!(socket.call("system.info", &json!({})), server.rpc("system.info", &json!({}), "").as_object().map(|it| {
            let mut same = it.clone();
            same["id"] = json!(7);
            Value::Object(same)
        }).unwrap());
        let name = socket.subscribe(&json!({"topic": "job:w-1"}));
        let all = socket.subscribe(&json!({"topic": "events"}));
        create(&server, "w-1");
        let both = [socket.next(), socket.next()];
        for event in &both {
            assert_eq!((&event["jsonrpc"], &event["method"]), (&json!("2.0"), &json!("event")), "{event}");
            assert_eq!((&event["params"]["item"]["job"], &event["params"]["item"]["event"]), (&json!("w-1"), &json!("enqueue")));
        }
        let mut names = both.clone().map(|event| event["params"]["subscription"].as_str().unwrap().to_owned());
        names.sort();
        assert_eq!(names, [name.clone(), all.clone()]);
        assert_eq!(socket.call("unsubscribe", &json!({"subscription": all}))["result"]["subscription"], all);
        assert_eq!(socket.call("unsubscribe", &json!({"subscription": all}))["error"]["code"], -32004);
        create(&server, "w-2");
        assert_eq!(socket.call("job.cancel", &json!({"id": "w-2"}))["result"]["result"], "cancelled");
        // A batch; and a subscription from an id on, in another socket.
        socket.send(r#"[{"jsonrpc":"2.0","method":"system.info","id":1},{"jsonrpc":"2.0","method":"system.info"},7]"#);
        assert_eq!(socket.next().as_array().unwrap().len(), 2);
        let mut other = open(&server);
        other.subscribe(&json!({"topic": "queue:osis", "from": both[0]["params"]["item"]["id"]}));
        assert_eq!(other.next()["params"]["item"]["job"], "w-2");
        other.subscribe(&json!({"topic": "log:w-2"}));
        eventually("its log has ended", || (other.next()["method"] == "end").then_some(()));
        for (params, code) in [
            (json!({"topic": "colour:red"}), -32602),
            (json!({"topic": "everything"}), -32602),
            (json!({"topic": "events", "from": "x"}), -32602),
            (json!({"topic": "flow:x"}), -32602),
            (json!({"topic": "log:none"}), -32004),
            (json!({}), -32602),
        ] {
            assert_eq!(socket.call("subscribe", &params)["error"]["code"], code, "{params}");
        }
        for at in 1..100 {
            assert_ne!(socket.subscribe(&json!({"topic": format!("job:{at}")})), name);
        }
        assert_eq!(socket.call("subscribe", &json!({"topic": "events"}))["error"]["code"], -32007);
        server.stop();
        assert_eq!(socket.closed(), Some(CloseCode::Away));
    }

    fn a_socket_needs_a_key_and_ends_with_it(ground: &Ground) {
        let key = |name: &str, scope: &str| ground.run(&["key", "create", name, "--scope", scope]).ok().stdout.trim().to_owned();
        let (root, viewer) = (key("root", "admin"), key("viewer", "viewer"));
        let server = Server::start(ground, &[]);
        assert_eq!(try_open(&server, "").err(), Some(401));
        assert_eq!(try_open(&server, &bearer("mwk_viewer.x")).err(), Some(401));
        let mut socket = try_open(&server, &bearer(&viewer)).ok().unwrap();
        assert_eq!(socket.call("system.info", &json!({}))["result"]["scope"], "viewer");
        assert_eq!(socket.call("job.cancel", &json!({"id": "x"}))["error"]["code"], -32003);
        assert_eq!(try_open(&server, &bearer(&root)).ok().unwrap().call("system.info", &json!({}))["result"]["scope"], "admin");
        ground.run(&["key", "revoke", "viewer"]).ok();
        assert_eq!(socket.closed(), Some(CloseCode::Policy));
        server.stop();
    }

    fn an_actor_signs_a_nonce_over_the_socket_of_his_key(ground: &Ground) {
        ground.run(&["context", "create"]).ok();
        ground.run(&["key", "create", "root", "--scope", "admin"]).ok();
        let server = Server::start(ground, &[]);
        let secret = new_key();
        let node = Node::of(&ground.broker());
        let actor = wait(node.trust(secret.public(), None)).unwrap();
        wait(node.grant_node_scope(actor.id, Scope::User)).unwrap();
        let pubkey = actor.pubkey.to_string();
        assert_eq!(open_at(&server, "abc", "").err(), Some(404));
        let mut socket = open_at(&server, &pubkey, "").ok().unwrap();
        assert_eq!(socket.call("whoami", &json!([]))["result"]["authenticated"], false);
        assert_eq!(socket.call("list_jobs", &json!([]))["error"]["code"], -32001);
        socket.log_in(&secret);
        let mut result = |method: &str, params: &Value| socket.call(method, params);
        let me = result("whoami", &json!([]))["result"].clone();
        assert_eq!((&me["authenticated"], &me["actor"]), (&json!(true), &json!(actor.id.0)));
        assert_eq!(result("list_jobs", &json!([]))["result"], json!([]));
        // The login is that of this socket.
        let mut other = open_at(&server, &pubkey, "").ok().unwrap();
        assert_eq!(other.call("whoami", &json!([]))["result"]["authenticated"], false);
        server.stop();
    }

    fn hostile_sockets_are_bounded_and_refused(ground: &Ground) {
        let server = Server::start(ground, &["--insecure-no-auth", "--max-body", "100000"]);
        let address = server.address.clone();
        assert_eq!(try_open(&server, "host: evil.example").err(), Some(403));
        assert_eq!(try_open(&server, "origin: http://evil.example").err(), Some(403));
        assert!(try_open(&server, &format!("origin: http://{address}")).is_ok());
        assert_eq!(try_open(&server, "sec-websocket-version: 7").err(), Some(405));
        // What is no request has an answer, and the socket goes on.
        let mut socket = open(&server);
        let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let one = r#"{"jsonrpc":"2.0","method":"system.info","id":1}"#;
        for (text, code) in [
            ("{".to_owned(), -32700),
            ("1".to_owned(), -32600),
            ("[]".to_owned(), -32600),
            (format!("[{}]", vec![one; 101].join(",")), -32600),
            (format!(r#"{{"jsonrpc":"2.0","method":"job.get","params":{},"id":1}}"#, deep(40_000)), -32602),
            (format!(r#"{{"jsonrpc":"2.0","method":"subscribe","params":{{"topic":{}}},"id":1}}"#, deep(40_000)), -32602),
        ] {
            socket.send(&text);
            assert_eq!(socket.next()["error"]["code"], code, "{}", &text[..text.len().min(60)]);
        }
        let nested = deep(40_000);
        socket.send(&nested);
        assert_eq!(socket.next().as_array().unwrap()[0]["error"]["code"], -32600);
        assert!(socket.call("system.info", &json!({}))["result"].is_object());
        socket.send(&" ".repeat(100_001));
        assert!([Some(CloseCode::Size), None].contains(&socket.closed()));
        let mut binary = open(&server);
        binary.0.send(Message::binary(one.as_bytes().to_vec())).unwrap();
        assert_eq!(binary.closed(), Some(CloseCode::Unsupported));
        // Frames that break the protocol: without a mask, of a reserved kind, longer than all memory, not UTF-8, and a
        // continuation of nothing.
        for frame in [
            &b"\x81\x02hi"[..],
            b"\x83\x80\0\0\0\0",
            b"\xf1\x80\0\0\0\0",
            b"\x81\xff\x7f\xff\xff\xff\xff\xff\xff\xff\0\0\0\0",
            b"\x81\x81\0\0\0\0\xff",
            b"\x80\x80\0\0\0\0",
            // A ping of 256 bytes.
            &[b"\x89\xfe\x01\0\0\0\0\0".as_slice(), &[0; 256]].concat(),
        ] {
            let mut socket = open(&server);
            socket.0.get_mut().write_all(frame).unwrap();
            assert!(socket.closed().is_none_or(|code| code != CloseCode::Normal), "{frame:?}");
        }
        // A message in parts is as long as all of them.
        let mut parts = open(&server);
        let mut part = vec![0x01, 0xfe, 0x4e, 0x20, 0, 0, 0, 0];
        part.extend(vec![b' '; 20_000]);
        let sent = (0..10).find(|_| {
            let failed = parts.0.get_mut().write_all(&part).is_err();
            part[0] = 0x00;
            failed
        });
        assert!(sent.is_some() || parts.closed() != Some(CloseCode::Normal));
        server.stop();
    }

    fn idle_sockets_shut_nobody_out(ground: &Ground) {
        let server = Server::start(ground, &["--insecure-no-auth"]);
        let mut sockets: Vec<_> = (0..64).map(|_| open(&server)).collect();
        assert_eq!(try_open(&server, "").err(), Some(503));
        let probe = format!("GET /healthz HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", server.address);
        assert_eq!(came(connect(&server.address, &probe)).status, 200);
        assert!(sockets[0].call("system.info", &json!({}))["result"].is_object());
        drop(sockets.pop());
        eventually("there is room", || try_open(&server, "").ok().map(drop));
        server.stop();
    }

    fn the_unix_socket_takes_websockets(ground: &Ground) {
        let path = ground.path("api.sock");
        let mut running = ground.start(&["supervisor", "--json", "--socket", path.to_str().unwrap()]);
        running.line();
        let stream = UnixStream::connect(&path).unwrap();
        stream.set_read_timeout(Some(BOUND)).unwrap();
        let mut socket = handshake(("localhost", "rpc"), "", stream).ok().unwrap();
        assert_eq!(socket.call("system.info", &json!({}))["result"]["scope"], "admin");
        socket.subscribe(&json!({"topic": "events"}));
        let created = socket.call("job.create", &json!({"type": "osis", "script": "1", "id": "u-1"}));
        assert!(created["result"]["id"] == "u-1", "{created}");
        assert_eq!(socket.next()["params"]["item"]["job"], "u-1");
        running.stop();
    }
}
