//! What is asked for besides the script: the options that `run`, `job submit` and `schedule add` share.

use std::path::Path;
use std::time::Duration;

use meshwork::JobRequest;
use meshwork::model::job::limits::MAX_RETRIES;
use meshwork::model::job::{OnFailure, Tag};
use meshwork::model::name::{Group, Instance, JobId, RoutingKey, ScriptType};
use meshwork::model::route::{Fallback, Priority};

use crate::error::CommandError;
use crate::input::InputArg;
use crate::scope::Scope;
use crate::script::Script;
use crate::trace::Trace;
use crate::value;

/// Options of a job.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "The job")]
pub(crate) struct Asked {
    /// What runs the script; told by its extension otherwise (.rhai is osis, .py is python, .sh and programs are exec, .v is v)
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) script_type: Option<ScriptType>,
    /// Only workers of this group
    #[arg(long)]
    pub(crate) group: Option<Group>,
    /// Run only on workers with this routing key. `default`: workers without a group
    #[arg(long, value_name = "KEY", conflicts_with = "group")]
    pub(crate) route: Option<RoutingKey>,
    /// An environment variable of the script; may be given several times. NAME alone takes the value that
    /// it has here: do so with secrets, since others see the command line. Not for data: at most 64 KiB
    #[arg(long, value_name = "NAME[=VALUE]", value_parser = value::Env)]
    pub(crate) env: Vec<(String, String)>,
    /// How long one run may take, in whole seconds, up to 7 days [default: 1800]
    #[arg(long, value_name = "S", value_parser = value::job_timeout, allow_hyphen_values = true)]
    pub(crate) timeout: Option<Duration>,
    /// Within which time a worker has to begin it: 500ms, 10m, 2h, up to ten years; then it ends in error. Counts from
    /// --at or --delay if it has one; a run after a failure has no such limit [default: none]
    #[arg(long, value_name = "TIME", value_parser = value::span, allow_hyphen_values = true)]
    pub(crate) start_timeout: Option<Duration>,
    /// Runs after the first, should it fail
    #[arg(long, value_name = "N", default_value_t = 0, allow_hyphen_values = true,
          value_parser = clap::value_parser!(u32).range(..=i64::from(MAX_RETRIES)))]
    pub(crate) retries: u32,
    /// The pause before the first retry, in seconds, up to an hour; it doubles with each further one, up to
    /// ten minutes [default: 1]
    #[arg(long, value_name = "S", value_parser = value::backoff, allow_hyphen_values = true)]
    pub(crate) backoff: Option<Duration>,
    /// How urgent it is: high, normal or low, or 0, 1 or 2
    #[arg(
        long,
        value_name = "LEVEL",
        default_value_t,
        allow_hyphen_values = true
    )]
    pub(crate) priority: Priority,
    /// A label of the job, by which lists find it; may be given several times: up to 10, each 1 to 64 of the characters
    /// A-Z a-z 0-9 . _ : / -. Jobs that it submits have it too
    #[arg(long = "tag", value_name = "TAG")]
    pub(crate) tags: Vec<Tag>,
    /// Not before this job has ended; may be given several times. The script finds its result by the id, or by NAME
    #[arg(long, value_name = "[NAME=]ID", value_parser = value::prerequisite)]
    pub(crate) depends_on: Vec<(Option<String>, JobId)>,
    /// What it means when a job that it depends on does not finish: fail, or continue
    #[arg(
        long,
        value_name = "WORD",
        default_value = "fail",
        requires = "depends_on"
    )]
    pub(crate) on_failure: OnFailure,
    /// How long it waits for the jobs of --depends-on, in whole seconds, up to 7 days; then it ends in error
    /// [default: no bound]
    #[arg(long, value_name = "S", value_parser = value::job_timeout, requires = "depends_on",
          allow_hyphen_values = true)]
    pub(crate) prerequisite_timeout: Option<Duration>,
    /// Alone on its worker: nothing runs beside it
    #[arg(long)]
    pub(crate) exclusive: bool,
    /// Check the script's syntax first; one in Python needs an interpreter here
    #[arg(long)]
    pub(crate) check: bool,
    #[command(flatten)]
    pub(crate) trace: Trace,
}

