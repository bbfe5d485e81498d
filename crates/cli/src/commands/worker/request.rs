//! `meshwork worker quiet` and `stop`: requests to a worker on any host, of every protocol.

use std::collections::BTreeSet;
use std::time::Duration;

use meshwork::{Client, WorkerInfo};
use meshwork_model::number::counted;
use meshwork_model::worker_request::WorkerRequest;
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::list::workers;
use crate::app::App;
use crate::args::parsers;
use crate::commands::action;
use crate::commands::bananas;
use crate::confirm::confirm;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::note;

/// The options of a request.
#[derive(Debug, clap::Args)]
pub(crate) struct RequestArgs {
    /// The worker's id, as it prints it when it starts, and `worker list` under `id`; or its --instance
    #[arg(value_name = "ID", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    id: String,
    /// Longest wait until the worker has confirmed; it polls three times per lease
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = parsers::span)]
    timeout: Duration,
}

/// Printed result.
#[derive(Debug, Serialize)]
struct Obeyed<'a> {
    worker: &'a str,
    request: &'a str,
}

impl RequestArgs {
    /// Sends the request to a worker for jobs of Bananas.
    pub(crate) async fn run_bananas(
        self,
        request: WorkerRequest,
        side: &bananas::Side,
        context: &mut App,
    ) -> Result<Exit, CommandError> {
        let client = side.client(context).await?;
        let broker = client.broker();
        let key = broker.keys().worker_request(&self.id, request);
        let seen = broker.request_worker(&key, self.timeout).await?;
        self.end(seen, request, context)
    }

    /// Sends the request to a service of Nooble4.
    pub(crate) async fn run_service(
        self,
        request: WorkerRequest,
        side: &action::Side,
        context: &mut App,
    ) -> Result<Exit, CommandError> {
        let broker = side.broker(context).await?;
        let key = broker.keys().worker_request(&self.id, request);
        let seen = broker.request_worker(&key, self.timeout).await?;
        self.end(seen, request, context)
    }

    fn end(
        self,
        seen: bool,
        request: WorkerRequest,
        context: &mut App,
    ) -> Result<Exit, CommandError> {
        if !seen {
            let (worker, waited) = (self.id, self.timeout);
            return Err(meshwork::Error::RequestTimeout {
                worker,
                request,
                waited,
            }
            .into());
        }
        obeyed(&self.id, request, context)
    }
}

/// Options of a request to workers for Meshwork's own jobs.
#[derive(Debug, clap::Args)]
pub(crate) struct Request {
    /// The worker's id, as `worker list` shows it under `id`, or its --instance
    #[arg(value_name = "ID", value_parser = clap::builder::NonEmptyStringValueParser::new(),
          required_unless_present = "all")]
    id: Option<String>,
    /// All registered workers
    #[arg(long, conflicts_with = "id")]
    all: bool,
    /// Do not ask for confirmation of --all
    #[arg(short, long, requires = "all")]
    yes: bool,
    /// Longest wait until a worker has confirmed; it polls three times per lease
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = parsers::span)]
    timeout: Duration,
}

impl Request {
    /// Sends the request. A worker that does not confirm does not keep the request from the others.
    pub(crate) async fn run(
        self,
        request: WorkerRequest,
        context: &mut App,
    ) -> Result<Exit, CommandError> {
        let client = context.near().await?;
        let known = workers(context, client.as_ref()).await?;
        let workers = match &self.id {
            Some(id) => vec![Self::find(id, known)?],
            None => self.all(request, known)?,
        };
        let requests = workers
            .iter()
            .map(async |worker| self.send(worker, request, (context, client.as_ref())).await);
        let results = futures_util::future::join_all(requests).await;
        let mut failed = None;
        for (worker, result) in workers.iter().zip(results) {
            match result {
                Ok(()) => {
                    obeyed(worker, request, context)?;
                }
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(Exit::DONE), Err)
    }

    async fn send(
        &self,
        worker: &str,
        request: WorkerRequest,
        (context, client): (&App, Option<&Client>),
    ) -> Result<(), CommandError> {
        if let Some(client) = client {
            return Ok(client.request_worker(worker, request, self.timeout).await?);
        }
        let wait = self.timeout.as_secs_f64();
        let params = json!({"worker": worker, "wait": wait});
        let method = format!("worker.{}", request.as_str());
        let _: Box<RawValue> = context.call(&method, &params).await?;
        Ok(())
    }

    /// Returns the names of all workers, after a confirmation.
    fn all(
        &self,
        request: WorkerRequest,
        workers: Vec<WorkerInfo>,
    ) -> Result<Vec<String>, CommandError> {
        let workers = workers.into_iter();
        let names: BTreeSet<_> = workers.filter_map(|it| it.worker).collect();
        if names.is_empty() {
            note("there is no worker");
        } else {
            let verb = match request {
                WorkerRequest::Quiet => "quiet",
                WorkerRequest::Stop => "stop",
            };
            confirm(
                &format!("to {verb} {}", counted(names.len(), "worker")),
                self.yes,
            )?;
        }
        Ok(names.into_iter().collect())
    }

    /// Returns the full name of the worker with this id or this instance.
    fn find(id: &str, workers: Vec<WorkerInfo>) -> Result<String, CommandError> {
        let is_it =
            |name: &str, instance: &str, named: bool| name == id || (named && instance == id);
        let mut found: Vec<String> = workers
            .into_iter()
            .filter_map(|it| {
                let name = it.worker?;
                is_it(&name, &it.instance, it.named).then_some(name)
            })
            .collect();
        found.sort_unstable();
        found.dedup();
        match &found[..] {
            [one] => Ok(one.clone()),
            [] => Err(CommandError::new(
                Exit::NO_JOB,
                RequestError::NoWorker(id.to_owned()),
            )),
            _ => Err(CommandError::usage(RequestError::Several {
                name: id.to_owned(),
                ids: found.join(", "),
            })),
        }
    }
}

/// Error: the id names no worker.
#[derive(Debug, thiserror::Error)]
enum RequestError {
    #[error("there is no worker {0}: `meshwork worker list` lists the workers")]
    NoWorker(String),
    #[error("several workers have the instance {name}: give one of the ids {ids}")]
    Several { name: String, ids: String },
}

fn obeyed(worker: &str, request: WorkerRequest, context: &mut App) -> Result<Exit, CommandError> {
    if context.out.is_json() {
        let request = request.as_str();
        context.out.json(&Obeyed { worker, request })?;
        return Ok(Exit::DONE);
    }
    match request {
        WorkerRequest::Quiet => note(format_args!("{worker} takes no more jobs")),
        WorkerRequest::Stop => note(format_args!(
            "{worker} is stopping; it waits for its running jobs"
        )),
    }
    Ok(Exit::DONE)
}
