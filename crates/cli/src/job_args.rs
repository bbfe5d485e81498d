//! Job options beside the script, shared by `run`, `job enqueue`, `schedule add` and `batch add`.

use std::path::Path;
use std::time::Duration;

use meshwork::JobRequest;
use meshwork_model::job::limits::MAX_RETRIES;
use meshwork_model::job::{OnFailure, Tag};
use meshwork_model::name::{Group, Instance, JobId, RoutingKey, ScriptType};
use meshwork_model::route::{Fallback, Priority};

use crate::args::input::InputArg;
use crate::args::parsers;
use crate::args::sandbox::JobSandboxArgs;
use crate::args::script::Script;
use crate::args::trace::Trace;
use crate::error::CommandError;
use crate::scope::Scope;
use crate::timing_args::TimingArgs;

/// Options of a job.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Job")]
pub(crate) struct JobArgs {
    /// Type of the script [default: by extension: .rhai osis, .py python, .v v, .sh and programs exec]
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) script_type: Option<ScriptType>,
    /// Run only on workers of this group
    #[arg(long)]
    pub(crate) group: Option<Group>,
    /// Run only on workers with this routing key. `default`: workers without a group
    #[arg(long, value_name = "KEY", conflicts_with = "group")]
    pub(crate) route: Option<RoutingKey>,
    /// Environment variable of the script; may be given several times. NAME alone takes the value from this
    /// environment: use it for secrets, since other users see the command line. At most 64 KiB in total
    #[arg(long, value_name = "NAME[=VALUE]", value_parser = parsers::Env)]
    pub(crate) env: Vec<(String, String)>,
    /// Longest time of one attempt, in whole seconds, up to 7 days [default: 1800]
    #[arg(long, value_name = "DURATION", value_parser = parsers::job_timeout, allow_hyphen_values = true)]
    pub(crate) timeout: Option<Duration>,
    /// Longest time until a worker begins the job: 500ms, 10m, 2h, up to ten years. After it, the job ends in error.
    /// Counts from --at or --delay, if given. Retries have no such limit [default: none]
    #[arg(long, value_name = "DURATION", value_parser = parsers::span, allow_hyphen_values = true)]
    pub(crate) start_timeout: Option<Duration>,
    /// Retries after the first attempt
    #[arg(long, value_name = "N", default_value_t = 0, allow_hyphen_values = true,
          value_parser = parsers::whole::<u32>(0..=u64::from(MAX_RETRIES)))]
    pub(crate) retries: u32,
    /// Backoff before the first retry, in seconds, up to 3600; it doubles with each further retry, up to 600 [default:
    /// 1]
    #[arg(long, value_name = "DURATION", value_parser = parsers::backoff, allow_hyphen_values = true)]
    pub(crate) backoff: Option<Duration>,
    /// Priority: high, normal or low, or 0, 1 or 2
    #[arg(
        long,
        value_name = "LEVEL",
        default_value_t,
        allow_hyphen_values = true
    )]
    pub(crate) priority: Priority,
    /// Tag of the job, a label for filters; may be given several times, up to 10. A tag has 1 to 64 of the characters
    /// A-Z a-z 0-9 . _ : / -. Child jobs inherit tags
    #[arg(long = "tag", value_name = "TAG")]
    pub(crate) tags: Vec<Tag>,
    /// Run only after this job has ended; may be given several times. The script finds its result by the id, or by NAME
    #[arg(long, value_name = "[NAME=]ID", value_parser = parsers::prerequisite)]
    pub(crate) depends_on: Vec<(Option<String>, JobId)>,
    /// If a prerequisite fails: fail, or continue
    #[arg(
        long,
        value_name = "WORD",
        default_value = "fail",
        requires = "depends_on"
    )]
    pub(crate) on_failure: OnFailure,
    /// Longest wait for the jobs of --depends-on, in whole seconds, up to 7 days; then the job ends in error [default:
    /// no limit]
    #[arg(long, value_name = "DURATION", value_parser = parsers::job_timeout, requires = "depends_on",
          allow_hyphen_values = true)]
    pub(crate) prerequisite_timeout: Option<Duration>,
    /// Run the job alone on its worker, with no other job beside it
    #[arg(long)]
    pub(crate) exclusive: bool,
    /// Check the script's syntax first; Python scripts need python3 on this host
    #[arg(long)]
    pub(crate) check: bool,
    #[command(flatten)]
    pub(crate) sandbox: JobSandboxArgs,
    #[command(flatten)]
    pub(crate) trace: Trace,
}

/// Further options of `job enqueue` and `schedule add`.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Job")]
pub(crate) struct TargetArgs {
    /// Run only on the worker with this instance name; the job waits for that worker
    #[arg(long, value_name = "NAME")]
    instance: Option<Instance>,
    /// If that worker is absent or has no free slot, run on another one of its group (group) or type (type) [default: wait]
    #[arg(long, value_name = "WHERE", requires = "instance")]
    fallback: Option<Fallback>,
    /// Input for the script: INPUT in Rhai, stdin in others; JSON, the content of a file, or - for stdin. At most 16 MiB
    #[arg(long, value_name = "JSON|@FILE|-", allow_hyphen_values = true)]
    input: Option<InputArg>,
    /// Caller's id: CALLER_ID of the script
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    caller_id: String,
    /// Context's id, as text: CONTEXT_ID of the script
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    context_id: String,
    /// Log file on the worker's host, in a folder that the worker allows (its --log-dir); a relative path is relative
    /// to the first of these folders
    #[arg(long, value_name = "FILE")]
    log_path: Option<String>,
}

/// Options of jobs alone.
#[derive(Debug, clap::Parser)]
struct OfJobs {
    #[command(flatten)]
    job: JobArgs,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    timing: TimingArgs,
}

/// Returns true if one of these options is given, which flows do not have. Flows have an input, and their schedules a zone.
pub(crate) fn has_job_options(job: &JobArgs, target: &TargetArgs, timing: &TimingArgs) -> bool {
    use clap::Parser;
    let given = OfJobs {
        job: job.clone(),
        target: TargetArgs {
            input: None,
            ..target.clone()
        },
        timing: timing.without_zone(),
    };
    let none = OfJobs::try_parse_from(["job"]);
    none.is_ok_and(|none| format!("{none:?}") != format!("{given:?}"))
}

impl TargetArgs {
    /// Returns the input.
    pub(crate) fn into_input(self) -> Option<InputArg> {
        self.input
    }

    /// Adds these options to a request whose script is at `script`.
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

impl JobArgs {
    /// Returns the request for a job that runs the script.
    pub(crate) fn request(&self, script: &Script) -> JobRequest {
        let mut request = JobRequest::new(script.script_type.clone(), script.text.as_str())
            .retries(self.retries)
            .priority(self.priority)
            .on_failure(self.on_failure)
            .concurrent(!self.exclusive)
            .sandbox(self.sandbox.settings())
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

    /// Resolves the ids of prerequisites within a context.
    pub(crate) fn enter(&mut self, scope: &Scope) {
        for (_, id) in &mut self.depends_on {
            *id = scope.awaited(id);
        }
    }

    /// Returns the request. Checks the script's syntax first with `--check`.
    pub(crate) async fn checked(&self, script: &Script) -> Result<JobRequest, CommandError> {
        let request = self.request(script);
        if self.check {
            request.check_syntax().await?;
        }
        Ok(request)
    }
}

/// Adds a prerequisite, with the optional name of its result.
fn after(request: JobRequest, (name, id): (Option<String>, JobId)) -> JobRequest {
    match name {
        Some(name) => request.depends_on_as(name, id),
        None => request.depends_on(id),
    }
}
