//! `meshwork action gateway`: translates HTTP requests to actions, for callers without a client for actions. Starts and
//! stops the server; [`answer`] handles one request that has passed the [`guard`](crate::http::guard).

mod answer;
mod failure;
mod services;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use clap::builder::NonEmptyStringValueParser;
use meshwork::protocol::nooble::Client;
use serde::Serialize;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use self::answer::Readiness;
use self::failure::Failure;
use self::services::Services;
use super::{Side, service};
use crate::app::App;
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::http::guard::{ALL_BODIES, Bodies, GuardArgs, Profile};
use crate::http::{Bounds, Listener};
use crate::interrupt::Interrupt;
use crate::out::note;

/// Longest life of a connection; clients reconnect.
const CONNECTION: Duration = Duration::from_secs(600);
/// Connections beyond `--concurrency`: four addresses can have the most connections of one address, without a request.
const MORE_CONNECTIONS: usize = 256;
/// Properties of the gateway for the guard.
const PROFILE: Profile = Profile {
    // A token on the command line would be visible to all users of the host.
    token_variable: "MESHWORK_GATEWAY_TOKEN",
    probes: &["/healthz", "/readyz"],
    methods: "GET, POST",
    headers: "authorization, content-type, traceparent, x-agent-id, x-session-id, x-task-id, x-tenant-id, x-user-id",
    refuse: |refusal| Failure::refused(refusal).into_response(),
};

/// Answer HTTP requests by actions, until SIGINT or SIGTERM
///
/// POST /actions/SERVICE/TYPE with a JSON object calls SERVICE.TYPE, and responds with the data of the reply. Further
/// parts of the path are further parts of the type. GET /healthz and /readyz report the health of the gateway.
/// docs/actions.md lists the headers and the status codes.
#[derive(Debug, clap::Args)]
pub(crate) struct Gateway {
    #[command(flatten)]
    side: Side,
    /// Listen on this address; port 0 selects a free port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    addr: SocketAddr,
    /// Service name of the gateway, as the origin of its calls
    #[arg(long = "as", value_name = "NAME", default_value = "gateway", value_parser = NonEmptyStringValueParser::new())]
    origin: String,
    /// Allow calls to this service, started before or not, and to no other; may be given several times [default:
    /// services that have a key in the store]
    #[arg(long = "service", value_name = "NAME", value_parser = service)]
    services: Vec<String>,
    /// Longest time of a request after its body has arrived, in seconds; then the response is 504
    #[arg(long, value_name = "S", default_value = "30", value_parser = parsers::wait)]
    wait: Duration,
    /// Greatest number of concurrent requests, 1 to 10000; beyond it the response is 503
    #[arg(long, value_name = "N", default_value_t = 256, allow_hyphen_values = true,
          value_parser = clap::value_parser!(u16).range(1..=10_000))]
    concurrency: u16,
    /// Longest body, in bytes; for a longer one the response is 413
    #[arg(long, value_name = "BYTES", default_value_t = 10 * 1024 * 1024, allow_hyphen_values = true,
          value_parser = clap::value_parser!(u32).range(2..=i64::from(ALL_BODIES)))]
    max_body: u32,
    /// Longest wait for running requests at shutdown
    #[arg(long = "shutdown-timeout", value_name = "TIME", default_value = "25s", value_parser = parsers::wait,
          allow_hyphen_values = true)]
    grace: Duration,
    #[command(flatten)]
    guard: GuardArgs,
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

#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event {
    Listening { url: String },
    Stopped,
}

impl Gateway {
    pub(super) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let interrupt = Interrupt::listen()?;
        let read_timeout = self.guard.read_timeout();
        let guard = self.guard.guard(PROFILE)?;
        let listener = Listener::bind(self.addr, "actions").await?;
        let client = interrupt
            .or(self.side.client(&self.origin, context))
            .await?;
        let url = format!("http://{}", listener.address());
        let shared = Arc::new(Shared {
            client: client.clone(),
            services: Services::new(self.services),
            wait: self.wait,
            slots: Semaphore::new(self.concurrency.into()),
            bodies: Bodies::new(self.max_body, read_timeout),
            readiness: Readiness::default(),
        });
        let router = Router::new()
            .route("/actions/{service}/{*rest}", post(answer::act))
            .route("/healthz", get(|| async { "healthy\n" }))
            .route("/readyz", get(answer::readiness))
            .fallback(answer::nowhere)
            .method_not_allowed_fallback(answer::not_so)
            .with_state(shared);
        let bounds = Bounds {
            connections: guard.limits(usize::from(self.concurrency) + MORE_CONNECTIONS),
            head_within: read_timeout,
            lasts: CONNECTION,
            grace: self.grace,
        };
        let stop = CancellationToken::new();
        let serves = tokio::spawn(listener.serve(guard.before(router), bounds, stop.clone()));
        tell(&Event::Listening { url }, context)?;
        interrupt.heard().await;
        stop.cancel();
        // The task ends within its grace period; a panic was logged.
        let _ = serves.await;
        client.close().await;
        tell(&Event::Stopped, context)?;
        Ok(Exit::DONE)
    }
}

fn tell(event: &Event, context: &mut App) -> Result<(), CommandError> {
    if context.out.is_json() {
        context.out.json(event)?;
        return Ok(context.out.flush()?);
    }
    match event {
        Event::Listening { url } => note(format_args!("actions at {url}/actions")),
        Event::Stopped => note("stopped"),
    }
    Ok(())
}
