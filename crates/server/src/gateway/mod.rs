//! The gateway: translates HTTP requests to actions, for callers without a client for actions. [`answer`] handles one
//! request that has passed the [`guard`](crate::http::guard).

mod answer;
mod failure;
mod services;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use meshwork::protocol::nooble::Client;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use self::failure::Failure;
use self::services::Services;
use crate::http::guard::{Bodies, Guard, Profile};
use crate::http::{Bounds, Listener, Times};
use crate::readiness::Readiness;

/// Longest life of a connection; clients reconnect.
const CONNECTION: Duration = Duration::from_secs(600);
/// Connections beyond the concurrent requests: four addresses can have the most connections of one address, without a
/// request.
const MORE_CONNECTIONS: usize = 256;
/// Properties of the gateway for the guard.
pub const PROFILE: Profile = Profile {
    probes: &["/healthz", "/readyz"],
    methods: "GET, POST",
    headers: "authorization, content-type, traceparent, x-agent-id, x-session-id, x-task-id, x-tenant-id, x-user-id",
    refuse: |refusal| Failure::refused(refusal).into_response(),
};

/// A gateway, with its limits.
#[derive(Debug)]
pub struct Gateway {
    /// Sends the actions.
    pub client: Client,
    /// Services that may be called, started before or not; if empty, those that have a key in the store.
    pub services: Vec<String>,
    /// Longest time of a request after its body has arrived; then the response is 504.
    pub wait: Duration,
    /// Greatest number of concurrent requests; beyond it the response is 503.
    pub concurrency: u16,
    /// Longest body, in bytes; for a longer one the response is 413.
    pub max_body: u32,
    /// Time for the head of a request, and again for its body.
    pub read_timeout: Duration,
    /// Longest wait for running requests at shutdown.
    pub grace: Duration,
}

/// State shared by all requests.
struct Shared {
    client: Client,
    services: Services,
    wait: Duration,
    slots: Semaphore,
    bodies: Bodies,
    readiness: Readiness,
}

impl Gateway {
    /// Serves until `stop`, and then until the requests under way have ended or their grace is over.
    pub async fn serve(self, listener: Listener, guard: Guard, stop: CancellationToken) {
        let bounds = Bounds {
            connections: guard.limits(usize::from(self.concurrency) + MORE_CONNECTIONS),
            times: Times {
                head_within: self.read_timeout,
                lasts: CONNECTION,
                grace: self.grace,
            },
        };
        let shared = Arc::new(Shared {
            client: self.client,
            services: Services::new(self.services),
            wait: self.wait,
            slots: Semaphore::new(self.concurrency.into()),
            bodies: Bodies::new(self.max_body, self.read_timeout),
            readiness: Readiness::default(),
        });
        let router = Router::new()
            .route("/actions/{service}/{*rest}", post(answer::act))
            .route("/healthz", get(|| async { "healthy\n" }))
            .route("/readyz", get(answer::readiness))
            .fallback(answer::nowhere)
            .method_not_allowed_fallback(answer::not_so)
            .with_state(shared);
        listener.serve(guard.before(router), bounds, stop).await;
    }
}
