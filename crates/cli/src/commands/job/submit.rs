//! `meshwork job enqueue`.

use std::path::PathBuf;
use std::time::Duration;

use meshwork::JobRequest;
use meshwork_model::name::{BatchId, JobId};
use serde::Serialize;

use super::{jsonl, spread};
use crate::app::App;
use crate::args::parsers;
use crate::args::routing::{Routing, UNREAD_TOPIC};
use crate::args::script::Script;
use crate::ephemeral_worker::WorkerCheck;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::interrupt::wait_for_job;
use crate::job_args::{JobArgs, TargetArgs};
use crate::out::note;
use crate::scope::{ActorArgs, Scope};
use crate::single;
use crate::timing_args::TimingArgs;

/// Enqueue a job and print its id, or many at once
///
/// With --jsonl, each line of a file is a job as a JSON object, as {"type":"python","script":"result = 1"}. `meshwork job
/// schema` prints its fields, which are those of the API. Options of the command line are defaults for all lines. All lines
/// are checked before the first job is stored; then a line is printed for each.
#[derive(Debug, clap::Args)]
pub(crate) struct Submit {
    /// File of the script; - is stdin
    #[arg(required_unless_present_any = ["jsonl", "payload"])]
    script: Option<PathBuf>,
    /// Arguments of a task, or payload of a handler, in JSON, instead of a script; --type names the task
    #[arg(long, value_name = "JSON", requires = "script_type", conflicts_with_all = ["script", "jsonl", "check"],
          value_parser = payload, help_heading = "Job")]
    payload: Option<String>,
    /// Arguments of a program, after --
    #[arg(last = true, requires = "script", value_name = "ARG")]
    args: Vec<String>,
    /// Many jobs: a file with a JSON object per line, as {"script": "result = 1", "type": "python"}; - is stdin
    #[arg(long, value_name = "FILE", conflicts_with_all = ["id", "input", "check"])]
    pub(super) jsonl: Option<PathBuf>,
    #[command(flatten)]
    job_args: JobArgs,
    #[command(flatten)]
    pub(super) timing: TimingArgs,
    #[command(flatten)]
    given: TargetArgs,
    #[command(flatten)]
    pub(super) routing: Routing,
    #[command(flatten)]
    pub(super) check_worker: WorkerCheck,
    /// Open batch of the job
    #[arg(long, value_name = "BATCH", help_heading = "Job")]
    batch: Option<BatchId>,
    /// Wait until the job has ended, for at most this time [default: 7 days], and print its result
    #[arg(long, value_name = "DURATION", value_parser = parsers::wait, num_args = 0..=1, require_equals = true,
          default_missing_value = parsers::LONGEST_WAIT, conflicts_with = "jsonl", help_heading = "Job")]
    pub(super) wait: Option<Duration>,
    /// Id of the job [default: a new one]
    #[arg(long, value_parser = parsers::new_job_id, help_heading = "Job")]
    pub(super) id: Option<JobId>,
}

#[derive(Debug, Serialize)]
struct Submitted<'a> {
    id: &'a str,
    /// True if the id is that of an earlier job with the unique name.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    kept: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// Checks that a payload is JSON.
fn payload(text: &str) -> Result<String, String> {
    let read = serde_json::from_str::<serde::de::IgnoredAny>(text);
    read.map(|_| text.to_owned())
        .map_err(|error| error.to_string())
}

/// Refusal of lines in a context.
pub(super) const LINES_IN_CONTEXT: &str =
    "--jsonl does not support contexts: enqueue the jobs one by one, or send them in a message";

impl Submit {
    /// Returns the script, or the payload in its place; none with --jsonl alone.
    pub(super) fn script(&self) -> Result<Option<Script>, CommandError> {
        let script_type = self.job_args.script_type.clone();
        if let (Some(payload), Some(script_type)) = (&self.payload, &script_type) {
            return Ok(Some(Script {
                script_type: script_type.clone(),
                text: payload.clone(),
            }));
        }
        let script = self.script.as_deref();
        let read = script.map(|path| Script::with_args(path, script_type, &self.args));
        Ok(read.transpose()?)
    }

