//! The API over HTTP: REST by paths, JSON-RPC at `/` and `/rpc`, both documents, and the health checks.

pub(crate) mod answers;
mod hero;
pub(crate) mod life;
mod problem;
pub(crate) mod query;
pub(crate) mod rest;
mod rpc;
mod socket;
mod socket_caller;
pub(crate) mod stream;

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, get, on, post};
use axum::{Extension, Router};
use meshwork::Client;
use meshwork::metrics::Metrics;
use meshwork_model::api_key::Scope;
use meshwork_model::keys::context::ActorId;
use meshwork_model::route::bindings::Bindings;
use tokio_util::sync::CancellationToken;

use super::access::{Access, KeyRing};
use super::away::unless_away;
use super::call::{Call, Calls};
use super::error::{ApiError, Code};
use super::method::HttpVerb;
use super::{METHODS, docs};
use crate::api::live::Live;
use crate::http::guard::{Bodies, Guard, Holder, Limits, Profile, Share, Shares};
use crate::http::{Bounds, Listener, Socket, Times};
use crate::metrics::{Page, text};
use crate::readiness::Readiness;
use answers::Answers;
pub(crate) use problem::Problem;

/// Longest life of a connection; clients reconnect.
const CONNECTION: Duration = Duration::from_secs(600);
/// Greatest number of connections.
const CONNECTIONS: usize = 4096;

/// Properties of the API for the guard.
pub const PROFILE: Profile = Profile {
    probes: &["/healthz", "/readyz"],
    methods: "GET, POST, PUT, DELETE",
    headers: "authorization, content-type, idempotency-key, traceparent, mcp-protocol-version, mcp-session-id, mcp-method, mcp-name",
    refuse: |refusal| Problem::refused(&refusal).into_response(),
};

/// Limits of the API.
#[derive(Debug, Clone, Copy)]
pub struct ApiLimits {
    /// Longest body in bytes.
    pub max_body: u32,
    /// Greatest number of requests at once.
    pub concurrency: usize,
    /// Time for the head of a request, and again for its body.
    pub read_timeout: Duration,
    /// Longest wait for running requests at shutdown.
    pub grace: Duration,
}

/// The API of a store.
#[derive(Debug, Clone)]
pub struct Api(Arc<Shared>);

/// State of all requests.
#[derive(Debug)]
struct Shared {
    calls: Calls,
    metrics: Metrics,
    live: Live,
    limits: ApiLimits,
    bodies: Bodies,
    answers: Answers,
    slots: Arc<Shares>,
    /// Sockets of callers with a key, or who need none.
    sockets: Arc<Shares>,
    /// Sockets whose caller has not logged in yet.
    anonymous: Arc<Shares>,
    readiness: Readiness,
}

impl Api {
    /// Returns the API of the store that `client` is connected to. Callers that need no key act as `own_actor` in contexts.
    #[must_use]
    pub fn new(client: Client, own_actor: Option<ActorId>, limits: ApiLimits) -> Self {
        Self(Arc::new(Shared {
            metrics: Metrics::new(&client),
            calls: Calls::new(client, own_actor),
            live: Live::new(),
            limits,
            bodies: Bodies::new(limits.max_body, limits.read_timeout),
            answers: Answers::new(),
            slots: Shares::new(limits.concurrency),
            sockets: Shares::new(socket_caller::SOCKETS),
            anonymous: Shares::new(socket_caller::ANONYMOUS),
            readiness: Readiness::default(),
        }))
    }

    /// Routes new jobs without a route by bindings.
    #[must_use]
    pub fn bound(mut self, bindings: Option<Bindings>) -> Self {
        // It is not shared yet.
        if let Some(shared) = Arc::get_mut(&mut self.0) {
            shared.calls.bindings = bindings.map(Arc::new);
        }
        self
    }

    /// Looks for queues and workers in the background, until it is dropped.
    pub async fn scan(&self) -> ! {
        self.0.calls.census.run(&self.0.calls.client).await
    }

    /// Serves a router behind a guard until `stop`, and then until the requests under way have ended or their grace is
    /// over.
    pub(crate) async fn serve(
        &self,
        router: Router,
        (listener, guard): (Listener, Guard),
        stop: CancellationToken,
    ) {
        let bounds = self.bounds(guard.limits(CONNECTIONS));
        listener.serve(guard.before(router), bounds, stop).await;
    }

    /// State that all calls share.
    pub(crate) fn calls(&self) -> &Calls {
        &self.0.calls
    }

    /// The keys of the store.
    #[must_use]
    pub fn keys(&self) -> KeyRing {
        self.0.calls.rights.clone()
    }

    /// The followed streams.
    pub(crate) fn live(&self) -> &Live {
        &self.0.live
    }

    /// Limits of bodies.
    pub(crate) fn bodies(&self) -> &Bodies {
        &self.0.bodies
    }

