//! `meshwork worker --schema bananas`: what only jobs of Bananas need, by its own names too.

use std::path::PathBuf;
use std::time::Duration;

use meshwork::model::name::RoutingKey;
use meshwork::model::route::routes::Routes;
use meshwork::source::bananas::{Foreign, MAX_CONCURRENCY, Worker, WorkerHandle};
use serde::Serialize;

use super::Listen;
use crate::commands::bananas::Side;
use crate::context::Context;
use crate::error::Error;
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
    #[arg(long = "handler", value_name = "NAME=FILE", value_parser = handler)]
    handlers: Vec<(String, PathBuf)>,
    /// How long a run may take: 5m, 90s
    #[arg(long, value_name = "TIME", env = "JOB_TIMEOUT", default_value = "5m",
          value_parser = value::span)]
    job_timeout: Duration,
    /// How many runs a job gets whose record does not say it
    #[arg(long, value_name = "N", env = "MAX_RETRIES", default_value_t = 3)]
    max_retries: u32,
    /// What becomes of jobs for another route that stand on a list without one, while no worker of ours is there
    /// for them; while one is, they go to the list of their route
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = Others::Run)]
    others: Others,
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

/// `NAME=FILE`.
fn handler(text: &str) -> Result<(String, PathBuf), String> {
    let parts = text.split_once('=');
    let parts = parts.filter(|(name, file)| !name.is_empty() && !file.is_empty());
    let (name, file) = parts.ok_or("write NAME=FILE, as send_email=handlers/send_email.py")?;
    Ok((name.to_owned(), PathBuf::from(file)))
}

/// How many jobs run at once where it is not said.
fn concurrency() -> Result<usize, Error> {
    let Some(text) = std::env::var_os("WORKER_CONCURRENCY") else {
        return Ok(super::CONCURRENCY.into());
    };
    let number = text.to_str().and_then(|text| text.parse().ok());
    let number = number.filter(|number| (1..=MAX_CONCURRENCY).contains(number));
    number.ok_or_else(|| Error::Concurrency(text.to_string_lossy().into_owned()))
}

/// What is printed as JSON.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event<'a> {
    Listening {
        worker: &'a str,
        routes: Vec<&'a str>,
        lists: &'a [String],
    },
    Stopped {
        worker: &'a str,
        handed_back: usize,
    },
}

impl Bananas {
    /// Runs the worker until it is told to stop.
    pub(super) async fn run(&self, listen: &Listen, context: &mut Context) -> Result<Exit, Error> {
        let interrupt = Interrupt::listen()?;
        let client = interrupt.or(self.side.client(context)).await?;
        let concurrency = match listen.concurrency {
            Some(jobs) => jobs.into(),
            None => concurrency()?,
        };
        let routes = listen.routes.clone().unwrap_or_default();
        let mut worker = Worker::new(&client)
            .routes(routes.keys().iter().cloned())
            .concurrency(concurrency)
            .timeout(self.job_timeout)
            .max_retries(self.max_retries)
            .lease(listen.lease)
            .grace(listen.grace)
            .peer(self.side.peer)
            .adopt_strays(self.adopt_strays)
            .scheduler(!self.no_scheduler)
            .foreign(match self.others {
                Others::Run => Foreign::Run,
                Others::Leave => Foreign::Leave,
            });
        for (name, path) in &self.handlers {
            worker = worker.script(name, path)?;
        }
        let worker = worker.start().await?;
        tokio::select! {
            () = worker.registered() => tell(&worker, &routes, concurrency, context)?,
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
}

/// Says that it listens.
fn tell(
    worker: &WorkerHandle,
    routes: &Routes,
    concurrency: usize,
    context: &mut Context,
) -> Result<(), Error> {
    let routes: Vec<_> = routes.keys().iter().map(RoutingKey::as_str).collect();
    if context.out.is_json() {
        context.out.json(&Event::Listening {
            worker: worker.name(),
            routes,
            lists: worker.lists(),
        })?;
        return Ok(context.out.flush()?);
    }
    let (routes, name) = (routes.join(", "), worker.name());
    note(format_args!(
        "listening to jobs of Bananas for {routes}; {concurrency} jobs at once ({name})"
    ));
    Ok(())
}
