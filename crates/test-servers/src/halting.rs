//! A TCP proxy to a Redis server that lets a number of commands pass, and then no byte more in either way. Connections
//! stay open, so that its clients notice nothing.

use std::future::pending;
use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Moment of the halt, as seen by the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Halt {
    /// Before the command after this number of commands.
    Before(usize),
    /// After this number of commands. The reply to the last one is lost.
    After(usize),
}

/// State of all connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Counting(Halt),
    Halted,
}

/// A proxy to a server. It ends when this is dropped.
#[derive(Debug)]
pub struct Halting {
    at: SocketAddr,
    state: watch::Sender<State>,
    _ways: JoinSet<()>,
}

impl Halting {
    /// Starts a proxy to `server`.
    ///
    /// # Errors
    /// Loopback has no free port.
    pub async fn to(server: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let at = listener.local_addr()?;
        let state = watch::Sender::new(State::Open);
        let mut ways = JoinSet::new();
        ways.spawn(accept(listener, server, state.clone()));
        Ok(Self {
            at,
            state,
            _ways: ways,
        })
    }

    /// Returns the address of the proxy.
    #[must_use]
    pub const fn at(&self) -> SocketAddr {
        self.at
    }

    /// Counts the commands of all connections from now on.
    pub fn halt(&self, halt: Halt) {
        self.state.send_replace(State::Counting(halt));
    }

    /// Returns true if nothing passes any more.
    #[must_use]
    pub fn is_halted(&self) -> bool {
        *self.state.borrow() == State::Halted
    }
}

async fn accept(listener: TcpListener, server: SocketAddr, state: watch::Sender<State>) {
    let mut ways = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        while ways.try_join_next().is_some() {}
        let state = state.clone();
        ways.spawn(async move {
            let Ok(server) = TcpStream::connect(server).await else {
                return;
            };
            let (from_client, to_client) = client.into_split();
            let (from_server, to_server) = server.into_split();
            tokio::select! {
                // Either end may close it.
                _ = commands(from_client, to_server, &state) => {}
                _ = replies(from_server, to_client, &state) => {}
            }
        });
    }
}

async fn commands(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    state: &watch::Sender<State>,
) -> io::Result<()> {
    let mut bytes = Vec::new();
    while from.read_buf(&mut bytes).await? > 0 {
        while let Some(length) = length_of_command(&bytes) {
            if !passes(state) {
                return pending().await;
            }
            to.write_all(&bytes[..length]).await?;
            bytes.drain(..length);
        }
    }
    Ok(())
}

async fn replies(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    state: &watch::Sender<State>,
) -> io::Result<()> {
    let mut bytes = Vec::new();
    while from.read_buf(&mut bytes).await? > 0 {
        if *state.borrow() == State::Halted {
            return pending().await;
        }
        to.write_all(&bytes).await?;
        bytes.clear();
    }
    Ok(())
}

/// Counts a command. Returns true if it passes.
fn passes(state: &watch::Sender<State>) -> bool {
    let mut passes = true;
    state.send_modify(|state| {
        (*state, passes) = match *state {
            State::Open => (State::Open, true),
            State::Counting(Halt::Before(0)) | State::Halted => (State::Halted, false),
            State::Counting(Halt::Before(left)) => (State::Counting(Halt::Before(left - 1)), true),
            State::Counting(Halt::After(0 | 1)) => (State::Halted, true),
            State::Counting(Halt::After(left)) => (State::Counting(Halt::After(left - 1)), true),
        };
    });
    passes
}

/// Returns the length of the first command, once it is whole: `*2`, and then `$3` and three bytes for each word.
fn length_of_command(bytes: &[u8]) -> Option<usize> {
    let (words, mut at) = number(bytes, 0)?;
    for _ in 0..words {
        let (length, next) = number(bytes, at)?;
        at = next + length + 2;
    }
    (bytes.len() >= at).then_some(at)
}

/// Returns the number of a line, behind its sign, and the start of the next line.
fn number(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let line = bytes.get(at + 1..)?;
    let end = line.windows(2).position(|two| two == b"\r\n")?;
    let number = std::str::from_utf8(&line[..end]).ok()?.parse().ok()?;
    Some((number, at + 1 + end + 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_its_length_once_it_is_whole() {
        let bytes = b"*2\r\n$3\r\nGET\r\n$1\r\nx\r\n*1\r\n$4\r\nPING\r\n";
        assert_eq!(length_of_command(bytes), Some(20));
        assert_eq!(length_of_command(&bytes[20..]), Some(14));
        for end in 0..20 {
            assert_eq!(length_of_command(&bytes[..end]), None, "{end}");
        }
    }

    #[test]
    fn commands_pass_up_to_the_halt() {
        for (halt, passed, halted) in [
            (Halt::Before(1), vec![true, false, false], true),
            (Halt::After(2), vec![true, true, false], true),
            (Halt::After(4), vec![true, true, true], false),
        ] {
            let state = watch::Sender::new(State::Counting(halt));
            let got: Vec<_> = (0..3).map(|_| passes(&state)).collect();
            assert_eq!(got, passed, "{halt:?}");
            assert_eq!(*state.borrow() == State::Halted, halted, "{halt:?}");
        }
    }
}
