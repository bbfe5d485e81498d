//! An HTTP/1.1 server for any router, with a bound on all that a client can take up. The [`guard`] checks requests.

mod closing;
pub mod guard;
mod heads;
mod proxied;
mod socket;
mod taken;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
pub(crate) use closing::{CUT_OFF, Closing};
use guard::{Connections, Limits, Permit, TOKEN_GRACE};
use heads::{Heads, TwoLengths};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
pub use socket::{Socket, SocketError};
use taken::Taken;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The longest head of a request in bytes: a browser's is shorter.
const HEAD: usize = 16 * 1024;
/// Pause before the next attempt to accept a connection while the system has no file descriptor left.
const NO_ROOM: Duration = Duration::from_millis(100);

/// Why nothing is served.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Another process has the address.
    #[error(
        "cannot serve {what} at {address}: another process has this address; give another one, or port 0 for a free one"
    )]
    Taken {
        /// The pages that were to be served.
        what: &'static str,
        /// The address.
        address: SocketAddr,
    },
    /// The system refuses the address.
    #[error("cannot serve {what} at {address}: {source}")]
    System {
        /// The pages that were to be served.
        what: &'static str,
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
}

/// Limits on clients.
#[derive(Debug, Clone)]
pub struct Bounds {
    /// Limits on connections.
    pub connections: Limits,
    /// Limits on the time of each.
    pub times: Times,
}

/// Limits on the time of a connection.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// Time for a whole head, counted from the end of the response before it: a connection without requests is closed
    /// after the same time.
    pub head_within: Duration,
    /// Longest life of a connection, so that a client that reads slowly, or not at all, does not keep one for ever.
    pub lasts: Duration,
    /// Time for the requests under way when a connection is to end, or the server.
    pub grace: Duration,
}

/// An address that is taken.
#[derive(Debug)]
pub struct Listener {
    listener: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Takes an address, to serve `what` there.
    ///
    /// # Errors
    /// If the address is taken, or the system refuses it.
    pub async fn bind(address: SocketAddr, what: &'static str) -> Result<Self, BindError> {
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => BindError::Taken { what, address },
            _ => BindError::System {
                what,
                address,
                source,
            },
        };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address })
    }

    /// The address, with its port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop`, and then until the requests under way have ended or their grace is over. Each request has the
    /// [`Permit`] of its connection as an extension.
    pub async fn serve(self, router: Router, bounds: Bounds, stop: CancellationToken) {
        let connections = Connections::new(bounds.connections);
        let (times, open) = (bounds.times, TaskTracker::new());
        let accepts = accept(self.listener, |mut stream, peer, local| {
            let permit = connections.admit(peer.ip(), local, Instant::now());
            let closing = Closing::new(&stop, times.grace, &open);
            let router = router.clone();
            open.spawn(async move {
                let permit = match permit.is_of_proxy() {
                    true => placed(&mut stream, permit, (times, &closing)).await,
                    false => Some(permit),
                };
                if let Some(permit) = permit {
                    connection(stream, router, times, permit, closing).await;
                }
            });
        });
        tokio::select! {
            () = stop.cancelled() => {}
            () = accepts => {}
        }
        open.close();
        open.wait().await;
    }
}

/// Accepts connections, for ever.
async fn accept(listener: TcpListener, take: impl Fn(TcpStream, SocketAddr, SocketAddr)) {
    loop {
        match listener.accept().await {
            // A connection that is over already has no address.
            Ok((stream, peer)) => match stream.local_addr() {
                Ok(local) => take(stream, peer, local),
                Err(error) => tracing::debug!(%error, "connection closed before it was accepted"),
            },
            Err(error) => {
                tracing::warn!(%error, "connection not accepted");
                tokio::time::sleep(NO_ROOM).await;
            }
        }
    }
}

/// Admits a connection of a trusted proxy as one from where the proxy says that it comes, if it says so. What breaks the
/// format is hung up on.
async fn placed(
    stream: &mut TcpStream,
    permit: Permit,
    (times, closing): (Times, &Closing),
) -> Option<Permit> {
    let source = tokio::select! {
        source = tokio::time::timeout(times.head_within, proxied::source(stream)) => source,
        () = permit.evicted().cancelled() => return None,
        () = closing.begins().cancelled() => return None,
    };
    match source {
        Ok(Ok(Some(source))) => Some(permit.moved(source, Instant::now())),
        Ok(Ok(None)) => Some(permit),
        Ok(Err(error)) => {
            tracing::debug!(%error, "connection of a proxy not served");
            None
        }
        Err(_) => None,
    }
}

