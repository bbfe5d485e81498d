//! `meshwork service`: answers actions of Nooble4 by scripts.

use std::collections::{BTreeSet, HashSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use meshwork::Client;
use meshwork::metrics::Metrics;
use meshwork::protocol::nooble::{MAX_CONCURRENCY, Service, ServiceHandle};
use meshwork_broker::Broker;
use meshwork_broker::doctor::nooble_rights;
use meshwork_broker::nooble::Nooble;
use meshwork_model::keys::nooble::{Dialect, service_of};
use meshwork_model::number::counted;
use meshwork_model::worker_request::WorkerRequest;
use serde::Serialize;

use super::action::{self, Side};
use super::worker::request::RequestArgs;
use meshwork_server::metrics::Served;

use crate::app::App;
use crate::args::endpoint::EndpointArgs;
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::interrupt::{Interrupt, Quiet};
use crate::out::note;

/// Answer actions (Nooble4) by scripts, until SIGINT or SIGTERM
///
/// The input of a script is the action's data as JSON, and its result is the data of the reply, an object. The first signal
/// shuts the service down; SIGTSTP makes it quiet: it takes no more actions, and completes running ones.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct ServiceCommand {
    #[command(subcommand)]
    command: Option<Other>,
    #[command(flatten)]
    listen: Listen,
}

/// Requests to running services.
#[derive(Debug, clap::Subcommand)]
enum Other {
    /// Make a service quiet: it takes no more actions and completes running ones, until it is stopped
    Quiet(Request),
    /// Stop a service gracefully, as SIGTERM to its process
    Stop(Request),
}

#[derive(Debug, clap::Args)]
struct Request {
    #[command(flatten)]
    args: RequestArgs,
    #[command(flatten)]
    side: Side,
}

impl ServiceCommand {
    pub(super) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let (to, request) = match self.command {
            Some(Other::Quiet(to)) => (to, WorkerRequest::Quiet),
            Some(Other::Stop(to)) => (to, WorkerRequest::Stop),
            None => return Box::pin(self.listen.run(context)).await,
        };
        to.args.run_service(request, &to.side, context).await
    }
}

/// Options of a service.
#[derive(Debug, clap::Args)]
struct Listen {
    #[command(flatten)]
    side: Side,
    /// Name of the service, without dots: it takes actions whose type starts with the name and a dot
    #[arg(long, value_parser = action::service, required = true)]
    name: Option<String>,
    /// Script for actions of a type: embedding.generate=embed.py. A script ends in .py, .rhai or .sh, or begins with #!; may
    /// be given several times, once for each type
    #[arg(long = "handler", value_name = "TYPE=FILE", value_parser = parsers::handler, required_unless_present = "callbacks")]
    handlers: Vec<(String, PathBuf)>,
    /// Script for the callbacks of an event that this service requests: document.embedded=stored.py; may be given several
    /// times. Without --handler, the service takes only callbacks
    #[arg(long = "callback", id = "callbacks", value_name = "EVENT=FILE", value_parser = parsers::handler)]
    callbacks: Vec<(String, PathBuf)>,
    /// Take the actions of this context too, as of a tenant; may be given several times
    #[arg(long = "context", value_name = "NAME", value_parser = action::part)]
    contexts: Vec<String>,
    /// Greatest number of concurrent actions, 1 to 1000
    #[arg(long, value_name = "N", default_value_t = 10, allow_hyphen_values = true,
          value_parser = parsers::whole::<u16>(1..=MAX_CONCURRENCY as u64))]
    concurrency: u16,
    /// Longest time of one attempt: 5m, 90s; a plain number is seconds. Then the attempt is aborted, and has failed
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = parsers::span)]
    timeout: Duration,
    /// Attempts of an action without a waiting caller; after the last one it is a dead letter (`meshwork dead
    /// --protocol nooble`). A call with a waiting caller gets one attempt, and its failure as the reply
    #[arg(long = "max-attempts", value_name = "N", default_value_t = 3, allow_hyphen_values = true,
          value_parser = parsers::whole::<u32>(1..=u64::MAX))]
    runs: u32,
    /// Lease duration, in seconds, 0.3 to 3600: if the process is killed, other services take its actions after this
    /// time
    #[arg(long, value_name = "DURATION", default_value = "10", value_parser = parsers::lease,
          allow_hyphen_values = true)]
    lease: Duration,
    /// Longest wait for running actions at shutdown
    #[arg(long = "shutdown-timeout", value_name = "DURATION", default_value = "25s", value_parser = parsers::wait,
          allow_hyphen_values = true)]
    grace: Duration,
    /// Reclaim actions that workers of Nooble4 have not acknowledged for this time: 30m [default: never]. An action
    /// that such a worker still runs then runs twice
    #[arg(long = "rescue-orphans-after", value_name = "DURATION", value_parser = parsers::span)]
    adopt: Option<Duration>,
    /// Serve metrics (/metrics), health (/healthz) and readiness (/readyz) over HTTP at this address; port 0 selects a
    /// free port
    #[arg(long, value_name = "ADDRESS:PORT", env = "MESHWORK_METRICS_ADDR")]
    metrics_addr: Option<SocketAddr>,
    #[command(flatten)]
    endpoint: EndpointArgs,
}

/// Invalid combinations of options.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServiceError {
    #[error("{0} has two handlers: give {1} once for a name")]
    TwoHandlers(String, &'static str),
    #[error(
        "the server's ACL denies this user access to {queues}: the rights for {commands} are missing. The rights of a \
         service are in docs/operations.md and docs/actions.md, \"An ACL user\": ACL SETUSER USER {rule}"
    )]
    Denied {
        queues: String,
        commands: String,
        rule: String,
    },
    #[error(
        "--rescue-orphans-after reclaims from streams only: give --dialect streams, or leave out the option"
    )]
    NothingToAdopt,
}

