//! A fake: it answers like a Redis 6.2 as far as a client's handshake goes, and remembers what it
//! was asked, so that a test sees that nothing was written to it. It stores nothing.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

const INFO: &str = "# Server\r\nredis_version:6.2.14\r\nredis_mode:standalone\r\n";

/// A fake Redis 6.2.14 on a free port of loopback, until the end of the process.
pub struct FakeRedis6 {
    address: SocketAddr,
    commands: Arc<Mutex<Vec<String>>>,
}

impl FakeRedis6 {
    /// Starts to listen.
    ///
    /// # Panics
    /// When loopback has no free port.
    #[must_use]
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let address = listener
            .local_addr()
            .expect("a bound socket has an address");
        let commands = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&commands);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let seen = Arc::clone(&seen);
                thread::spawn(move || serve(&client, &seen));
            }
        });
        Self { address, commands }
    }

    /// The URL of its database 0.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://{}/0", self.address)
    }

    /// Every command so far, as words in one line.
    ///
    /// # Panics
    /// When a connection's thread panicked.
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
        let reply = reply_to(&words);
        seen.lock()
            .expect("no connection panicked")
            .push(words.join(" "));
        output.write_all(reply.as_bytes()).ok()?;
    }
}

/// One command, an array of bulk strings; `None` at the end of the stream.
fn read_command(input: &mut impl BufRead) -> Option<Vec<String>> {
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

fn reply_to(words: &[String]) -> String {
    let word = |at: usize| {
        words
            .get(at)
            .map(|word| word.to_uppercase())
            .unwrap_or_default()
    };
    match (word(0).as_str(), word(1).as_str()) {
        ("PING", _) => "+PONG\r\n".to_owned(),
        ("SELECT" | "AUTH" | "QUIT", _) | ("CLIENT", "SETNAME") => "+OK\r\n".to_owned(),
        ("INFO", _) => format!("${}\r\n{INFO}\r\n", INFO.len()),
        ("HELLO", "3") => format!("%3\r\n{HELLO}:3\r\n"),
        ("HELLO", _) => format!("*6\r\n{HELLO}:2\r\n"),
        ("CONFIG", "GET") => "*2\r\n$16\r\nmaxmemory-policy\r\n$10\r\nnoeviction\r\n".to_owned(),
        (command, _) => format!("-ERR unknown command `{command}`\r\n"),
    }
}

const HELLO: &str =
    "$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n6.2.14\r\n$5\r\nproto\r\n";
