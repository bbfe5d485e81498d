//! The API of a supervisor: its addresses, its keys, and its start.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use meshwork::Client;
use meshwork_model::api_key::Scope;
use meshwork_model::name::ApiKeyName;
use meshwork_model::route::bindings::Bindings;
use meshwork_server::api::{Api, ApiLimits, PROFILE};
use meshwork_server::http::guard::ALL_BODIES;
use meshwork_server::http::{Listener, Socket};
use meshwork_server::mcp;
use meshwork_server::ui::{Dashboard, Door, Options};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::args::guard::GuardArgs;
use crate::args::{parsers, routing};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::note;
use crate::remote::on_store;
use crate::scope::ActorArgs;

/// Options of the API.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "API")]
pub(crate) struct ListenArgs {
    /// Serve the API at this address; may be given several times; port 0 selects a free port
    #[arg(long = "listen", value_name = "ADDRESS:PORT")]
    addresses: Vec<SocketAddr>,
    /// Serve the API at this Unix socket too, which only its owner may open, and needs no key there
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Make a key of the scope admin with this name if there is no key yet, and print it once
    #[arg(long, value_name = "NAME", requires = "addresses")]
    bootstrap_admin_key: Option<ApiKeyName>,
    /// Need no key: let everybody who reaches the address call all methods
    #[arg(long, requires = "addresses", conflicts_with = "bootstrap_admin_key")]
    insecure_no_auth: bool,
    /// Longest body, in bytes; for a longer one the response is 413
    #[arg(long, value_name = "BYTES", default_value_t = 1024 * 1024, allow_hyphen_values = true,
          value_parser = parsers::whole::<u32>(2..=u64::from(ALL_BODIES)))]
    max_body: u32,
    /// Greatest number of requests at once, 1 to 10000; beyond it the response is 429
    #[arg(long, value_name = "N", default_value_t = 1000, allow_hyphen_values = true,
          value_parser = parsers::whole::<u16>(1..=10_000))]
    requests: u16,
    /// Show no script, no input and no result of a job on the pages of the dashboard; the API has them
    #[arg(long, requires = "addresses")]
    hide_payloads: bool,
    /// File in YAML with bindings, which route jobs of the API without a route by name, topic or payload. Format: docs/routing.md
    #[arg(long, value_name = "FILE", env = "MESHWORK_BINDINGS", value_parser = routing::read)]
    bindings: Option<Bindings>,
    #[command(flatten)]
    guard: GuardArgs,
}

/// A running API; it serves until it is stopped.
pub(crate) struct Serving {
    pub(crate) urls: Vec<String>,
    stop: CancellationToken,
    tasks: JoinSet<()>,
    scan: JoinSet<()>,
}

/// Why the API is not served.
#[derive(Debug, thiserror::Error)]
enum KeyError {
    #[error(
        "there is no key of the API: make one with `meshwork key create NAME --scope admin`, give \
         --bootstrap-admin-key NAME, or give --insecure-no-auth to accept all clients that reach the address"
    )]
    Missing,
}

impl ListenArgs {
    /// Returns true if an API is to be served.
    pub(crate) fn is_given(&self) -> bool {
        !self.addresses.is_empty() || self.socket.is_some()
    }

    /// Takes the addresses, finds the keys, and starts to serve.
    pub(crate) async fn start(
        &self,
        client: &Client,
        actor: &ActorArgs,
        grace: Duration,
    ) -> Result<Serving, CommandError> {
        let mut listeners = Vec::with_capacity(self.addresses.len());
        for address in &self.addresses {
            listeners.push(Listener::bind(*address, "the API").await?);
        }
        let socket = self.socket.as_deref().map(Socket::bind).transpose();
        let socket = socket.map_err(|error| CommandError::new(Exit::SYSTEM, error))?;
        let needs_keys = !listeners.is_empty() && !self.insecure_no_auth;
        if needs_keys {
            Box::pin(self.check_keys(client, actor)).await?;
        }
        let me = actor.identity().find(client).await?;
        let api = Api::new(
            client.clone(),
            me.map(|me| me.id()),
            ApiLimits {
                max_body: self.max_body,
                concurrency: self.requests.into(),
                read_timeout: self.guard.read_timeout(),
                grace,
            },
        );
        let api = api.bound(self.bindings.clone());
        let mut serving = Serving {
            urls: Vec::new(),
            stop: CancellationToken::new(),
            tasks: JoinSet::new(),
            scan: JoinSet::new(),
        };
        let door = match needs_keys {
            true => Door::Keys(api.keys()),
            false => Door::Open,
        };
        let options = Options {
            hide_payloads: self.hide_payloads,
            ..Options::default()
        };
        let dashboard = Dashboard::new(api.clone(), client, door, options);
        for listener in listeners {
            serving.urls.push(format!("http://{}", listener.address()));
            let guard = self.guard.clone();
            let guard = guard.guard(dashboard.authenticate(), PROFILE);
            let (dashboard, stop) = (dashboard.clone(), serving.stop.clone());
            serving
                .tasks
                .spawn(async move { dashboard.serve(listener, guard, stop).await });
        }
        if let (Some(socket), Some(path)) = (socket, &self.socket) {
            serving.urls.push(format!("unix:{}", path.display()));
            let (api, stop) = (api.clone(), serving.stop.clone());
            let agents = mcp::routes(&api);
            serving
                .tasks
                .spawn(async move { api.serve_socket(socket, agents, stop).await });
        }
        serving.scan.spawn(async move { api.scan().await });
        serving.scan.spawn(async move { dashboard.poll().await });
        Ok(serving)
    }

    /// Refuses a store without keys. Makes the first one with `--bootstrap-admin-key`.
    async fn check_keys(&self, client: &Client, actor: &ActorArgs) -> Result<(), CommandError> {
        let known = client.broker().api_keys().await?;
        match &self.bootstrap_admin_key {
            _ if !known.is_empty() => {}
            None => return Err(CommandError::usage(KeyError::Missing)),
            Some(name) => {
                let (node, me) = actor.identity().create(client).await?;
                node.grant_node_scope(me.id(), Scope::Admin).await?;
                let actor = me.id().to_string();
                let params = json!({"name": name.as_str(), "scope": "admin", "actor": actor});
                let made: Value = on_store((client, None), "key.create", &params).await?;
                let key = made["key"].as_str().unwrap_or_default();
                note(format_args!(
                    "made the key {name} of the scope admin; it is shown only now: {key}"
                ));
            }
        }
        Ok(())
    }
}

impl Serving {
    /// Ends the API after the requests under way.
    pub(crate) async fn stop(mut self) {
        self.stop.cancel();
        // A panic of a task was logged.
        while self.tasks.join_next().await.is_some() {}
        self.scan.shutdown().await;
    }
}
