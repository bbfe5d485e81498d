//! `meshwork worker --schema bananas`: what only jobs of Bananas need, by its own names too.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use meshwork::Client;
use meshwork::metrics::Metrics;
use meshwork::model::bananas::DEFAULT_MAX_RETRIES;
use meshwork::model::name::RoutingKey;
use meshwork::model::route::routes::Routes;
use meshwork::protocol::bananas::{Foreign, JOB_TIMEOUT, MAX_CONCURRENCY, Worker, WorkerHandle};
use meshwork_broker::Broker;
use serde::Serialize;

use super::config::Config;
use super::{Listen, given};
use crate::commands::bananas::Side;
use crate::context::Context;
use crate::endpoint::{Endpoint, Served};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::out::note;
use crate::value;

/// Whose jobs a worker runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Schema {
    /// Ours, and Hero's
    #[default]
    Hero,
    /// Those of Bananas
    Bananas,
}

/// What becomes of jobs for others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum Others {
    /// They are run, as Bananas' workers do
    #[default]
    Run,
    /// They stay where they are
    Leave,
}

/// What a worker for jobs of Bananas is started with besides.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "With --schema bananas")]
pub(super) struct Bananas {
    /// What runs jobs of a name: a script that ends in .py or .rhai; may be given several times
    #[arg(long = "handler", value_name = "NAME=FILE", value_parser = value::handler)]
    handlers: Vec<(String, PathBuf)>,
    /// A file of settings, YAML, that says `worker:` with routing_keys, handlers, concurrency, job_timeout and
    /// max_retries; what is said here or in the environment goes before it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// How long a run may take: 5m, 1m30s [env: JOB_TIMEOUT] [default: 5m]
    #[arg(long, value_name = "TIME", value_parser = value::span)]
    job_timeout: Option<Duration>,
    /// How many runs a job gets whose record does not say it [env: MAX_RETRIES] [default: 3]
    #[arg(long, value_name = "N")]
    max_retries: Option<u32>,
    /// What becomes of jobs for another route that stand on a list without one, while no worker of ours is there
    /// for them; while one is, they go to the list of their route [default: run]
    #[arg(long, value_name = "WHAT", value_enum)]
    others: Option<Others>,
    /// Put back what has stood among the jobs that run for so long and is not run by ours: 30m. A job that a
    /// worker of Bananas still runs by then runs twice
    #[arg(long, value_name = "AGE", value_parser = value::span)]
    adopt_strays: Option<Duration>,
    /// Leave jobs whose time has come to another scheduler
    #[arg(long)]
    no_scheduler: bool,
    #[command(flatten)]
    side: Side,
}

/// What Bananas' workers are told by the environment, and ours are not: all of them run jobs, of their routes alone.
const UNREAD: [&str; 7] = [
    "WORKER_MODE",
    "WORKER_PRIORITIES",
    "WORKER_JOB_TYPES",
    "ENABLE_SCHEDULER",
    "CRON_SCHEDULER_ENABLED",
    "SCHEDULER_INTERVAL",
    "RESULT_BACKEND_ENABLED",
];

/// What an environment variable of Bananas says; one that is empty says nothing.
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

/// Says which variables are set that change nothing here.
fn tell_unread() {
    let set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let set: Vec<_> = UNREAD.into_iter().filter(|name| set(name)).collect();
    if !set.is_empty() {
        note(format_args!(
            "warning: {} changes nothing here; --routes, --handler and --no-scheduler say what a worker does",
            set.join(", ")
        ));
    }
}

/// What is printed as JSON.
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
        handed_back: usize,
    },
}

