//! A way to a server on which everything stands still from a moment that a test names until it says that it goes on: so
//! it looks to a process that was stopped, or to one whose network lost what it was told.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// A way to a server. It ends when this is dropped.
#[derive(Debug)]
pub struct Stalling {
    url: String,
    still: watch::Sender<bool>,
    _ways: JoinSet<()>,
}

impl Stalling {
    /// A way to the server of `url` (`redis://host:port…`) that stands still as soon as the server says `word` on it.
    /// What has that word in it, and what comes after it, on any connection and to either side, arrives when it goes on.
    ///
    /// # Errors
    /// If there is no free port on loopback.
    ///
    /// # Panics
    /// If `url` is no such address.
    pub async fn at(word: &'static str, url: &str) -> io::Result<Self> {
        let (scheme, rest) = url.split_once("://").expect("an address has a scheme");
        let (server, path) = rest.split_once('/').unwrap_or((rest, ""));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let here = listener.local_addr()?;
        let still = watch::Sender::new(false);
        let mut ways = JoinSet::new();
        ways.spawn(forward(listener, server.to_owned(), word, still.clone()));
        Ok(Self {
            url: format!("{scheme}://{here}/{path}"),
            still,
            _ways: ways,
        })
    }

    /// The address of the server by this way.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns when everything stands still.
    pub async fn stands_still(&self) {
        // The sender is in `self`.
        let _ = self.still.subscribe().wait_for(|still| *still).await;
    }

    /// All goes on, and does not stand still again.
    pub fn goes_on(&self) {
        self.still.send_replace(false);
    }
}

async fn forward(
    listener: TcpListener,
    server: String,
    word: &'static str,
    still: watch::Sender<bool>,
) {
    let (mut ways, said) = (JoinSet::new(), Arc::new(AtomicBool::new(false)));
    while let Ok((client, _)) = listener.accept().await {
        let Ok(server) = TcpStream::connect(&server).await else {
            continue;
        };
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        let (listens, first) = (still.clone(), said.clone());
        ways.spawn(way(from_client, to_server, still.subscribe(), |_| {}));
        ways.spawn(way(
            from_server,
            to_client,
            still.subscribe(),
            move |bytes| {
                let has_word = bytes
                    .windows(word.len())
                    .any(|part| part == word.as_bytes());
                // Only the first time: then it has gone on.
                if has_word && !first.swap(true, Ordering::Relaxed) {
                    listens.send_replace(true);
                }
            },
        ));
    }
}

/// One direction of one connection.
async fn way(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut still: watch::Receiver<bool>,
    heard: impl Fn(&[u8]),
) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(many @ 1..) = from.read(&mut bytes).await {
        heard(&bytes[..many]);
        let goes_on = still.wait_for(|still| !still).await.map(drop);
        if goes_on.is_err() || to.write_all(&bytes[..many]).await.is_err() {
            return;
        }
    }
}
