//! `meshwork worker`: the options of a worker. [`list`] lists the running ones.

mod app;
mod bananas;
mod config;
pub(crate) mod in_contexts;
mod in_parts;
mod list;
mod options;
mod reload;
pub(crate) mod request;

use std::net::SocketAddr;
use std::time::Duration;

use meshwork::context::Serves;
use meshwork::metrics::Metrics;
use meshwork::{Client, MAX_CONCURRENCY, Worker};
use meshwork_model::keys::context::{ContextId, RunnerId};
use meshwork_model::name::Instance;
use meshwork_model::number::counted;
use meshwork_model::route::routes::{InvalidRoutes, Routes};
use meshwork_model::worker_request::WorkerRequest;
use serde::Serialize;

pub(crate) use bananas::BananasWorker;
use in_contexts::{InContexts, Started};
use in_parts::InParts;
use meshwork_server::metrics::Served;
use options::JobOptions;
use request::Request;

use crate::app::App;
use crate::args::endpoint::EndpointArgs;
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::interrupt::{Interrupt, Quiet};
use crate::out::note;
use crate::words::PROCESSES;

/// Claim jobs from the queues and run them, until SIGINT or SIGTERM
///
/// The first signal shuts the worker down: it claims no more jobs, waits for running jobs for --shutdown-timeout, and
/// releases the rest. The second signal ends the process at once; its jobs are reclaimed after --lease. SIGTSTP makes
/// it quiet: it claims no more jobs, and completes running ones.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct WorkerCommand {
    #[command(subcommand)]
    command: Option<Other>,
    #[command(flatten)]
    listen: Listen,
}

/// Requests to running workers.
#[derive(Debug, clap::Subcommand)]
enum Other {
    List(list::List),
    /// Make a worker quiet: it claims no more jobs and completes running ones, until it is stopped
    ///
    /// SIGTSTP to its process does the same.
    Quiet(Request),
    /// Stop a worker gracefully, as SIGTERM to its process
    Stop(Request),
}

impl WorkerCommand {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        match self.command {
            Some(Other::List(list)) => return list.run(context).await,
            Some(Other::Quiet(args)) => return args.run(WorkerRequest::Quiet, context).await,
            Some(Other::Stop(args)) => return args.run(WorkerRequest::Stop, context).await,
            None => {}
        }
        let mut listen = self.listen;
        if let Some(endings) = listen.jobs.reloaded() {
            return reload::run(endings).await;
        }
        if !listen.jobs.has_group() {
            listen.common.read_routes()?;
        }
        // Boxed, since the future is large and is moved.
        Box::pin(listen.run(context)).await
    }
}

/// Options of workers of all protocols.
#[derive(Debug, clap::Args)]
struct Common {
    /// Routes of the jobs to claim: in this order, as gpu,default; or by weight, as gpu=3,default=1. The route of a job
    /// is its group; default is the route of jobs without a group [env: WORKER_ROUTING_KEYS]
    #[arg(long, value_name = "KEY[=WEIGHT],…")]
    routes: Option<Routes>,
    /// Greatest number of concurrent jobs, in all contexts together [default: 10]
    #[arg(long, value_name = "N", allow_hyphen_values = true,
          value_parser = parsers::whole::<u16>(1..=1000))]
    concurrency: Option<u16>,
    /// Lease duration: other workers reclaim the jobs of a killed worker after this time
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parsers::lease,
          allow_hyphen_values = true)]
    lease: Duration,
    /// Longest wait for running jobs at shutdown; then they are aborted and released
    #[arg(long, value_name = "DURATION", default_value = "25s", value_parser = parsers::wait,
          allow_hyphen_values = true)]
    shutdown_timeout: Duration,
    /// Serve metrics (/metrics), health (/healthz) and readiness (/readyz) over HTTP at this address; port 0 selects a
    /// free port
    #[arg(long, value_name = "ADDRESS:PORT", env = "MESHWORK_METRICS_ADDR")]
    metrics_addr: Option<SocketAddr>,
    #[command(flatten)]
    endpoint: EndpointArgs,
}

impl Common {
    /// Reads the routes from the environment if no option names them.
    fn read_routes(&mut self) -> Result<(), CommandError> {
        if self.routes.is_none() {
            let read = |text: &str| text.parse().map_err(|why: InvalidRoutes| why.to_string());
            self.routes = bananas::said("WORKER_ROUTING_KEYS", read)?;
        }
        Ok(())
    }
}

/// Options of a worker for Meshwork's own jobs.
#[derive(Debug, clap::Args)]
struct Listen {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    jobs: JobOptions,
    #[command(flatten)]
    contexts: InContexts,
}

/// Default of `--concurrency`.
pub(crate) const CONCURRENCY: u16 = 10;

