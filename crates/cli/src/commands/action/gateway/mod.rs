//! `meshwork action gateway`: HTTP on one side, actions on the other, for callers that have not moved yet. Here it is
//! started and stopped; [`answer`] says what becomes of one request.

mod answer;
mod failure;

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};
use clap::builder::NonEmptyStringValueParser;
use meshwork::source::nooble::Client;
use serde::Serialize;
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::{Side, service};
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::http::{Bounds, Listener};
use crate::interrupt::Interrupt;
use crate::out::note;
use crate::value;

/// The environment variable that holds the token: on a command line all could read it.
const TOKEN: &str = "MESHWORK_GATEWAY_TOKEN";
/// How long a connection lasts: clients keep theirs, and make another one now and then.
const CONNECTION: Duration = Duration::from_secs(600);
/// Connections beyond the requests that are dealt with: those are told that there are too many.
const SPARE_CONNECTIONS: usize = 64;

/// Take HTTP requests and answer them by actions, until SIGINT or SIGTERM
///
/// POST /actions/SERVICE/TYPE with an object in JSON is the call SERVICE.TYPE, and its response the data of the answer. Further
/// parts of the path are further parts of the type. GET /healthz and /readyz say how the gateway is. docs/actions.md
/// lists the headers and the status codes.
#[derive(Debug, clap::Args)]
pub(crate) struct Gateway {
    #[command(flatten)]
    side: Side,
    /// Where it listens; the port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    addr: SocketAddr,
    /// The service in whose name it asks
    #[arg(long = "as", value_name = "NAME", default_value = "gateway", value_parser = NonEmptyStringValueParser::new())]
    origin: String,
    /// A service that may be called; may be given several times. Without one, all may be called
    #[arg(long = "service", value_name = "NAME", value_parser = service)]
    services: Vec<String>,
    /// How long a request may take, from when its body is there to the answer, in seconds; then it is answered with 504
    #[arg(long, value_name = "S", default_value = "30", value_parser = value::wait)]
    wait: Duration,
    /// How many requests are dealt with at once, 1 to 10000; one more is answered with 503
    #[arg(long, value_name = "N", default_value_t = 256, allow_hyphen_values = true,
          value_parser = clap::value_parser!(u16).range(1..=10_000))]
    concurrency: u16,
    /// The longest body, in bytes; a longer one is answered with 413
    #[arg(long, value_name = "BYTES", default_value_t = 10 * 1024 * 1024, allow_hyphen_values = true,
          value_parser = clap::value_parser!(u32).range(2..=512 * 1024 * 1024))]
    max_body: u32,
    /// How long it waits for what is under way when it is stopped, in seconds
    #[arg(long, value_name = "S", default_value = "25", value_parser = value::wait,
          allow_hyphen_values = true)]
    grace: Duration,
    /// Lets whoever reaches it call services, although the address can be reached from other hosts. Otherwise it
    /// asks for the bearer token that MESHWORK_GATEWAY_TOKEN holds
    #[arg(long)]
    without_token: bool,
}

/// What all requests share.
struct Shared {
    client: Client,
    services: HashSet<String>,
    wait: Duration,
    slots: Semaphore,
    /// Of the token, so that comparing tells nothing of it.
    token: Option<[u8; 32]>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event {
    Listening { url: String },
    Stopped,
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}

impl Gateway {
    pub(super) async fn run(self, context: &mut Context) -> Result<Exit, Error> {
        let interrupt = Interrupt::listen()?;
        let token = crate::environment::var(TOKEN).filter(|token| !token.is_empty());
        if token.is_none() && !self.without_token && !self.addr.ip().is_loopback() {
            return Err(Error::NoToken(self.addr));
        }
        let listener = Listener::bind(self.addr, "actions").await?;
        let client = interrupt
            .or(self.side.client(&self.origin, context))
            .await?;
        let url = format!("http://{}", listener.address());
        let shared = Arc::new(Shared {
            client: client.clone(),
            services: self.services.into_iter().collect(),
            wait: self.wait,
            slots: Semaphore::new(self.concurrency.into()),
            token: token.as_deref().map(digest),
        });
        let router = Router::new()
            .route("/actions/{service}/{*rest}", post(answer::act))
            .route("/healthz", get(|| async { "healthy\n" }))
            .route("/readyz", get(answer::readiness))
            .fallback(answer::nowhere)
            .method_not_allowed_fallback(answer::not_so)
            .layer(DefaultBodyLimit::max(self.max_body as usize))
            .with_state(shared);
        let bounds = Bounds {
            connections: usize::from(self.concurrency) + SPARE_CONNECTIONS,
            lasts: CONNECTION,
            grace: self.grace,
        };
        let stop = CancellationToken::new();
        let serves = tokio::spawn(listener.serve(router, bounds, stop.clone()));
        tell(&Event::Listening { url }, context)?;
        interrupt.heard().await;
        stop.cancel();
        // It ends within its grace; if it panicked, it has said so.
        let _ = serves.await;
        client.close().await;
        tell(&Event::Stopped, context)?;
        Ok(Exit::DONE)
    }
}

fn tell(event: &Event, context: &mut Context) -> Result<(), Error> {
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
