//! `meshwork batch add`.

use std::path::PathBuf;

use meshwork::JobRequest;
use meshwork_model::name::{BatchId, JobId};
use meshwork_model::spec::JobSpec;
use meshwork_ops::params::MAX_LIMIT;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::app::App;
use crate::args::input;
use crate::args::script::Script;
use crate::ephemeral_worker::{WorkerCheck, required};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::job_args::JobArgs;
use crate::out::warn;

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
        let ids = match context.near().await? {
            Some(client) => {
                if let Some(first) = requests.first() {
                    let route = first.destination();
                    self.check_worker.check(&client, route).await?;
                }
                let ids = client.batch_of(self.batch).add(requests).await?;
                ids.iter().map(ToString::to_string).collect()
            }
            None => self.by_api(context, requests).await?,
        };
        for id in &ids {
            if context.out.is_json() {
                context.out.json(&Added { id })?;
            } else {
                context.out.line(id)?;
            }
        }
        Ok(Exit::DONE)
    }

    /// Adds the jobs by the API, in as few calls as its bodies allow.
    async fn by_api(
        self,
        context: &App,
        requests: Vec<JobRequest>,
    ) -> Result<Vec<String>, CommandError> {
        if self.check_worker.is_required() {
            return Err(required());
        }
        let (mut ids, mut jobs, mut size) = (Vec::new(), Vec::new(), 0);
        let mut requests = requests.into_iter().peekable();
        while let Some(request) = requests.next() {
            let job = written(request)?;
            size += serde_json::to_string(&job).map_or(0, |text| text.len());
            jobs.push(job);
            if requests.peek().is_some() && size < MAX_BODY && jobs.len() < MAX_LIMIT {
                continue;
            }
            let params = json!({"id": self.batch.as_str(), "jobs": jobs});
            let added: AddedJobs = context.call("batch.add", &params).await?;
            warn(&added.warnings);
            ids.extend(added.ids);
            (jobs, size) = (Vec::new(), 0);
        }
        Ok(ids)
    }
}

/// Size of the jobs of a call, in bytes, from which on the next ones come in another call. A server takes 1 MiB by default.
const MAX_BODY: usize = 256 * 1024;

/// Jobs that were added.
#[derive(Deserialize)]
struct AddedJobs {
    ids: Vec<String>,
    #[serde(default)]
    warnings: Vec<String>,
}

/// Writes a job as a parameter of the API.
pub(in crate::commands) fn written(
    request: JobRequest,
) -> Result<Map<String, Value>, CommandError> {
    let job = request.build().map_err(meshwork::Error::from)?;
    JobSpec::written(&job).map_err(CommandError::usage)
}
