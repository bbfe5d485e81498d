//! `meshwork worker --protocol bananas`: a worker for jobs of Bananas, which reads Bananas' environment variables too.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use meshwork::Client;
use meshwork::metrics::Metrics;
use meshwork::protocol::bananas::{Foreign, JOB_TIMEOUT, MAX_CONCURRENCY, Worker, WorkerHandle};
use meshwork_broker::Broker;
use meshwork_model::bananas::DEFAULT_MAX_RETRIES;
use meshwork_model::name::RoutingKey;
use meshwork_model::number::counted;
use meshwork_model::route::routes::Routes;
use meshwork_model::worker_request::WorkerRequest;
use serde::Serialize;

use super::Common;
use super::config::Config;
use super::request::RequestArgs;
use meshwork_server::metrics::Served;

use crate::app::App;
use crate::args::parsers;
use crate::commands::bananas::Side;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::interrupt::{Interrupt, Quiet};
use crate::out::note;

/// Treatment of jobs of other routes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum ForeignJobs {
    /// Run the jobs, as Bananas' workers do
    #[default]
    Run,
    /// Leave the jobs on their lists
    Skip,
}

/// Claim jobs of Bananas from its queues and run them with handlers, until SIGINT or SIGTERM
///
/// The first signal shuts the worker down: it claims no more jobs, waits for running jobs for --shutdown-timeout, and
/// releases the rest. The second signal ends the process at once; its jobs are reclaimed after --lease. SIGTSTP makes
/// it quiet: it claims no more jobs, and completes running ones.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct BananasWorker {
    #[command(subcommand)]
    command: Option<Other>,
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    bananas: Bananas,
}

/// Requests to running workers.
#[derive(Debug, clap::Subcommand)]
enum Other {
    /// Make a worker quiet: it claims no more jobs and completes running ones, until it is stopped
    Quiet(Request),
    /// Stop a worker gracefully, as SIGTERM to its process
    Stop(Request),
}

#[derive(Debug, clap::Args)]
struct Request {
    #[command(flatten)]
    args: RequestArgs,
    #[command(flatten)]
    side: Side,
}

impl BananasWorker {
    pub(crate) async fn run(mut self, context: &mut App) -> Result<Exit, CommandError> {
        let request = match self.command {
            Some(Other::Quiet(to)) => Some((to, WorkerRequest::Quiet)),
            Some(Other::Stop(to)) => Some((to, WorkerRequest::Stop)),
            None => None,
        };
        if let Some((to, request)) = request {
            return to.args.run_bananas(request, &to.side, context).await;
        }
        self.common.read_routes()?;
        self.bananas.run(&self.common, context).await
    }
}

/// Options for jobs of Bananas only.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Jobs of Bananas")]
struct Bananas {
    /// Script for jobs of a name, as NAME=FILE; it ends in .py, .rhai or .sh, or begins with #!; may be given several times
    #[arg(long = "handler", value_name = "NAME=FILE", value_parser = parsers::handler)]
    handlers: Vec<(String, PathBuf)>,
    /// Settings file in YAML with the section `worker:`: routing_keys, handlers, concurrency, job_timeout and
    /// max_retries; options and the environment override the file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Longest time of one attempt: 5m, 1m30s [env: JOB_TIMEOUT] [default: 5m]
    #[arg(long, value_name = "DURATION", value_parser = parsers::span)]
    job_timeout: Option<Duration>,
    /// Attempts of a job whose record does not limit them [env: MAX_RETRIES] [default: 3]
    #[arg(long, visible_alias = "max-retries", value_name = "N", value_parser = parsers::whole::<u32>(0..=u64::MAX))]
    max_attempts: Option<u32>,
    /// Treatment of jobs of other routes on unrouted lists while no Meshwork worker serves their route: run or skip.
    /// With such a worker they are moved to the list of their route
    #[arg(
        long,
        value_name = "WHAT",
        value_enum,
        default_value_t,
        hide_possible_values = true
    )]
    foreign_jobs: ForeignJobs,
    /// Requeue jobs that foreign workers have kept in the running list for longer than this: 30m [default: never]. A
    /// job that a worker of Bananas still runs then runs twice
    #[arg(long, value_name = "DURATION", value_parser = parsers::span)]
    rescue_orphans_after: Option<Duration>,
    /// Do not promote delayed jobs; another scheduler does
    #[arg(long)]
    no_scheduler: bool,
    #[command(flatten)]
    side: Side,
}

/// Variables of Bananas' workers without effect here.
const UNREAD: [&str; 7] = [
    "WORKER_MODE",
    "WORKER_PRIORITIES",
    "WORKER_JOB_TYPES",
    "ENABLE_SCHEDULER",
    "CRON_SCHEDULER_ENABLED",
    "SCHEDULER_INTERVAL",
    "RESULT_BACKEND_ENABLED",
];

/// Returns the value of a variable of Bananas; an empty one counts as unset.
pub(super) fn said<T>(
    name: &'static str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, CommandError> {
    let Some(value) = std::env::var_os(name).filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    let value = value.to_string_lossy().into_owned();
    match read(&value) {
        Ok(read) => Ok(Some(read)),
        Err(why) => Err(CommandError::usage(format_args!(
            "{name} is {value:?}: {why}"
        ))),
    }
}

fn concurrency(text: &str) -> Result<usize, String> {
    let number = text.parse().ok();
    let number = number.filter(|number| (1..=MAX_CONCURRENCY).contains(number));
    number.ok_or_else(|| format!("give a whole number from 1 to {MAX_CONCURRENCY}"))
}

fn max_retries(text: &str) -> Result<u32, String> {
    let number = text.parse().ok();
    number.ok_or_else(|| "give a whole number from 0 on".to_owned())
}