    /// Takes the place of a request that is worked on.
    pub(crate) fn slot(&self, holder: &Holder) -> Result<Share, ApiError> {
        self.0.slot(holder)
    }

    /// Takes memory for the answer of a request.
    pub(crate) fn memory(&self, holder: &Holder) -> Result<Share, ApiError> {
        self.0.answers.memory(holder)
    }

    /// Serves a socket, whose clients need no key, with these routes beside those of the API, until `stop`, and then until
    /// the requests under way have ended or their grace is over.
    pub async fn serve_socket(&self, socket: Socket, beside: Router, stop: CancellationToken) {
        let guard = Guard {
            peer_connections: u16::MAX,
            ..Guard::of_hosts(Vec::new(), PROFILE)
        };
        let bounds = self.bounds(guard.limits(CONNECTIONS));
        let router = guard.before(self.router().merge(beside));
        socket.serve(router, bounds, stop).await;
    }

    fn bounds(&self, connections: Limits) -> Bounds {
        Bounds {
            connections,
            times: Times {
                head_within: self.0.limits.read_timeout,
                lasts: CONNECTION,
                grace: self.0.limits.grace,
            },
        }
    }

    /// The routes, without the guard. A request without an [`Access`] may call all methods.
    pub(crate) fn router(&self) -> Router {
        let mut router = Router::new();
        for method in METHODS.iter() {
            let filter = match method.verb {
                HttpVerb::Get => MethodFilter::GET,
                HttpVerb::Post => MethodFilter::POST,
                HttpVerb::Put => MethodFilter::PUT,
                HttpVerb::Delete => MethodFilter::DELETE,
            };
            let call =
                move |state, path, query, request| rest::call(method, state, path, query, request);
            router = router.route(method.path, on(filter, call));
        }
        router
            .route("/v1/events", get(stream::events))
            .route("/v1/openapi.json", get(openapi))
            .route("/", post(rpc::call).get(only_post))
            .route("/rpc", post(rpc::call).get(socket::open))
            .route("/{key}", get(socket::open_for_key))
            .route("/auth/nonce", get(hero::nonce))
            .route("/auth/health", get(hero::health))
            .route("/healthz", get(|| async { "healthy\n" }))
            .route("/readyz", get(readiness))
            .route("/metrics", get(metrics))
            .fallback(nowhere)
            .method_not_allowed_fallback(wrong_verb)
            .with_state(Arc::clone(&self.0))
    }
}

impl Shared {
    /// Returns a call of the caller that the guard has found.
    fn call(&self, access: Option<Extension<Access>>) -> Call {
        let access = access.map_or(Access::All, |Extension(access)| access);
        Call::new(&self.calls, access)
    }

    /// Takes the place of a request that is worked on.
    fn slot(&self, holder: &Holder) -> Result<Share, ApiError> {
        let full = || {
            let message = "too many requests of this caller at once: ask again";
            ApiError::new(Code::TooManyRequests, message)
        };
        self.slots.take(holder, 1).ok_or_else(full)
    }
}

async fn readiness(State(shared): State<Arc<Shared>>) -> (StatusCode, &'static str) {
    shared
        .readiness
        .answer(shared.calls.client.broker().now())
        .await
}

/// Metrics of all queues, for who may read.
async fn metrics(
    State(shared): State<Arc<Shared>>,
    access: Option<Extension<Access>>,
    headers: HeaderMap,
) -> Result<Page, Problem> {
    let call = shared.call(access);
    call.access.check(Scope::Viewer, "/metrics")?;
    let page = async {
        call.outside(Scope::Viewer, "/metrics").await?;
        Ok(text(&shared.metrics, &headers).await)
    };
    Ok(unless_away(call.client.broker(), false, page).await?)
}

async fn openapi() -> Response {
    json(StatusCode::OK, docs::openapi().to_string())
}

async fn nowhere() -> Problem {
    let message = "there is nothing here: methods are below /v1, see /v1/openapi.json";
    Problem::from(ApiError::new(Code::MethodNotFound, message))
}

/// Answers `GET /` and `GET /rpc` without a WebSocket.
async fn only_post() -> Response {
    let message = "this is the API of Meshwork: JSON-RPC is at POST / and /rpc, REST below /v1, its document at \
                   /v1/openapi.json, and the dashboard at /ui/";
    let mut problem = Problem::from(ApiError::new(Code::MethodNotFound, message));
    problem.status = StatusCode::METHOD_NOT_ALLOWED;
    ([(ALLOW, "POST")], problem).into_response()
}

async fn wrong_verb() -> Response {
    let message = "this path has other methods: see /v1/openapi.json";
    let mut problem = Problem::from(ApiError::new(Code::MethodNotFound, message));
    problem.status = StatusCode::METHOD_NOT_ALLOWED;
    problem.into_response()
}

/// Response with JSON.
pub(crate) fn json(status: StatusCode, body: impl Into<Body>) -> Response {
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (status, headers, body.into()).into_response()
}
