//! A fake that answers a client's handshake like a suitable server, and nothing after it, like a server that fails
//! right then behind a fixed address. It stores nothing.

use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpStream};

use super::listen;
use super::redis6::{handshake, read_command};

/// A server on a free port of loopback that is silent after the handshake, until the end of the process.
pub struct FakeSilent {
    address: SocketAddr,
}

impl FakeSilent {
    /// Starts to listen.
    ///
    /// # Panics
    /// Loopback has no free port.
    #[must_use]
    pub fn start() -> Self {
        let address = listen(|client| _ = serve(client));
        Self { address }
    }

    /// Returns the URL of its database 0.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://{}/0", self.address)
    }
}

fn serve(client: &TcpStream) -> Option<()> {
    let mut input = BufReader::new(client);
    let mut output = client;
    loop {
        let words = read_command(&mut input)?;
        let reply = match words.get(1).map(String::as_str) {
            Some("SETINFO") => Some("+OK\r\n".to_owned()),
            _ => handshake(&words, "7.4.0"),
        };
        if let Some(reply) = reply {
            output.write_all(reply.as_bytes()).ok()?;
        }
    }
}