/// Printed JSON.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event<'a> {
    Listening {
        worker: &'a str,
        types: Vec<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        group: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        routes: Option<String>,
        instance: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        context: Option<ContextId>,
        #[serde(skip_serializing_if = "Option::is_none")]
        runner: Option<RunnerId>,
        #[serde(skip_serializing_if = "Option::is_none")]
        metrics: Option<&'a str>,
    },
    Stopped {
        worker: &'a str,
        released: usize,
    },
}

impl Listen {
    async fn run(mut self, context: &mut App) -> Result<Exit, CommandError> {
        let (interrupt, quiet) = (Interrupt::listen()?, Quiet::listen()?);
        let client = interrupt.or(context.client()).await?;
        let each = self.common.concurrency.unwrap_or(CONCURRENCY);
        interrupt.or(self.jobs.load(each)).await?;
        let app = self.jobs.app().cloned();
        let ended = async {
            if let Some(app) = &app {
                app::store_schedules(app, &client).await?;
                app::store_limits(app, &client).await?;
            }
            self.serve(context, (&client, interrupt, quiet)).await
        };
        let ended = ended.await;
        if let Some(app) = app {
            app.close().await;
        }
        ended
    }

    async fn serve(
        self,
        context: &mut App,
        (client, interrupt, mut quiet): (&Client, Interrupt, Quiet),
    ) -> Result<Exit, CommandError> {
        let is_private = client.broker().conn().is_private();
        if self.jobs.app().is_none() {
            let sandbox = &self.jobs.sandbox;
            sandbox.note_default(is_private, self.jobs.types());
            if self.common.concurrency.is_none() && sandbox.processes().is_some() {
                note(format_args!("note: {PROCESSES}"));
            }
        }
        if let Some(serves) = self.contexts.named().cloned() {
            return Box::pin(self.run_in(context, (client, interrupt, quiet), serves)).await;
        }
        if self.contexts.spread {
            return Box::pin(self.run_in_parts(context, (client, interrupt, quiet))).await;
        }
        let endpoint = self.common.endpoint.bind(self.common.metrics_addr).await?;
        let worker = self.worker(client)?.start().await?;
        interrupt.holds(&worker);
        let name = worker.name().to_owned();
        let metrics = Metrics::new(client).worker(worker.monitor());
        // Served until the end, so that others can observe the shutdown.
        let served = endpoint.map(|endpoint| endpoint.serve(metrics, Some(worker.monitor())));
        let at = served.as_ref().map(Served::url);
        tokio::select! {
            () = worker.registered() => self.tell(&name, None, at.as_deref(), context)?,
            _ = interrupt.heard() => {}
        }
        quiet.until_stop(&interrupt, &[&worker]).await;
        let released = interrupt.stop(worker).await;
        stopped(&name, released, context)?;
        Ok(interrupt.exit())
    }

    /// Runs a worker in each of these contexts.
    async fn run_in(
        mut self,
        context: &mut App,
        (client, interrupt, mut quiet): (&Client, Interrupt, Quiet),
        serves: Serves,
    ) -> Result<Exit, CommandError> {
        let open = context.retried(async || self.contexts.open(&serves, client).await);
        let members = interrupt.or(open).await?;
        if self.jobs.types().is_empty() {
            let types = context.retried(async || members.types().await);
            self.jobs.types = interrupt.or(types).await?;
        }
        let endpoint = self.common.endpoint.bind(self.common.metrics_addr).await?;
        let types = self.jobs.all_types();
        // The store may go away during the start: what has begun is stopped, and all begins again.
        let start = context.retried(async || {
            members
                .start(&types, self.concurrency(), |client| self.worker(client))
                .await
        });
        let started = interrupt.or(start).await?;
        started.iter().for_each(|one| interrupt.holds(&one.worker));
        // Metrics of several contexts would have the same names.
        let served = match (endpoint, &started[..]) {
            (Some(endpoint), [one]) => {
                let metrics = Metrics::new(&one.client).worker(one.worker.monitor());
                Some(endpoint.serve(metrics, Some(one.worker.monitor())))
            }
            (Some(_), _) => {
                in_contexts::stop(started, |worker| interrupt.stop(worker)).await;
                return Err(CommandError::usage(
                    "--metrics-addr needs a single context: name one with --context",
                ));
            }
            (None, _) => None,
        };
        let at = served.as_ref().map(Served::url);
        for one in &started {
            tokio::select! {
                () = one.worker.registered() => self.tell(one.worker.name(), Some(one), at.as_deref(), context)?,
                _ = interrupt.heard() => {}
            }
        }
        let workers: Vec<_> = started.iter().map(|one| &one.worker).collect();
        quiet.until_stop(&interrupt, &workers).await;
        for (name, released) in in_contexts::stop(started, |worker| interrupt.stop(worker)).await {
            stopped(&name, released, context)?;
        }
        Ok(interrupt.exit())
    }

