//! Server-sent events, as a program reads them that has nothing but a socket.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;

use serde_json::Value;

use super::Api;
use crate::common::http::{came, connect};
use crate::common::{BOUND, json};

/// An event.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) data: Value,
}

/// A stream of events.
pub(crate) struct Events(BufReader<Chunks>);

/// The body of a response, without the lengths of its chunks.
struct Chunks {
    stream: BufReader<TcpStream>,
    left: usize,
}

impl Read for Chunks {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        while self.left == 0 {
            let mut line = String::new();
            if self.stream.read_line(&mut line)? == 0 {
                return Ok(0);
            }
            if !line.trim().is_empty() {
                self.left = usize::from_str_radix(line.trim(), 16).unwrap();
                if self.left == 0 {
                    return Ok(0);
                }
            }
        }
        let most = self.left.min(buffer.len());
        let read = self.stream.read(&mut buffer[..most])?;
        self.left -= read;
        Ok(read)
    }
}

/// A connection with a small buffer: what its client does not read soon waits in the server.
pub(crate) fn narrow(address: &str) -> TcpStream {
    use rustix::net::{AddressFamily, SocketType, sockopt};
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    sockopt::set_socket_recv_buffer_size(&socket, 2048).unwrap();
    let address: std::net::SocketAddr = address.parse().unwrap();
    rustix::net::connect(&socket, &address).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(BOUND)).unwrap();
    stream
}

/// A request for a stream.
pub(crate) fn request(server: &Api, path: &str, headers: &str) -> String {
    let address = &server.address;
    format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n{headers}\r\n")
}

impl Events {
    /// Subscribes; what comes from now on is not missed.
    pub(crate) fn open(server: &Api, path: &str, headers: &str) -> Self {
        Self::over(connect(&server.address, &request(server, path, headers)))
    }

    /// Reads the head of a response.
    pub(crate) fn over(stream: TcpStream) -> Self {
        let mut stream = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(stream.read_line(&mut head).unwrap(), 0, "{head}");
        }
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert!(head.contains("text/event-stream"), "{head}");
        Self(BufReader::new(Chunks { stream, left: 0 }))
    }

    /// The next event; none if the stream has ended.
    pub(crate) fn try_next(&mut self) -> Option<Event> {
        let mut event = Event {
            id: String::new(),
            kind: String::new(),
            data: Value::Null,
        };
        loop {
            let mut line = String::new();
            // A stream that is cut may end within a line, and with an error.
            if self.0.read_line(&mut line).is_err() || !line.ends_with('\n') {
                return None;
            }
            match line.trim_end().split_once(": ") {
                Some(("id", text)) => text.clone_into(&mut event.id),
                Some(("event", text)) => text.clone_into(&mut event.kind),
                Some(("data", text)) => event.data = json(text),
                None if !event.kind.is_empty() => return Some(event),
                _ => {}
            }
        }
    }

    /// Waits for a comment.
    pub(crate) fn comment(&mut self, text: &str) {
        let mut line = String::new();
        while line.trim_end() != format!(": {text}") {
            line.clear();
            assert_ne!(
                self.0.read_line(&mut line).unwrap(),
                0,
                "the stream goes on"
            );
        }
    }

    pub(crate) fn next(&mut self) -> Event {
        self.try_next().expect("the stream goes on")
    }

    /// Reads until the job has had this event.
    pub(crate) fn until(&mut self, job: &str, event: &str) -> Vec<Event> {
        let mut all = Vec::new();
        loop {
            let next = self.next();
            let found = next.data["job"] == job && next.data["event"] == event;
            all.push(next);
            if found {
                return all;
            }
        }
    }
}

/// The status of the response to a stream that is refused.
pub(crate) fn refused(server: &Api, path: &str, headers: &str) -> u16 {
    let headers = format!("connection: close\r\n{headers}");
    came(connect(&server.address, &request(server, path, &headers))).status
}