/// Logs the variables that are set without effect.
fn tell_unread() {
    let set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let set: Vec<_> = UNREAD.into_iter().filter(|name| set(name)).collect();
    if !set.is_empty() {
        note(format_args!(
            "warning: {} has no effect here; use --routes, --handler and --no-scheduler instead",
            set.join(", ")
        ));
    }
}

/// Printed JSON.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event<'a> {
    Listening {
        worker: &'a str,
        routes: Vec<&'a str>,
        lists: &'a [String],
        #[serde(skip_serializing_if = "Option::is_none")]
        metrics: Option<&'a str>,
    },
    Stopped {
        worker: &'a str,
        released: usize,
    },
}

impl Bananas {
    /// Runs the worker until it is stopped.
    async fn run(&self, common: &Common, context: &mut App) -> Result<Exit, CommandError> {
        let (interrupt, mut quiet) = (Interrupt::listen()?, Quiet::listen()?);
        let settings = self.settings(common)?;
        let client = interrupt.or(self.side.client(context)).await?;
        let endpoint = common.endpoint.bind(common.metrics_addr).await?;
        let mut worker = Worker::new(&client)
            .routes(settings.routes.clone())
            .concurrency(settings.concurrency)
            .timeout(settings.job_timeout)
            .max_retries(settings.max_retries)
            .lease(common.lease)
            .shutdown_timeout(common.shutdown_timeout)
            .client_variant(self.side.peer)
            .rescue_orphans_after(self.rescue_orphans_after)
            .scheduler(!self.no_scheduler)
            .foreign(match self.foreign_jobs {
                ForeignJobs::Run => Foreign::Run,
                ForeignJobs::Skip => Foreign::Leave,
            });
        for (name, path) in &settings.handlers {
            worker = worker.script(name, path)?;
        }
        tell_unread();
        if settings.handlers.is_empty() {
            note("warning: no handler is given, so every job fails; give --handler NAME=FILE");
        }
        let worker = worker.start().await?;
        interrupt.holds(&worker);
        // Served until the end, so that others can observe the shutdown.
        let ours = Client::new(Broker::new(client.broker().conn().clone(), context.keys()));
        let monitor = worker.monitor();
        let metrics = Metrics::new(&ours).bananas(&client).worker(monitor.clone());
        let served = endpoint.map(|endpoint| endpoint.serve(metrics, Some(monitor)));
        let at = served.as_ref().map(Served::url);
        tokio::select! {
            () = worker.registered() => settings.tell(&worker, at.as_deref(), context)?,
            _ = interrupt.heard() => {}
        }
        quiet.until_stop(&interrupt, &[&worker]).await;
        let name = worker.name().to_owned();
        let released = interrupt.stop(worker).await;
        if context.out.is_json() {
            let worker = &name;
            context.out.json(&Event::Stopped { worker, released })?;
        } else {
            note(format_args!(
                "stopped; {} released",
                counted(released, "job")
            ));
        }
        Ok(interrupt.exit())
    }

    /// Merges the settings: the command line, else the environment, else the file, else Bananas' defaults.
    fn settings(&self, common: &Common) -> Result<Settings, CommandError> {
        let given: Vec<&str> = self.handlers.iter().map(|(name, _)| &**name).collect();
        let config = match &self.config {
            Some(path) => Config::read(path, &given)?,
            None => Config::default(),
        };
        let mut named = BTreeSet::new();
        if let Some((twice, _)) = self.handlers.iter().find(|(name, _)| !named.insert(name)) {
            return Err(CommandError::usage(format_args!(
                "the handler {twice} is given twice: give one file"
            )));
        }
        let mut handlers = config.handlers;
        handlers.extend(self.handlers.iter().cloned());
        let routes = common.routes.clone().or(config.routes);
        let concurrency = match common.concurrency {
            Some(jobs) => Some(jobs.into()),
            None => said("WORKER_CONCURRENCY", concurrency)?.or(config.concurrency),
        };
        let job_timeout = match self.job_timeout {
            Some(timeout) => Some(timeout),
            None => said("JOB_TIMEOUT", parsers::span)?.or(config.job_timeout),
        };
        let retries = match self.max_attempts {
            Some(runs) => Some(runs),
            None => said("MAX_RETRIES", max_retries)?.or(config.max_retries),
        };
        Ok(Settings {
            routes: routes.unwrap_or_default(),
            handlers,
            concurrency: concurrency.unwrap_or(super::CONCURRENCY.into()),
            job_timeout: job_timeout.unwrap_or(JOB_TIMEOUT),
            max_retries: retries.unwrap_or(DEFAULT_MAX_RETRIES),
        })
    }
}

/// Merged settings of a worker.
struct Settings {
    routes: Routes,
    handlers: BTreeMap<String, PathBuf>,
    concurrency: usize,
    job_timeout: Duration,
    max_retries: u32,
}

impl Settings {
    /// Prints that the worker listens.
    fn tell(
        &self,
        worker: &WorkerHandle,
        metrics: Option<&str>,
        context: &mut App,
    ) -> Result<(), CommandError> {
        let keys = self.routes.keys().iter();
        let routes: Vec<_> = keys.map(RoutingKey::as_str).collect();
        if context.out.is_json() {
            context.out.json(&Event::Listening {
                worker: worker.name(),
                routes,
                lists: &worker.queues(),
                metrics,
            })?;
            return Ok(context.out.flush()?);
        }
        let (routes, name) = (routes.join(", "), worker.name());
        note(format_args!(
            "listening to jobs of Bananas for {routes}; {} jobs at once ({name})",
            self.concurrency
        ));
        if let Some(metrics) = metrics {
            note(format_args!("metrics at {metrics}"));
        }
        Ok(())
    }
}
