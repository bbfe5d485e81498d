//! `meshwork worker list`.

use meshwork::{Client, WorkerInfo};
use serde::Serialize;
use serde_json::Map;

use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::{Column, Row};

/// List the registered workers
#[derive(Debug, clap::Args)]
pub(crate) struct List {}

impl List {
    pub(super) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let workers = workers(context, context.near().await?.as_ref()).await?;
        context.out.rows(workers.into_iter().map(Listed))?;
        Ok(Exit::DONE)
    }
}

/// Reads the registered workers: of the store, or as the last scan of the API found them.
pub(super) async fn workers(
    context: &App,
    client: Option<&Client>,
) -> Result<Vec<WorkerInfo>, CommandError> {
    if let Some(client) = client {
        return Ok(client.workers().await?);
    }
    let all = ("workers", usize::MAX);
    Ok(context.pages("worker.list", Map::new(), all).await?.0)
}

#[derive(Debug, Serialize)]
struct Listed(WorkerInfo);

impl Row for Listed {
    fn columns() -> Vec<Column> {
        let names = [
            "type", "group", "instance", "host", "pid", "jobs", "slots", "since", "version",
            "state", "id",
        ];
        Column::named(names, &["pid", "jobs", "slots"])
    }

    fn optional() -> &'static [&'static str] {
        &["version", "since", "host", "pid", "instance", "group"]
    }

    /// Returns the cells; empty for unknown values.
    fn cells(&self) -> Vec<String> {
        let worker = &self.0;
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let number = |number: Option<usize>| number.map(|n| n.to_string()).unwrap_or_default();
        // A generated name is no information for people.
        let instance = Some(&worker.instance).filter(|_| worker.named);
        vec![
            worker.script_type.clone(),
            worker.group.clone(),
            instance.cloned().unwrap_or_default(),
            text(&worker.hostname),
            worker.pid.map(|pid| pid.to_string()).unwrap_or_default(),
            number(worker.in_flight),
            number(worker.slots),
            text(&worker.started_at),
            text(&worker.version),
            state(worker),
            text(&worker.worker),
        ]
    }
}

/// Returns the state of a worker that does not claim jobs of its type.
fn state(worker: &WorkerInfo) -> String {
    match &worker.fault {
        _ if worker.quiet => "quiet".to_owned(),
        Some(fault) => format!("paused: {fault}"),
        None => String::new(),
    }
}
