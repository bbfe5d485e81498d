//! `meshwork worker quiet` and `stop`: requests to a worker on any host, of every protocol.

use std::time::Duration;

use meshwork::Client;
use meshwork::model::worker_request::WorkerRequest;
use serde::Serialize;

use crate::app::App;
use crate::commands::action;
use crate::commands::bananas;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::note;
use crate::value;

/// The options of a request.
#[derive(Debug, clap::Args)]
pub(crate) struct RequestArgs {
    /// The worker's id, as it prints it when it starts, and `worker list` under `id`; for jobs of Hero also its --instance
    #[arg(value_name = "ID", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    id: String,
    /// Longest wait until the worker has confirmed; it polls three times per lease
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = value::span)]
    timeout: Duration,
}

/// Printed result.
#[derive(Debug, Serialize)]
struct Obeyed<'a> {
    worker: &'a str,
    request: &'a str,
}

impl RequestArgs {
    /// Sends the request to a worker for jobs of Hero.
    pub(crate) async fn run(
        self,
        request: WorkerRequest,
        context: &mut App,
    ) -> Result<Exit, CommandError> {
        let client = context.client().await?;
        let worker = self.find(&client).await?;
        client
            .request_worker(&worker, request, self.timeout)
            .await?;
        obeyed(&worker, request, context)
    }

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

    /// Returns the full name of the worker with this id or this instance.
    async fn find(&self, client: &Client) -> Result<String, CommandError> {
        let workers = client.workers().await?;
        let is_it = |name: &str, instance: &str, named: bool| {
            name == self.id || (named && instance == self.id)
        };
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
                RequestError::NoWorker(self.id.clone()),
            )),
            _ => Err(CommandError::usage(RequestError::Several {
                name: self.id.clone(),
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