impl From<ServiceError> for CommandError {
    fn from(error: ServiceError) -> Self {
        match error {
            ServiceError::Denied { .. } => Self::new(Exit::SERVER, error),
            _ => Self::usage(error),
        }
    }
}

/// Printed JSON.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event<'a> {
    Listening {
        service: &'a str,
        worker: &'a str,
        queues: Vec<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        metrics: Option<&'a str>,
    },
    Stopped {
        service: &'a str,
        released: usize,
    },
}

impl Listen {
    /// Returns the service's name, which clap requires.
    fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        self.check()?;
        let (interrupt, mut quiet) = (Interrupt::listen()?, Quiet::listen()?);
        let client = interrupt.or(self.side.client(self.name(), context)).await?;
        self.admitted(client.broker()).await?;
        let endpoint = self.endpoint.bind(self.metrics_addr).await?;
        let service = match self.handlers.is_empty() {
            true => Service::listener(&client),
            false => Service::new(&client),
        };
        let mut service = service
            .concurrency(self.concurrency.into())
            .timeout(self.timeout)
            .max_attempts(self.runs)
            .lease(self.lease)
            .shutdown_timeout(self.grace)
            .rescue_orphans_after(self.adopt);
        for (action_type, path) in &self.handlers {
            let (service_of_it, name) = (service_of(action_type), self.name());
            if service_of_it != name {
                tracing::warn!(
                    action_type,
                    "clients send it to the service `{service_of_it}`, not to `{name}`"
                );
            }
            if let Some(odd) = action::odd_type(action_type) {
                tracing::warn!(action_type, "{odd}");
            }
            service = service.script(action_type, path)?;
        }
        for (event, path) in &self.callbacks {
            service = service.callback_script(event, path)?;
        }
        for name in &self.contexts {
            service = service.context(name);
        }
        let service = service.start().await?;
        interrupt.holds(&service);
        // Served until the end, so that others can observe the shutdown.
        let store = Broker::new(client.broker().conn().clone(), context.keys());
        let metrics = Metrics::new(&Client::new(store)).worker(service.monitor());
        let served = endpoint.map(|endpoint| endpoint.serve(metrics, Some(service.monitor())));
        let at = served.as_ref().map(Served::url);
        tokio::select! {
            () = service.registered() => self.tell(&service, at.as_deref(), context)?,
            _ = interrupt.heard() => {}
        }
        quiet.until_stop(&interrupt, &[&service]).await;
        let released = interrupt.stop(service).await;
        // Reply lists of the scripts' calls would stay until they expire.
        client.close().await;
        if context.out.is_json() {
            let service = self.name();
            context.out.json(&Event::Stopped { service, released })?;
        } else {
            note(format_args!(
                "stopped; {} released",
                counted(released, "action")
            ));
        }
        Ok(interrupt.exit())
    }

    /// Checks that the service may read at least one of its queues, since a retry cannot help otherwise. A refused
    /// queue among others is logged, and retried later, since permissions may change.
    async fn admitted(&self, broker: &Nooble) -> Result<(), ServiceError> {
        let contexts = self.contexts.iter().map(|name| Some(name.as_str()));
        let (mut queues, mut lacks, mut takes) = (Vec::new(), BTreeSet::new(), false);
        for context in std::iter::once(None).chain(contexts) {
            let source = broker.actions(self.name(), context);
            let denied = broker.missing_rights(&source).await;
            takes |= !denied.takes_nothing;
            if !denied.commands.is_empty() {
                queues.push(source.queue().to_owned());
                lacks.extend(denied.commands);
            }
        }
        if queues.is_empty() {
            return Ok(());
        }
        let (queues, rule) = (queues.join(", "), nooble_rights(broker.names().prefix()));
        let commands = lacks.into_iter().collect::<Vec<_>>().join(" ");
        if takes {
            tracing::warn!(
                queues,
                commands,
                rule,
                "rights missing: this user cannot do all that a service needs (docs/operations.md, \"An ACL user\")"
            );
            return Ok(());
        }
        Err(ServiceError::Denied {
            queues,
            commands,
            rule,
        })
    }

    fn check(&self) -> Result<(), ServiceError> {
        for (handlers, option) in [
            (&self.handlers, "--handler"),
            (&self.callbacks, "--callback"),
        ] {
            let mut names = HashSet::new();
            if let Some((twice, _)) = handlers.iter().find(|(name, _)| !names.insert(name)) {
                return Err(ServiceError::TwoHandlers(twice.clone(), option));
            }
        }
        if self.adopt.is_some() && self.side.dialect() == Dialect::Lists {
            return Err(ServiceError::NothingToAdopt);
        }
        Ok(())
    }

    /// Prints that the service listens.
    fn tell(
        &self,
        service: &ServiceHandle,
        metrics: Option<&str>,
        context: &mut App,
    ) -> Result<(), CommandError> {
        let queues = service.queues();
        if context.out.is_json() {
            context.out.json(&Event::Listening {
                service: self.name(),
                worker: service.name(),
                queues,
                metrics,
            })?;
            return Ok(context.out.flush()?);
        }
        let (queues, name) = (queues.join(", "), service.name());
        note(format_args!("listening on {queues} ({name})"));
        if let Some(metrics) = metrics {
            note(format_args!("metrics at {metrics}"));
        }
        Ok(())
    }
}
