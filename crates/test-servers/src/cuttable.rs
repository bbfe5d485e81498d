//! A TCP proxy whose connections can be cut, like a network that is away for a while.

use std::io;
use std::net::SocketAddr;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// A proxy to an address. It ends when this is dropped.
#[derive(Debug)]
pub struct Cuttable {
    at: SocketAddr,
    is_cut: watch::Sender<bool>,
    _ways: JoinSet<()>,
}

impl Cuttable {
    /// Starts a proxy to `server`.
    ///
    /// # Errors
    /// Loopback has no free port.
    pub async fn to(server: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let at = listener.local_addr()?;
        let is_cut = watch::Sender::new(false);
        let mut ways = JoinSet::new();
        ways.spawn(forward(listener, server, is_cut.clone()));
        Ok(Self {
            at,
            is_cut,
            _ways: ways,
        })
    }

    /// Returns the address of the proxy.
    #[must_use]
    pub const fn at(&self) -> SocketAddr {
        self.at
    }

    /// Ends all connections, and each new one, until [`Self::mend`].
    pub fn cut(&self) {
        self.is_cut.send_replace(true);
    }

    /// Accepts connections again.
    pub fn mend(&self) {
        self.is_cut.send_replace(false);
    }
}

async fn forward(listener: TcpListener, server: SocketAddr, is_cut: watch::Sender<bool>) {
    let mut ways = JoinSet::new();
    while let Ok((mut client, _)) = listener.accept().await {
        while ways.try_join_next().is_some() {}
        let mut cut = is_cut.subscribe();
        if *cut.borrow() {
            continue;
        }
        ways.spawn(async move {
            let way = async {
                let mut server = TcpStream::connect(server).await?;
                copy_bidirectional(&mut client, &mut server).await
            };
            tokio::select! {
                // Either end may close it.
                _ = way => {}
                _ = cut.wait_for(|cut| *cut) => {}
            }
        });
    }
}
