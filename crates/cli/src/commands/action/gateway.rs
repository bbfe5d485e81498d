//! `meshwork action gateway`: options of the gateway, its start and its stop.

use std::net::SocketAddr;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use meshwork_server::gateway::{Gateway as Serving, PROFILE};
use meshwork_server::http::Listener;
use meshwork_server::http::guard::ALL_BODIES;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::{Side, service};
use crate::app::App;
use crate::args::guard::{GuardArgs, TokenArgs};
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::out::note;

/// The environment variable with the token: on the command line it would be visible to all users of the host.
const TOKEN_VARIABLE: &str = "MESHWORK_GATEWAY_TOKEN";

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
    #[arg(long, value_name = "DURATION", default_value = "30", value_parser = parsers::wait)]
    wait: Duration,
    /// Greatest number of concurrent requests, 1 to 10000; beyond it the response is 503
    #[arg(long, value_name = "N", default_value_t = 256, allow_hyphen_values = true,
          value_parser = parsers::whole::<u16>(1..=10_000))]
    concurrency: u16,
    /// Longest body, in bytes; for a longer one the response is 413
    #[arg(long, value_name = "BYTES", default_value_t = 10 * 1024 * 1024, allow_hyphen_values = true,
          value_parser = parsers::whole::<u32>(2..=u64::from(ALL_BODIES)))]
    max_body: u32,
    /// Longest wait for running requests at shutdown
    #[arg(long = "shutdown-timeout", value_name = "DURATION", default_value = "25s", value_parser = parsers::wait,
          allow_hyphen_values = true)]
    grace: Duration,
    #[command(flatten)]
    token: TokenArgs,
    #[command(flatten)]
    guard: GuardArgs,
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
        let authenticate = self.token.authenticate(TOKEN_VARIABLE)?;
        let guard = self.guard.guard(authenticate, PROFILE);
        let listener = Listener::bind(self.addr, "actions").await?;
        let client = interrupt
            .or(self.side.client(&self.origin, context))
            .await?;
        let url = format!("http://{}", listener.address());
        let gateway = Serving {
            client: client.clone(),
            services: self.services,
            wait: self.wait,
            concurrency: self.concurrency,
            max_body: self.max_body,
            read_timeout,
            grace: self.grace,
        };
        let stop = CancellationToken::new();
        let serves = tokio::spawn(gateway.serve(listener, guard, stop.clone()));
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
