//! The HTTP endpoint of a process: `/metrics`, `/healthz` and `/readyz`. Everything a client may take up is
//! bounded. It has no secrets to keep and no login: who may reach it, the address says.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::routing::get;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use meshwork::Monitor;
use meshwork::metrics::{Format, Metrics};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::task::AbortOnDropHandle;

/// Connections at once: a few scrapers and the checks of a platform; more wait until one is over.
const CONNECTIONS: usize = 64;
/// The longest head of a request in bytes: a browser's is shorter.
const HEAD: usize = 16 * 1024;
/// How long a client may take over the head of a request.
const HEAD_WITHIN: Duration = Duration::from_secs(5);
/// How long a connection lasts, so that nobody who reads slowly, or not at all, keeps a place.
const CONNECTION: Duration = Duration::from_secs(60);
/// Between two attempts to take a connection while the system has no room for one.
const NO_ROOM: Duration = Duration::from_millis(100);

/// Why nothing is served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EndpointError {
    #[error(
        "cannot serve metrics at {address}: another process has this address; give another one, or port 0 for a free one"
    )]
    Taken { address: SocketAddr },
    #[error("cannot serve metrics at {address}: {source}")]
    System {
        address: SocketAddr,
        source: io::Error,
    },
}

/// An address that is taken.
#[derive(Debug)]
pub(crate) struct Endpoint {
    listener: TcpListener,
    address: SocketAddr,
}

/// An endpoint that serves, until this is dropped.
#[derive(Debug)]
pub(crate) struct Served {
    address: SocketAddr,
    task: AbortOnDropHandle<()>,
}

/// What is told.
#[derive(Debug)]
struct Told {
    metrics: Metrics,
    monitor: Option<Monitor>,
}

impl Endpoint {
    /// Takes an address, if there is one.
    pub(crate) async fn bind(address: Option<SocketAddr>) -> Result<Option<Self>, EndpointError> {
        let Some(address) = address else {
            return Ok(None);
        };
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => EndpointError::Taken { address },
            _ => EndpointError::System { address, source },
        };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Some(Self { listener, address }))
    }

    /// Serves from now on. Without a worker, a process is healthy while it answers, and ready while the store
    /// does.
    pub(crate) fn serve(self, metrics: Metrics, monitor: Option<Monitor>) -> Served {
        let router = Router::new()
            .route("/metrics", get(page))
            .route("/healthz", get(health))
            .route("/readyz", get(readiness))
            .with_state(Arc::new(Told { metrics, monitor }));
        Served {
            address: self.address,
            task: AbortOnDropHandle::new(tokio::spawn(accept(self.listener, router))),
        }
    }
}

impl Served {
    /// Where the metrics are.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/metrics", self.address)
    }

    /// Goes on until the process is told to end.
    pub(crate) async fn forever(self) {
        // It ends only if it panics, and then it has said so.
        let _ = self.task.await;
    }
}

async fn accept(listener: TcpListener, router: Router) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    // Nobody closes it.
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                let router = router.clone();
                tokio::spawn(async move {
                    // Whoever is late, or talks no HTTP, is left alone.
                    let _ = tokio::time::timeout(CONNECTION, connection(stream, router)).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection to the metrics could not be taken");
                tokio::time::sleep(NO_ROOM).await;
            }
        }
    }
}

async fn connection(stream: TcpStream, router: Router) -> hyper::Result<()> {
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_buf_size(HEAD)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
        .await
}

type Page = ([(HeaderName, &'static str); 2], String);

async fn page(State(told): State<Arc<Told>>, headers: HeaderMap) -> Page {
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    let format = Format::accepted(accept);
    let headers = [
        (CONTENT_TYPE, format.content_type()),
        (CACHE_CONTROL, "no-store"),
    ];
    (headers, told.metrics.text(format).await)
}

async fn health(State(told): State<Arc<Told>>) -> (StatusCode, String) {
    match told.monitor.as_ref().map(Monitor::healthy) {
        None | Some(Ok(())) => answer(Ok("healthy")),
        Some(Err(unfit)) => answer(Err(unfit.to_string())),
    }
}

async fn readiness(State(told): State<Arc<Told>>) -> (StatusCode, String) {
    match &told.monitor {
        Some(monitor) => answer(monitor.ready().map(|()| "ready").map_err(|e| e.to_string())),
        None if told.metrics.shared().is_up().await => answer(Ok("ready")),
        None => answer(Err("the store does not answer".to_owned())),
    }
}

fn answer(fit: Result<&str, String>) -> (StatusCode, String) {
    match fit {
        Ok(word) => (StatusCode::OK, format!("{word}\n")),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
    }
}
