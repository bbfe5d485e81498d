//! `meshwork batch create`.

use std::path::PathBuf;
use std::time::Duration;

use meshwork::view::BatchView;
use meshwork::{Client, JobRequest};
use meshwork_model::batch::Callback;
use meshwork_model::name::{BatchId, ScriptType};
use serde::Serialize;
use serde_json::{Map, json};

use super::add::written;
use crate::app::App;
use crate::args::parsers;
use crate::args::script::Script;
use crate::error::CommandError;
use crate::exit::Exit;

/// Create a batch and print its id
///
/// Add jobs with `batch add`, then seal the batch with `batch seal`; only a sealed batch can end. Its callbacks are
/// stored as jobs that wait for that. Their input is a JSON summary of the batch.
#[derive(Debug, clap::Args)]
pub(crate) struct Create {
    /// Script to run once when all jobs have ended, in success or error
    #[arg(long, value_name = "FILE")]
    on_done: Option<PathBuf>,
    /// Script to run once when all jobs have finished
    #[arg(long, value_name = "FILE")]
    on_success: Option<PathBuf>,
    /// Script to run once when the first job has ended in error
    #[arg(long, value_name = "FILE")]
    on_failure: Option<PathBuf>,
    /// Type of the callbacks' scripts [default: by extension]
    #[arg(long = "type", value_name = "TYPE")]
    script_type: Option<ScriptType>,
    /// Outer batch of the callbacks: it ends after they have ended
    #[arg(long, value_name = "BATCH")]
    within: Option<BatchId>,
    /// Name for people
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    name: String,
    /// Longest time without a new job, in seconds; then the batch is sealed, and counts as failed [default: 3600]
    #[arg(long, value_name = "DURATION", value_parser = parsers::wait, allow_hyphen_values = true)]
    open_for: Option<Duration>,
    /// Id of the batch [default: a new one]; an existing batch of that id does not change
    #[arg(long)]
    id: Option<BatchId>,
}

#[derive(Debug, Serialize)]
struct Created<'a> {
    id: &'a str,
}

impl Create {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let mut callbacks = Vec::new();
        for (kind, file) in [
            (Callback::Done, &self.on_done),
            (Callback::Success, &self.on_success),
            (Callback::Failure, &self.on_failure),
        ] {
            let Some(file) = file else { continue };
            let script = Script::read(file, self.script_type.clone())?;
            let mut request = JobRequest::new(script.script_type, script.text);
            if let Some(outer) = &self.within {
                request = request.batch(outer.clone());
            }
            callbacks.push((kind, request));
        }
        let id = match context.near().await? {
            Some(client) => self.open(&client, callbacks).await?,
            None => self.by_api(context, callbacks).await?,
        };
        if context.out.is_json() {
            context.out.json(&Created { id: &id })?;
        } else {
            context.out.line(id)?;
        }
        Ok(Exit::DONE)
    }

    async fn open(
        self,
        client: &Client,
        callbacks: Vec<(Callback, JobRequest)>,
    ) -> Result<String, CommandError> {
        let mut batch = client.batch().name(self.name);
        for (kind, request) in callbacks {
            batch = batch.on(kind, request);
        }
        if let Some(open_for) = self.open_for {
            batch = batch.open_for(open_for);
        }
        if let Some(id) = self.id {
            batch = batch.id(id);
        }
        Ok(batch.open().await?.id().to_string())
    }

    async fn by_api(
        self,
        context: &App,
        callbacks: Vec<(Callback, JobRequest)>,
    ) -> Result<String, CommandError> {
        let mut params = Map::new();
        for (kind, request) in callbacks {
            params.insert(format!("on_{kind}"), written(request)?.into());
        }
        params.insert("name".to_owned(), self.name.into());
        let id = self.id.as_ref().map(BatchId::as_str);
        params.insert("id".to_owned(), json!(id));
        let open_for = self.open_for.map(|time| time.as_secs_f64());
        params.insert("open_for".to_owned(), json!(open_for));
        let batch: BatchView = context.call("batch.create", &params).await?;
        Ok(batch.id)
    }
}