/// What `job submit` and `schedule add` can ask for besides.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "The job")]
pub(crate) struct Given {
    /// Only the worker of this name; the job waits for it
    #[arg(long, value_name = "NAME")]
    instance: Option<Instance>,
    /// Where it goes if that worker is not there: to its group, or to any of its type (group or type)
    #[arg(long, value_name = "WHERE", value_parser = value::fallback, requires = "instance")]
    fallback: Option<Fallback>,
    /// Input for the script: INPUT in Rhai, stdin in others; JSON, the content of a file, or - for stdin. At most 16 MiB
    #[arg(long, value_name = "JSON|@FILE|-", allow_hyphen_values = true)]
    input: Option<InputArg>,
    /// Who asks: CALLER_ID of the script
    #[arg(
        long,
        alias = "caller",
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    caller_id: String,
    /// In which context: CONTEXT_ID of the script
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    context_id: String,
    /// A log file on the worker's host, in a folder that the worker allows (its --log-dir); a relative path
    /// is relative to the first of these
    #[arg(long, value_name = "FILE")]
    log_path: Option<String>,
}

impl Given {
    /// The job with what is given, its script being at `script`.
    pub(crate) fn add_to(
        self,
        request: JobRequest,
        script: &Path,
    ) -> Result<JobRequest, CommandError> {
        let mut request = request.caller(self.caller_id, self.context_id);
        if let Some(instance) = self.instance {
            request = request.instance(instance);
        }
        if let Some(path) = self.log_path {
            request = request.log_path(path);
        }
        if let Some(fallback) = self.fallback {
            request = request.fallback(fallback);
        }
        if let Some(input) = self.input {
            request = request.input(input.read(script)?);
        }
        Ok(request)
    }
}

impl Asked {
    /// The job, with the script.
    pub(crate) fn request(&self, script: &Script) -> JobRequest {
        let mut request = JobRequest::new(script.script_type.clone(), script.text.as_str())
            .retries(self.retries)
            .priority(self.priority)
            .on_failure(self.on_failure)
            .concurrent(!self.exclusive)
            .env(self.env.iter().cloned().collect());
        for of in &self.depends_on {
            request = after(request, of.clone());
        }
        for tag in &self.tags {
            request = request.tag(tag.clone());
        }
        if let Some(timeout) = self.prerequisite_timeout {
            request = request.prerequisite_timeout(timeout);
        }
        if let Some(timeout) = self.timeout {
            request = request.timeout(timeout);
        }
        if let Some(timeout) = self.start_timeout {
            request = request.start_timeout(timeout);
        }
        if let Some(first) = self.backoff {
            request = request.backoff(first);
        }
        if let Some(trace) = self.trace.context() {
            request = request.trace(trace);
        }
        if let Some(group) = &self.group {
            request = request.group(group.clone());
        }
        if let Some(route) = &self.route {
            request = request.route(route);
        }
        request
    }

    /// Takes the jobs that it waits for as those of a context.
    pub(crate) fn enter(&mut self, scope: &Scope) {
        for (_, id) in &mut self.depends_on {
            *id = scope.awaited(id);
        }
    }

    /// The job, after a look at the script if that is asked for.
    pub(crate) async fn checked(&self, script: &Script) -> Result<JobRequest, CommandError> {
        let request = self.request(script);
        if self.check {
            request.check_syntax().await?;
        }
        Ok(request)
    }
}

/// The job, to be run after another one.
pub(crate) fn after(request: JobRequest, (name, id): (Option<String>, JobId)) -> JobRequest {
    match name {
        Some(name) => request.depends_on_as(name, id),
        None => request.depends_on(id),
    }
}
