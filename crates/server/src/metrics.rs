//! HTTP endpoint of a process: `/metrics`, `/healthz` and `/readyz`. It has no secrets and no login; the address limits
//! access, and `/metrics` checks the host, so that no web page can read it through a name of its own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::IntoResponse;
use axum::routing::get;
use meshwork::Monitor;
use meshwork::metrics::{Format, Metrics};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::http::guard::{Authority, Guard, Limits, Profile, Proxies};
use crate::http::{BindError, Bounds, Listener, Times};

/// Limits for a few scrapers and the checks of a platform.
const BOUNDS: Bounds = Bounds {
    connections: Limits {
        total: 64,
        per_peer: 64,
        unauthenticated: None,
        proxies: Proxies::NONE,
    },
    times: Times {
        head_within: Duration::from_secs(5),
        lasts: Duration::from_secs(60),
        grace: Duration::ZERO,
    },
};

/// The guard of the metrics. Probes of platforms name any host, and their answers have no data.
const PROFILE: Profile = Profile {
    probes: &[],
    methods: "GET",
    headers: "",
    refuse: |refusal| (refusal.status, format!("{}\n", refusal.message)).into_response(),
};

/// A bound address, and the further names of its host.
#[derive(Debug)]
pub struct Endpoint(Listener, Vec<Authority>);

/// A running endpoint; stopped on drop.
#[derive(Debug)]
pub struct Served {
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
    /// Binds an address. `hosts` are accepted as names of it, too.
    ///
    /// # Errors
    /// If the address is taken, or the system refuses it.
    pub async fn bind(address: SocketAddr, hosts: Vec<Authority>) -> Result<Self, BindError> {
        Ok(Self(Listener::bind(address, "metrics").await?, hosts))
    }

    /// Starts to serve. Without a worker, a process is healthy while it answers, and ready while the store answers.
    pub fn serve(self, metrics: Metrics, monitor: Option<Monitor>) -> Served {
        let sources = Arc::new(Sources { metrics, monitor });
        let page = Router::new()
            .route("/metrics", get(page))
            .with_state(Arc::clone(&sources));
        let probes = Router::new()
            .route("/healthz", get(health))
            .route("/readyz", get(readiness))
            .with_state(sources);
        let router = Guard::of_hosts(self.1, PROFILE).before(page).merge(probes);
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
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/metrics", self.address)
    }

    /// Serves until the process ends.
    pub async fn forever(self) {
        // The task ends only with a panic, which was logged.
        let _ = self.task.await;
    }
}

/// A page, with its headers.
pub(crate) type Page = ([(HeaderName, &'static str); 2], String);

async fn page(State(sources): State<Arc<Sources>>, headers: HeaderMap) -> Page {
    text(&sources.metrics, &headers).await
}

/// Returns the page of the metrics, in the format that a request accepts.
pub(crate) async fn text(metrics: &Metrics, headers: &HeaderMap) -> Page {
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    let format = Format::accepted(accept);
    let headers = [
        (CONTENT_TYPE, format.content_type()),
        (CACHE_CONTROL, "no-store"),
    ];
    (headers, metrics.text(format).await)
}

async fn health(State(sources): State<Arc<Sources>>) -> (StatusCode, String) {
    match sources.monitor.as_ref().map(Monitor::healthy) {
        None | Some(Ok(())) => answer(Ok("healthy")),
        Some(Err(unhealthy)) => answer(Err(unhealthy.to_string())),
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
