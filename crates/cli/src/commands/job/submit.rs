//! `meshwork job enqueue`.

use std::path::PathBuf;
use std::time::Duration;

use meshwork::JobRequest;
use meshwork::model::name::{BatchId, JobId};
use serde::Serialize;

use super::jsonl;
use crate::asked::{Asked, Given};
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::hands;
use crate::out::note;
use crate::routing::Routing;
use crate::scope::Scope;
use crate::script::Script;
use crate::wishes::Wishes;
use crate::{single, value};

/// Enqueue a job and print its id, or many at once
///
/// With --jsonl, each line of a file is a job, an object of JSON: script or payload (any JSON, for a handler),
/// and type, id, group, route, topic, instance, priority, input, env, timeout, retries, backoff, depends_on,
/// prerequisite_timeout, exclusive, caller, context, key, at, delay, unique, unique_for, unique_until, on_duplicate, debounce,
/// throttle, start_timeout and tags (an array) as the options of these names. What a line does not say, the command line says for all. All lines are checked
/// before the first job is stored; then each has a line in answer.
#[derive(Debug, clap::Args)]
pub(crate) struct Submit {
    /// The script's file; - is stdin
    #[arg(required_unless_present = "jsonl")]
    script: Option<PathBuf>,
    /// Arguments of a program, after --
    #[arg(last = true, requires = "script", value_name = "ARG")]
    args: Vec<String>,
    /// Many jobs: a file with a JSON object per line; - is stdin
    #[arg(long, value_name = "FILE", conflicts_with_all = ["id", "input"])]
    jsonl: Option<PathBuf>,
    #[command(flatten)]
    asked: Asked,
    #[command(flatten)]
    wishes: Wishes,
    #[command(flatten)]
    given: Given,
    #[command(flatten)]
    routing: Routing,
    /// The open batch that it belongs to
    #[arg(long, value_name = "BATCH", help_heading = "The job")]
    batch: Option<BatchId>,
    /// Wait until it has ended, for so long at most [default: 7 days], and print its result
    #[arg(long, value_name = "TIME", value_parser = value::wait, num_args = 0..=1, require_equals = true,
          default_missing_value = value::LONGEST_WAIT, conflicts_with = "jsonl", help_heading = "The job")]
    wait: Option<Duration>,
    /// The job's id, a new one otherwise
    #[arg(long, value_parser = value::new_job_id, help_heading = "The job")]
    id: Option<JobId>,
}

#[derive(Debug, Serialize)]
struct Submitted<'a> {
    id: &'a str,
    /// That the id is another job's, which has the unique name.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    kept: bool,
}

impl Submit {
    /// Takes its ids as those of a context, and refuses what contexts do not have.
    pub(super) fn enter(&mut self, scope: &Scope) -> Result<(), CommandError> {
        if self.jsonl.is_some() {
            return Err(CommandError::usage(
                "--jsonl is not there in a context: enqueue the jobs one by one, or send them in a message",
            ));
        }
        if self.batch.is_some() {
            return Err(CommandError::usage("--batch is not there in a context"));
        }
        if let Some(id) = &mut self.id {
            *id = scope.job_id(id)?;
        }
        self.asked.enter(scope);
        Ok(())
    }

    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, CommandError> {
        let script_type = self.asked.script_type.clone();
        let script = self.script.as_deref();
        let script = script
            .map(|path| Script::with_args(path, script_type, &self.args))
            .transpose()?;
        let Some(script) = script.as_ref().filter(|_| self.jsonl.is_none()) else {
            let file = self.jsonl.clone().unwrap_or_default();
            return jsonl::submit(context, &file, self.all(script)).await;
        };
        let (patience, has_id) = (self.wait, self.id.is_some());
        let mut request = self.request(script).await?;
        request.clone().build().map_err(meshwork::Error::from)?;
        let client = context.client().await?;
        if !has_id {
            request = context.numbered(request).await?;
        }
        let job = request.clone().build().map_err(meshwork::Error::from)?;
        hands::check_known(&client, &job.route).await?;
        let id = client.submit(request).await?;
        context.noted("enqueue job", id.as_str()).await?;
        let kept = id != job.id;
        if let Some(patience) = patience {
            let ended = client.wait(&id, patience).await?;
            return single::print(&ended, &mut context.out);
        }
        if context.out.is_json() {
            let id = id.as_str();
            context.out.json(&Submitted { id, kept })?;
        } else {
            if kept {
                note(format_args!("job {id} has its unique name, and stays"));
            }
            context.out.line(&id)?;
        }
        Ok(Exit::DONE)
    }

    /// What holds for all lines of a file.
    fn all(self, script: Option<Script>) -> jsonl::All {
        jsonl::All {
            script,
            asked: self.asked,
            wishes: self.wishes,
            given: self.given,
            routing: self.routing,
        }
    }

    async fn request(self, script: &Script) -> Result<JobRequest, CommandError> {
        let request = self.wishes.add_to(self.asked.checked(script).await?);
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
