//! A fake daemon inside the process of a test.

use std::net::SocketAddr;
use std::time::Duration;

use data_encoding::HEXLOWER;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

use super::node::Node;
use super::{PublicKey, link, router};

/// Bound of the end of a daemon.
const END: Duration = Duration::from_secs(5);

/// A fake daemon with a key and ports of its own. It ends with the value.
pub struct FakeMycelium {
    runtime: Option<Runtime>,
    pk: PublicKey,
    peers: Vec<SocketAddr>,
    link: SocketAddr,
    rpc: SocketAddr,
}

impl FakeMycelium {
    /// Starts a daemon with links to `peers`.
    ///
    /// # Panics
    /// Loopback has no free port.
    #[must_use]
    pub fn start(peers: &[SocketAddr]) -> Self {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut daemon = Self {
            runtime: None,
            pk: HEXLOWER.encode(&rand::random::<[u8; 32]>()),
            peers: peers.to_vec(),
            link: any,
            rpc: any,
        };
        daemon.serve();
        daemon
    }

    fn serve(&mut self) {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("the system has threads");
        let bind = async |at| TcpListener::bind(at).await.expect("the port is free");
        let node = Node::new(self.pk.clone());
        let (links, rpc) =
            runtime.block_on(async { (bind(self.link).await, bind(self.rpc).await) });
        let address = |socket: &TcpListener| socket.local_addr().expect("it is bound");
        (self.link, self.rpc) = (address(&links), address(&rpc));
        let peers = self.peers.clone();
        runtime.spawn(async move {
            link::start(&node, links, peers);
            let _ = axum::serve(rpc, router(node)).await;
        });
        self.runtime = Some(runtime);
    }

    /// Ends the daemon, which loses all its messages.
    pub fn stop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(END);
        }
    }

    /// Starts the daemon again after [`Self::stop`], with the same key and ports.
    pub fn start_again(&mut self) {
        self.stop();
        self.serve();
    }

    /// Returns the address for links of other daemons.
    #[must_use]
    pub const fn link(&self) -> SocketAddr {
        self.link
    }

    /// Returns its public key.
    #[must_use]
    pub fn pk(&self) -> &str {
        &self.pk
    }

    /// Returns the URL of its JSON-RPC API.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.rpc)
    }
}

impl Drop for FakeMycelium {
    fn drop(&mut self) {
        self.stop();
    }
}
