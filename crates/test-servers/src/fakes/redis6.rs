//! A fake that answers a client's handshake like Redis 6.2, and records all commands, so that a test can check that
//! nothing was written. It stores nothing.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use super::listen;

const VERSION: &str = "6.2.14";

/// A fake Redis 6.2.14 on a free port of loopback, until the end of the process.
pub struct FakeRedis6 {
    address: SocketAddr,
    commands: Arc<Mutex<Vec<String>>>,
}

impl FakeRedis6 {
    /// Starts to listen.
    ///
    /// # Panics
    /// Loopback has no free port.
    #[must_use]
    pub fn start() -> Self {
        let commands = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&commands);
        let address = listen(move |client| _ = serve(client, &seen));
        Self { address, commands }
    }

    /// Returns the URL of its database 0.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://{}/0", self.address)
    }

    /// Returns every command so far, as words in one line.
    ///
    /// # Panics
    /// The thread of a connection panicked.
    #[must_use]
    pub fn commands(&self) -> Vec<String> {
        self.commands
            .lock()
            .expect("no connection panicked")
            .clone()
    }
}

fn serve(client: &TcpStream, seen: &Mutex<Vec<String>>) -> Option<()> {
    let mut input = BufReader::new(client);
    let mut output = client;
    loop {
        let words = read_command(&mut input)?;
        let unknown = || format!("-ERR unknown command `{}`\r\n", words[0].to_uppercase());
        let reply = handshake(&words, VERSION).unwrap_or_else(unknown);
        seen.lock()
            .expect("no connection panicked")
            .push(words.join(" "));
        output.write_all(reply.as_bytes()).ok()?;
    }
}

/// One command, an array of bulk strings; `None` at the end of the stream.
pub(super) fn read_command(input: &mut impl BufRead) -> Option<Vec<String>> {
    let count = read_number(input, '*')?;
    (0..count)
        .map(|_| {
            let mut bulk = vec![0; read_number(input, '$')? + 2];
            input.read_exact(&mut bulk).ok()?;
            bulk.truncate(bulk.len() - 2);
            String::from_utf8(bulk).ok()
        })
        .collect()
}

fn read_number(input: &mut impl BufRead, sign: char) -> Option<usize> {
    let mut line = String::new();
    input.read_line(&mut line).ok()?;
    line.trim_end().strip_prefix(sign)?.parse().ok()
}

/// Returns the answer of a server of this version to a command of a client's handshake; `None` to any other.
pub(super) fn handshake(words: &[String], version: &str) -> Option<String> {
    let word = |at: usize| {
        words
            .get(at)
            .map(|word| word.to_uppercase())
            .unwrap_or_default()
    };
    let bulk = |text: &str| format!("${}\r\n{text}\r\n", text.len());
    let hello = ["server", "redis", "version", version, "proto"].map(bulk);
    let hello = hello.concat();
    Some(match (word(0).as_str(), word(1).as_str()) {
        ("PING", _) => "+PONG\r\n".to_owned(),
        ("SELECT" | "AUTH" | "QUIT", _) | ("CLIENT", "SETNAME") => "+OK\r\n".to_owned(),
        ("INFO", _) => bulk(&format!(
            "# Server\r\nredis_version:{version}\r\nredis_mode:standalone\r\n"
        )),
        ("HELLO", "3") => format!("%3\r\n{hello}:3\r\n"),
        ("HELLO", _) => format!("*6\r\n{hello}:2\r\n"),
        ("CONFIG", "GET") => "*2\r\n$16\r\nmaxmemory-policy\r\n$10\r\nnoeviction\r\n".to_owned(),
        _ => return None,
    })
}
