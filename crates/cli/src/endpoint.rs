//! HTTP endpoint of a process: `/metrics`, `/healthz` and `/readyz`. It has no secrets and no login; the address limits
//! access.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::routing::get;
use meshwork::Monitor;
use meshwork::metrics::{Format, Metrics};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::http::guard::Limits;
use crate::http::{BindError, Bounds, Listener};

/// Limits for a few scrapers and the checks of a platform.
const BOUNDS: Bounds = Bounds {
    connections: Limits {
        total: 64,
        per_peer: 64,
        unauthenticated: None,
    },
    head_within: Duration::from_secs(5),
    lasts: Duration::from_secs(60),
    grace: Duration::ZERO,
};

/// A bound address.
#[derive(Debug)]
pub(crate) struct Endpoint(Listener);

/// A running endpoint; stopped on drop.
#[derive(Debug)]
pub(crate) struct Served {
    address: SocketAddr,
    task: AbortOnDropHandle<()>,
}

/// Sources of the responses.
#[derive(Debug)]
struct Sources {
    metrics: Metrics,
    monitor: Option<Monitor>,
}

impl Endpoint {
    /// Binds an address, if there is one.
    pub(crate) async fn bind(address: Option<SocketAddr>) -> Result<Option<Self>, BindError> {
        match address {
            Some(address) => Ok(Some(Self(Listener::bind(address, "metrics").await?))),
            None => Ok(None),
        }
    }

    /// Starts to serve. Without a worker, a process is healthy while it answers, and ready while the store answers.
    pub(crate) fn serve(self, metrics: Metrics, monitor: Option<Monitor>) -> Served {
        let router = Router::new()
            .route("/metrics", get(page))
            .route("/healthz", get(health))
            .route("/readyz", get(readiness))
            .with_state(Arc::new(Sources { metrics, monitor }));
        let address = self.0.address();
        let serves = self.0.serve(router, BOUNDS, CancellationToken::new());
        Served {
            address,
            task: AbortOnDropHandle::new(tokio::spawn(serves)),
        }
    }
}

impl Served {
    /// URL of the metrics.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/metrics", self.address)
    }

    /// Serves until the process ends.
    pub(crate) async fn forever(self) {
        // The task ends only with a panic, which was logged.
        let _ = self.task.await;
    }
}

type Page = ([(HeaderName, &'static str); 2], String);

async fn page(State(sources): State<Arc<Sources>>, headers: HeaderMap) -> Page {
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    let format = Format::accepted(accept);
    let headers = [
        (CONTENT_TYPE, format.content_type()),
        (CACHE_CONTROL, "no-store"),
    ];
    (headers, sources.metrics.text(format).await)
}

async fn health(State(sources): State<Arc<Sources>>) -> (StatusCode, String) {
    match sources.monitor.as_ref().map(Monitor::healthy) {
        None | Some(Ok(())) => answer(Ok("healthy")),
        Some(Err(unfit)) => answer(Err(unfit.to_string())),
    }
}

async fn readiness(State(sources): State<Arc<Sources>>) -> (StatusCode, String) {
    match &sources.monitor {
        Some(monitor) => answer(monitor.ready().map(|()| "ready").map_err(|e| e.to_string())),
        None if sources.metrics.shared().is_up().await => answer(Ok("ready")),
        None => answer(Err("the store does not answer".to_owned())),
    }
}

fn answer(fit: Result<&str, String>) -> (StatusCode, String) {
    match fit {
        Ok(word) => (StatusCode::OK, format!("{word}\n")),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
    }
}
