//! Servers behind the guard under attack, the gateway and the supervisor: web pages of other hosts, idle and slow
//! connections, big bodies, requests with two lengths.

mod connections;
mod requests;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use rustix::net::{AddressFamily, SocketType};

use crate::api::{Server, bearer};
use crate::common::http::{Came, JSON, gateway, service, text};
use crate::common::{BOUND, Ground, Running};

/// A server behind the guard.
trait Target {
    /// Path of a request that every client with the token may send.
    const PATH: &str;
    const BODY: &str;
    /// Part of its answer.
    const ANSWER: &str;
    /// Option for the number of requests at once.
    const REQUESTS: &str;
    /// Code of the refusal of a body that is no JSON.
    const NO_JSON: &str;
    /// Status of the answer to a request without the token.
    const NO_TOKEN: u16;

    /// Starts one, with or without a token.
    fn start(ground: &Ground, words: &[&str], token: bool) -> Started;

    /// Code of a refusal.
    fn code(came: &Came) -> String;
}

/// A server that runs.
struct Started {
    running: Vec<Running>,
    address: String,
    /// The header with its token.
    token: String,
}

impl Started {
    fn stop(self) {
        for running in self.running {
            running.stop();
        }
    }
}

struct Gateway;

impl Target for Gateway {
    const PATH: &str = "/actions/demo/batch/count";
    const BODY: &str = "{\"items\":[]}";
    const ANSWER: &str = "{\"count\":0}";
    const REQUESTS: &str = "--concurrency";
    const NO_JSON: &str = "BAD_BODY";
    const NO_TOKEN: u16 = 401;

    fn start(ground: &Ground, words: &[&str], token: bool) -> Started {
        let service = service(ground, "streams");
        let (gateway, address) = gateway(ground, words, token.then_some("sesame"));
        Started {
            running: vec![gateway, service],
            address,
            token: bearer("sesame"),
        }
    }

    fn code(came: &Came) -> String {
        came.code()
    }
}

struct Supervisor;

impl Target for Supervisor {
    const PATH: &str = "/rpc";
    const BODY: &str = "{\"jsonrpc\":\"2.0\",\"method\":\"system.info\",\"id\":1}";
    const ANSWER: &str = "\"result\"";
    const REQUESTS: &str = "--requests";
    const NO_JSON: &str = "PARSE_ERROR";
    /// JSON-RPC has its error in the body.
    const NO_TOKEN: u16 = 200;

    fn start(ground: &Ground, words: &[&str], token: bool) -> Started {
        let (server, token) = match token {
            true => {
                let key = ground
                    .run(&["key", "create", "root", "--scope", "viewer"])
                    .ok();
                (Server::start(ground, words), bearer(key.stdout.trim()))
            }
            false => {
                let words = [words, &["--insecure-no-auth"]].concat();
                (Server::start(ground, &words), String::new())
            }
        };
        Started {
            running: vec![server.running],
            address: server.api.address,
            token,
        }
    }

    fn code(came: &Came) -> String {
        let json = came.json();
        let code = json["code"]
            .as_str()
            .or(json["error"]["data"]["code"].as_str());
        code.unwrap_or_default().to_uppercase()
    }
}

/// An answer on a connection that goes on.
fn answer(stream: &mut TcpStream) -> Came {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        let read = stream.read(&mut byte).unwrap();
        assert_eq!(read, 1, "closed after {:?}", String::from_utf8_lossy(&head));
        head.extend(byte);
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let mut came = Came {
        status,
        raw_head: head.clone(),
        head,
        body: String::new(),
    };
    if let Some(length) = came.header("content-length") {
        let mut body = vec![0; length.parse().unwrap()];
        stream.read_exact(&mut body).unwrap();
        came.body = String::from_utf8(body).unwrap();
    }
    came
}

/// The same request, but its connection goes on.
fn kept<T: Target>(address: &str, headers: &str) -> String {
    let request = text(address, T::PATH, &format!("{JSON}{headers}"), T::BODY);
    request.replace("connection: close\r\n", "")
}

/// A connection from another address of this machine.
fn from(source: [u8; 4], address: &str, request: &str) -> TcpStream {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    rustix::net::bind(&socket, &SocketAddr::from((source, 0))).unwrap();
    rustix::net::connect(&socket, &address.parse::<SocketAddr>().unwrap()).unwrap();
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(BOUND)).unwrap();
    stream.write_all(request.as_bytes()).ok();
    stream
}

/// Runs each of these on all data, against both servers.
macro_rules! on_both_servers {
    ($($name:ident)+) => {
        $(
            mod $name {
                use super::*;

                #[test]
                fn gateway_on_redis() {
                    if let Some(ground) = Ground::redis() {
                        super::$name::<Gateway>(&ground);
                    }
                }

                #[test]
                fn gateway_embedded() {
                    if let Some(ground) = Ground::embedded() {
                        super::$name::<Gateway>(&ground);
                    }
                }

                #[test]
                fn supervisor_on_redis() {
                    if let Some(ground) = Ground::redis() {
                        super::$name::<Supervisor>(&ground);
                    }
                }

                #[test]
                fn supervisor_embedded() {
                    if let Some(ground) = Ground::embedded() {
                        super::$name::<Supervisor>(&ground);
                    }
                }
            }
        )+
    };
}
use on_both_servers;
