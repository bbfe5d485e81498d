//! A proxy to a server that stalls from a given moment until it is resumed, like a suspended process or a network
//! that loses packets.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// A proxy to a server. It ends when this is dropped.
#[derive(Debug)]
pub struct Stalling {
    url: String,
    still: watch::Sender<bool>,
    _ways: JoinSet<()>,
}

impl Stalling {
    /// Starts a proxy to the server of `url` (`redis://host:port…`) that stalls as soon as the server sends `word`.
    /// The data with that word, and all later data on any connection in both directions, arrives after the resume.
    ///
    /// # Errors
    /// Loopback has no free port.
    ///
    /// # Panics
    /// `url` is not of this form.
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

    /// Returns the address of the proxy.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns when the proxy stalls.
    pub async fn stands_still(&self) {
        // The sender is in `self`.
        let _ = self.still.subscribe().wait_for(|still| *still).await;
    }

    /// Resumes the proxy, which does not stall again.
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
                // Only the first time: the proxy does not stall again after a resume.
                if has_word && !first.swap(true, Ordering::Relaxed) {
                    listens.send_replace(true);
                }
            },
        ));
    }
}

/// Forwards one direction of one connection.
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