/// Serves one connection. A client that is late, or talks no HTTP, is hung up on.
async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    times: Times,
    permit: Permit,
    closing: Closing,
) {
    let permit = Arc::new(permit);
    let router = TowerToHyperService::new(router);
    let (stream, found) = Heads::new(Taken::new(stream));
    let number = AtomicU64::new(0);
    let serves = service_fn(|mut request: hyper::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(Arc::clone(&permit));
        request.extensions_mut().insert(closing.clone());
        if found.is(number.fetch_add(1, Ordering::Relaxed) + 1) {
            request.extensions_mut().insert(TwoLengths);
        }
        router.call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(times.head_within)
        .max_buf_size(HEAD)
        .serve_connection(TokioIo::new(stream), serves)
        .with_upgrades();
    tokio::pin!(connection);
    let end_grace = async {
        tokio::time::sleep(TOKEN_GRACE).await;
        // After a stall, the requests that have come meanwhile are read first.
        tokio::task::yield_now().await;
        permit.end_grace(Instant::now());
        std::future::pending::<()>().await;
    };
    tokio::select! {
        biased;
        _ = &mut connection => return,
        () = permit.evicted().cancelled() => return,
        () = end_grace => {}
        () = closing.begins().cancelled() => {}
        () = tokio::time::sleep(times.lasts) => {}
    }
    closing.begin();
    connection.as_mut().graceful_shutdown();
    tokio::select! {
        () = permit.evicted().cancelled() => {}
        _ = tokio::time::timeout(times.grace, connection) => {}
    }
}

#[cfg(test)]
mod tests {
    use axum::Extension;
    use axum::extract::Request;
    use axum::http::StatusCode;
    use axum::http::header::{CONNECTION, UPGRADE};
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// Longer than any step takes here.
    const BOUND: Duration = Duration::from_secs(60);

    async fn take_over(
        Extension(permit): Extension<Arc<Permit>>,
        mut request: Request,
    ) -> (StatusCode, [(axum::http::HeaderName, &'static str); 2]) {
        let upgrade = hyper::upgrade::on(&mut request);
        tokio::spawn(async move {
            let mut io = TokioIo::new(upgrade.await.unwrap());
            io.write_all(b"taken over").await.unwrap();
            permit.evicted().cancelled().await;
        });
        let headers = [(CONNECTION, "upgrade"), (UPGRADE, "a-test")];
        (StatusCode::SWITCHING_PROTOCOLS, headers)
    }

    async fn taken_over(address: SocketAddr) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = b"GET / HTTP/1.1\r\nconnection: upgrade\r\nupgrade: a-test\r\n\r\n";
        stream.write_all(request).await.unwrap();
        let mut came = Vec::new();
        while !came.ends_with(b"taken over") {
            assert!(stream.read_buf(&mut came).await.unwrap() > 0);
        }
        stream
    }

    /// As a WebSocket does: it keeps its permit until it ends, and learns when it is evicted.
    #[tokio::test]
    async fn a_connection_that_is_taken_over_keeps_its_permit() {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = Listener::bind(address, "a test").await.unwrap();
        let address = listener.address();
        let bounds = Bounds {
            connections: Limits {
                total: 1,
                per_peer: 1,
                unauthenticated: None,
                proxies: guard::Proxies::NONE,
            },
            times: Times {
                head_within: BOUND,
                lasts: BOUND,
                grace: Duration::ZERO,
            },
        };
        let router = Router::new().route("/", get(take_over));
        let stop = CancellationToken::new();
        let serves = tokio::spawn(listener.serve(router, bounds, stop.clone()));
        let both = async {
            let mut first = taken_over(address).await;
            let _second = taken_over(address).await;
            assert_eq!(first.read(&mut [0]).await.unwrap(), 0);
        };
        tokio::time::timeout(BOUND, both).await.unwrap();
        stop.cancel();
        serves.await.unwrap();
    }
}
