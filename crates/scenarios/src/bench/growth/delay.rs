//! A delay between clients and the server, in each direction, as `tc netem delay` adds it. Threads wait, since timers of
//! the runtime are no finer than a millisecond.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use meshwork::Client;

use super::super::BenchError;
use super::super::ground::connect;

/// Bytes of one read.
const CHUNK: usize = 1 << 16;
/// Chunks that are under way at most in one direction of a connection.
const UNDER_WAY: usize = 4_096;

/// A link with a delay. Connections end with the server.
pub(super) struct Delayed {
    here: SocketAddr,
}

impl Delayed {
    /// Opens a link to the server at a port of loopback.
    pub(super) fn before(port: u16, delay: Duration) -> io::Result<Self> {
        let server = ("127.0.0.1", port);
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let here = listener.local_addr()?;
        // The thread lives as long as the program, which measures and ends.
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // Without a server the connection ends, which the client reports.
                let _ = TcpStream::connect(server).and_then(|server| join(&client, &server, delay));
            }
        });
        Ok(Self { here })
    }

    /// Returns a client over this link, with its own connections.
    pub(super) async fn client(&self) -> Result<Client, BenchError> {
        connect(&format!("redis://{}/0", self.here)).await
    }
}

/// Forwards both directions.
fn join(client: &TcpStream, server: &TcpStream, delay: Duration) -> io::Result<()> {
    for (from, to) in [(client, server), (server, client)] {
        from.set_nodelay(true)?;
        forward(from.try_clone()?, to.try_clone()?, delay);
    }
    Ok(())
}

/// Forwards one direction in two threads: one reads at once, the other writes each chunk when its time has come.
fn forward(mut from: TcpStream, mut to: TcpStream, delay: Duration) {
    let (sender, chunks) = mpsc::sync_channel::<(Instant, Vec<u8>)>(UNDER_WAY);
    thread::spawn(move || {
        let mut bytes = vec![0; CHUNK];
        while let Ok(many @ 1..) = from.read(&mut bytes) {
            let due = Instant::now() + delay;
            if sender.send((due, bytes[..many].to_vec())).is_err() {
                return;
            }
        }
    });
    thread::spawn(move || {
        for (due, bytes) in chunks {
            // It may also return early.
            while Instant::now() < due {
                thread::park_timeout(due.saturating_duration_since(Instant::now()));
            }
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        // Either side may be closed already.
        let _ = to.shutdown(Shutdown::Both);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_are_delayed_and_a_close_is_passed_on() {
        let server = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = server.local_addr().unwrap().port();
        let delay = Duration::from_millis(20);
        let link = Delayed::before(port, delay).unwrap();
        let mut client = TcpStream::connect(link.here).unwrap();
        let (mut peer, _) = server.accept().unwrap();
        let began = Instant::now();
        client.write_all(b"ping").unwrap();
        let mut said = [0; 4];
        peer.read_exact(&mut said).unwrap();
        assert!(began.elapsed() >= delay);
        peer.write_all(&said).unwrap();
        client.read_exact(&mut said).unwrap();
        assert!(&said == b"ping" && began.elapsed() >= 2 * delay);
        drop(peer);
        assert_eq!(client.read(&mut said).unwrap(), 0);
    }
}
