//! `meshwork batch add`.

use std::path::PathBuf;

use meshwork_model::name::{BatchId, JobId};
use serde::Serialize;

use crate::app::App;
use crate::args::input;
use crate::args::script::Script;
use crate::ephemeral_worker::WorkerCheck;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::job_args::JobArgs;

/// Add jobs to an open batch and print their ids
#[derive(Debug, clap::Args)]
pub(crate) struct Add {
    /// The batch's id
    #[arg(value_name = "BATCH")]
    batch: BatchId,
    /// Files of the scripts, one job each; with --each, one script
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Input files, one job each: INPUT in Rhai, stdin in Python. At most 16 MiB each
    #[arg(long, value_name = "FILE", num_args = 1..)]
    each: Vec<PathBuf>,
    /// Prefix of the jobs' ids, followed by a dash and a number. The same command, repeated after a crash, adds nothing
    /// twice
    #[arg(long, value_name = "PREFIX")]
    ids: Option<JobId>,
    #[command(flatten)]
    job_args: JobArgs,
    #[command(flatten)]
    check_worker: WorkerCheck,
}

#[derive(Debug, Serialize)]
struct Added<'a> {
    id: &'a str,
}

impl Add {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let mut requests = Vec::new();
        for file in &self.files {
            let script = Script::read(file, self.job_args.script_type.clone())?;
            if self.each.is_empty() {
                requests.push(self.job_args.checked(&script).await?);
            }
            for path in &self.each {
                let request = self.job_args.checked(&script).await?;
                requests.push(request.input(input::read(path)?));
            }
        }
        if let Some(prefix) = &self.ids {
            for (at, request) in requests.iter_mut().enumerate() {
                let id = format!("{prefix}-{}", at + 1);
                *request = request
                    .clone()
                    .id(id.parse().map_err(meshwork::Error::from)?);
            }
        }
        let client = context.client().await?;
        if let Some(first) = requests.first() {
            let route = first.destination();
            self.check_worker.check(&client, route).await?;
        }
        let ids = client.batch_of(self.batch).add(requests).await?;
        for id in &ids {
            if context.out.is_json() {
                context.out.json(&Added { id: id.as_str() })?;
            } else {
                context.out.line(id)?;
            }
        }
        Ok(Exit::DONE)
    }
}
