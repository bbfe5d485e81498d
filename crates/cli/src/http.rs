//! Serving HTTP/1.1 at an address, whatever is served: everything that a client may take up is bounded.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The longest head of a request in bytes: a browser's is shorter.
const HEAD: usize = 16 * 1024;
/// How long a client may take over the head of a request.
const HEAD_WITHIN: Duration = Duration::from_secs(5);
/// Between two attempts to take a connection while the system has no room for one.
const NO_ROOM: Duration = Duration::from_millis(100);

/// Why nothing is served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BindError {
    #[error(
        "cannot serve {what} at {address}: another process has this address; give another one, or port 0 for a free one"
    )]
    Taken {
        what: &'static str,
        address: SocketAddr,
    },
    #[error("cannot serve {what} at {address}: {source}")]
    System {
        what: &'static str,
        address: SocketAddr,
        source: io::Error,
    },
}

/// What clients may take up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Connections at once; more wait until one is over.
    pub(crate) connections: usize,
    /// How long one lasts, so that nobody who reads slowly, or not at all, keeps a place.
    pub(crate) lasts: Duration,
    /// How long what is under way then, or when the serving ends, may still take.
    pub(crate) grace: Duration,
}

/// An address that is taken.
#[derive(Debug)]
pub(crate) struct Listener {
    listener: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Takes an address, to serve `what` there.
    pub(crate) async fn bind(address: SocketAddr, what: &'static str) -> Result<Self, BindError> {
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
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until it is told to stop, and then until what is under way has ended, or its grace is over.
    pub(crate) async fn serve(self, router: Router, bounds: Bounds, stop: CancellationToken) {
        let places = Arc::new(Semaphore::new(bounds.connections));
        let open = TaskTracker::new();
        let accepts = accept(self.listener, &places, |stream, place| {
            let (router, stop) = (router.clone(), stop.clone());
            open.spawn(async move {
                connection(stream, router, bounds, stop).await;
                drop(place);
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

/// Takes connections while there are places for them.
async fn accept(
    listener: TcpListener,
    places: &Arc<Semaphore>,
    take: impl Fn(TcpStream, OwnedSemaphorePermit),
) {
    // Nobody closes it.
    while let Ok(place) = Arc::clone(places).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => take(stream, place),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be taken");
                tokio::time::sleep(NO_ROOM).await;
            }
        }
    }
}

/// One connection. Whoever is late, or talks no HTTP, is left alone.
async fn connection(stream: TcpStream, router: Router, bounds: Bounds, stop: CancellationToken) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_buf_size(HEAD)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    tokio::pin!(connection);
    tokio::select! {
        _ = &mut connection => return,
        () = stop.cancelled() => {}
        () = tokio::time::sleep(bounds.lasts) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = tokio::time::timeout(bounds.grace, connection).await;
}