    /// Runs a worker in each part of the spread queues, also in later ones.
    async fn run_in_parts(
        self,
        context: &mut App,
        (client, interrupt, mut quiet): (&Client, Interrupt, Quiet),
    ) -> Result<Exit, CommandError> {
        if self.common.metrics_addr.is_some() {
            return Err(CommandError::usage(
                "--metrics-addr needs a single context: name one with --context",
            ));
        }
        let (actor, types) = (&self.contexts.actor, self.jobs.all_types());
        let concurrency = self.concurrency();
        let open = context
            .retried(async || InParts::open(client, actor, types.clone(), concurrency).await);
        let mut parts = interrupt.or(open).await?;
        let first = parts.look(|client| self.worker(client));
        interrupt.or(first).await?;
        if parts.started.is_empty() {
            let types = self.jobs.types().join(", ");
            return Err(CommandError::usage(format_args!(
                "no queue of {types} is spread over contexts: `meshwork queue spread QUEUE --parts 4` spreads one"
            )));
        }
        let mut known = 0;
        loop {
            for one in &parts.started[known..] {
                interrupt.holds(&one.worker);
                tokio::select! {
                    () = one.worker.registered() => self.tell(one.worker.name(), Some(one), None, context)?,
                    _ = interrupt.heard() => {}
                }
            }
            known = parts.started.len();
            let workers: Vec<_> = parts.started.iter().map(|one| &one.worker).collect();
            tokio::select! {
                () = quiet.until_stop(&interrupt, &workers) => break,
                () = tokio::time::sleep(in_parts::LOOK_EVERY) => {}
            }
            // A part that cannot be served yet does not stop the others.
            if let Err(error) = parts.look(|client| self.worker(client)).await {
                tracing::warn!(%error, "parts of spread queues");
            }
        }
        for (name, released) in
            in_contexts::stop(parts.started, |worker| interrupt.stop(worker)).await
        {
            stopped(&name, released, context)?;
        }
        Ok(interrupt.exit())
    }

    /// Returns the number of jobs at once: with an app, of each of its processes.
    fn concurrency(&self) -> usize {
        let each: usize = self.common.concurrency.unwrap_or(CONCURRENCY).into();
        (each * self.jobs.processes()).min(MAX_CONCURRENCY)
    }

    fn worker(&self, client: &Client) -> Result<Worker, CommandError> {
        let worker = Worker::new(client);
        let worker = match &self.common.routes {
            Some(routes) => worker.routes(routes.clone()),
            None => worker.group(self.jobs.group()),
        };
        let worker = worker
            .concurrency(self.concurrency())
            .lease(self.common.lease)
            .shutdown_timeout(self.common.shutdown_timeout)
            .sandbox(
                self.jobs
                    .sandbox
                    .policy(client.broker().conn().is_private())?,
            );
        self.jobs.set(worker)
    }

    /// Prints that the worker listens.
    fn tell(
        &self,
        worker: &str,
        place: Option<&Started>,
        metrics: Option<&str>,
        context: &mut App,
    ) -> Result<(), CommandError> {
        let types = self.jobs.types();
        let routes = self.common.routes.as_ref().map(Routes::to_string);
        let of_group = self.jobs.group();
        let group = routes.is_none().then_some(of_group.as_str());
        let instance = self.jobs.instance.as_ref().map(Instance::as_str);
        if context.out.is_json() {
            context.out.json(&Event::Listening {
                worker,
                types,
                group,
                routes,
                instance,
                context: place.map(|place| place.context),
                runner: place.map(|place| place.runner),
                metrics,
            })?;
            return Ok(context.out.flush()?);
        }
        let place = match (place, instance) {
            (Some(place), _) => format!(", context {}, runner {}", place.context, place.runner),
            (None, Some(instance)) => format!(", instance {instance}"),
            (None, None) => String::new(),
        };
        let types = types.join(", ");
        let many = self.concurrency();
        let which = routes.map(|routes| format!("routes {routes}"));
        let which = which.unwrap_or_else(|| format!("group {of_group}"));
        note(format_args!(
            "listening to {types} of {which}{place}; {many} jobs at once ({worker})"
        ));
        if let Some(metrics) = metrics {
            note(format_args!("metrics at {metrics}"));
        }
        Ok(())
    }
}

/// Prints that a worker has stopped.
fn stopped(worker: &str, released: usize, context: &mut App) -> Result<(), CommandError> {
    if context.out.is_json() {
        context.out.json(&Event::Stopped { worker, released })?;
    } else {
        note(format_args!(
            "stopped; {} released",
            counted(released, "job")
        ));
    }
    Ok(())
}