    /// Resolves ids within a context, and refuses options that contexts do not have.
    pub(super) fn enter(&mut self, scope: &Scope) -> Result<(), CommandError> {
        if self.jsonl.is_some() {
            return Err(CommandError::usage(LINES_IN_CONTEXT));
        }
        if self.batch.is_some() {
            return Err(CommandError::usage("--batch does not support contexts"));
        }
        if let Some(id) = &mut self.id {
            *id = scope.job_id(id)?;
        }
        self.job_args.enter(scope);
        Ok(())
    }

    /// Enqueues the job, or the jobs of a file, in parts of a spread queue.
    pub(super) async fn run_spread(
        mut self,
        context: &mut App,
        actor: &ActorArgs,
    ) -> Result<Exit, CommandError> {
        self.timing.settle()?;
        let script = self.script()?;
        if let Some(file) = self.jsonl.clone() {
            return spread::enqueue_lines(context, actor, &file, self.all(script)).await;
        }
        // Without a script, clap requires --jsonl.
        let Some(script) = script else {
            return Ok(Exit::USAGE);
        };
        if self.routing.has_unread_topic(None) {
            return Err(CommandError::usage(UNREAD_TOPIC));
        }
        let patience = self.wait;
        let request = self.request(&script).await?;
        spread::enqueue(context, actor, request, patience).await
    }

    pub(crate) async fn run(mut self, context: &mut App) -> Result<Exit, CommandError> {
        self.timing.settle()?;
        let script = self.script()?;
        let Some(script) = script.as_ref().filter(|_| self.jsonl.is_none()) else {
            let file = self.jsonl.clone().unwrap_or_default();
            return jsonl::submit(context, &file, self.all(script)).await;
        };
        if self.routing.has_unread_topic(None) {
            return Err(CommandError::usage(UNREAD_TOPIC));
        }
        let (patience, has_id) = (self.wait, self.id.is_some());
        let worker = self.check_worker;
        let mut request = self.request(script).await?;
        request.clone().build().map_err(meshwork::Error::from)?;
        let client = context.client().await?;
        if !has_id {
            request = context.with_next_id(request).await?;
        }
        let job = request.clone().build().map_err(meshwork::Error::from)?;
        let warnings = worker.check(&client, &job.route).await?;
        let named = job.id.as_str();
        context.record_in_audit("enqueue job", named).await?;
        let id = client.enqueue(request).await?;
        let kept = id != job.id;
        if let Some(patience) = patience {
            let ended = wait_for_job(&client, &id, patience).await?;
            return single::print_end(&ended, &mut context.out);
        }
        print(context, &id, (kept, warnings))
    }

    /// Returns the defaults for all lines of a file.
    pub(super) fn all(self, script: Option<Script>) -> jsonl::All {
        jsonl::All {
            script,
            job_args: self.job_args,
            timing: self.timing,
            given: self.given,
            routing: self.routing,
            batch: self.batch,
            check_worker: self.check_worker,
        }
    }

    pub(super) async fn request(self, script: &Script) -> Result<JobRequest, CommandError> {
        let request = self.job_args.checked(script).await?;
        let request = self.timing.add_to(request, &self.timing.zone()?)?;
        let path = self.script.unwrap_or_default();
        let mut request = self.given.add_to(request, &path)?;
        if let Some(batch) = self.batch {
            request = request.batch(batch);
        }
        if let Some(id) = self.id {
            request = request.id(id);
        }
        Ok(self.routing.bind(request, None))
    }
}

/// Prints the id of a job. `kept`: it is that of an earlier job with the unique name.
pub(super) fn print(
    context: &mut App,
    id: &JobId,
    (kept, warnings): (bool, Vec<String>),
) -> Result<Exit, CommandError> {
    if context.out.is_json() {
        let id = id.as_str();
        context.out.json(&Submitted { id, kept, warnings })?;
        return Ok(Exit::DONE);
    }
    if kept {
        note(format_args!(
            "job {id} has the unique name already; the new job was not stored"
        ));
    }
    context.out.line(id)?;
    Ok(Exit::DONE)
}