impl Bananas {
    /// An option that was given: to jobs of ours all of them mean nothing.
    pub(super) fn given(&self) -> Option<&'static str> {
        given(&[
            (!self.handlers.is_empty(), "--handler"),
            (self.config.is_some(), "--config"),
            (self.job_timeout.is_some(), "--job-timeout"),
            (self.max_retries.is_some(), "--max-retries"),
            (self.others.is_some(), "--others"),
            (self.adopt_strays.is_some(), "--adopt-strays"),
            (self.no_scheduler, "--no-scheduler"),
        ])
    }

    /// Runs the worker until it is told to stop.
    pub(super) async fn run(
        &self,
        listen: &Listen,
        context: &mut Context,
    ) -> Result<Exit, CommandError> {
        let interrupt = Interrupt::listen()?;
        let settings = self.settings(listen)?;
        let client = interrupt.or(self.side.client(context)).await?;
        let endpoint = Endpoint::bind(listen.metrics_addr).await?;
        let mut worker = Worker::new(&client)
            .routes(settings.routes.clone())
            .concurrency(settings.concurrency)
            .timeout(settings.job_timeout)
            .max_retries(settings.max_retries)
            .lease(listen.lease)
            .shutdown_timeout(listen.grace)
            .peer(self.side.peer)
            .adopt_strays(self.adopt_strays)
            .scheduler(!self.no_scheduler)
            .foreign(match self.others.unwrap_or_default() {
                Others::Run => Foreign::Run,
                Others::Leave => Foreign::Leave,
            });
        for (name, path) in &settings.handlers {
            worker = worker.script(name, path)?;
        }
        tell_unread();
        if settings.handlers.is_empty() {
            note(
                "warning: it has no handler, so each job that it takes fails; give --handler NAME=FILE",
            );
        }
        let worker = worker.start().await?;
        // Until the end of all, so that others see how it stops.
        let ours = Client::new(Broker::new(client.broker().conn().clone(), context.keys()));
        let monitor = worker.monitor();
        let metrics = Metrics::new(&ours).bananas(&client).worker(monitor.clone());
        let served = endpoint.map(|endpoint| endpoint.serve(metrics, Some(monitor)));
        let at = served.as_ref().map(Served::url);
        tokio::select! {
            () = worker.registered() => settings.tell(&worker, at.as_deref(), context)?,
            _ = interrupt.heard() => {}
        }
        interrupt.heard().await;
        let name = worker.name().to_owned();
        let handed_back = worker.stop().await;
        if context.out.is_json() {
            let worker = &name;
            context.out.json(&Event::Stopped {
                worker,
                handed_back,
            })?;
        } else {
            note(format_args!("stopped; {handed_back} jobs handed back"));
        }
        Ok(Exit::DONE)
    }

    /// What the command line says, else the environment, else the file, else Bananas.
    fn settings(&self, listen: &Listen) -> Result<Settings, CommandError> {
        let given: Vec<&str> = self.handlers.iter().map(|(name, _)| &**name).collect();
        let config = match &self.config {
            Some(path) => Config::read(path, &given)?,
            None => Config::default(),
        };
        let mut named = BTreeSet::new();
        if let Some((twice, _)) = self.handlers.iter().find(|(name, _)| !named.insert(name)) {
            return Err(CommandError::usage(format_args!(
                "the handler {twice} is given twice: say which file it is"
            )));
        }
        let mut handlers = config.handlers;
        handlers.extend(self.handlers.iter().cloned());
        let routes = listen.routes.clone().or(config.routes);
        let concurrency = match listen.concurrency {
            Some(jobs) => Some(jobs.into()),
            None => said("WORKER_CONCURRENCY", concurrency)?.or(config.concurrency),
        };
        let job_timeout = match self.job_timeout {
            Some(timeout) => Some(timeout),
            None => said("JOB_TIMEOUT", value::span)?.or(config.job_timeout),
        };
        let retries = match self.max_retries {
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

/// What a worker is to do, whoever said it.
struct Settings {
    routes: Routes,
    handlers: BTreeMap<String, PathBuf>,
    concurrency: usize,
    job_timeout: Duration,
    max_retries: u32,
}

impl Settings {
    /// Says that it listens.
    fn tell(
        &self,
        worker: &WorkerHandle,
        metrics: Option<&str>,
        context: &mut Context,
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
