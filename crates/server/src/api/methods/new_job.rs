//! Parameters of a new job.

use std::collections::BTreeMap;
use std::time::Duration;

use meshwork::{JobRequest, runtime};
use meshwork_model::job::{OnFailure, Until};
use meshwork_model::name::ScriptType;
use meshwork_model::route::{Fallback, Priority};
use meshwork_model::sandbox::{Limit, SandboxSettings};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::api::{ApiError, Call};
use meshwork_ops::params::{Span, moment, parse, parse_some};

/// A job to be enqueued.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewJobParams {
    /// Time to wait for the end of the job, at most 5 minutes.
    pub(super) wait: Option<Span>,
    /// Type of the script: `osis`, `sal`, `v`, `python`, or the name of a handler.
    #[serde(rename = "type")]
    script_type: String,
    /// Text of the script, or the text for a handler. Give this or `payload`.
    script: Option<String>,
    /// JSON for a handler.
    #[schemars(with = "Option<serde_json::Value>")]
    payload: Option<Box<RawValue>>,
    /// Context of the job; none for a job outside contexts.
    pub(super) context: Option<u32>,
    /// True for a spread queue: the job goes to the part of its key, or to the shorter of two parts. Its id names the part.
    #[serde(default)]
    pub(super) spread: bool,
    /// Id of the job; a UUID if none is given. In a context its number, and the next free one if none is given. The same id
    /// with the same parameters adds no second job.
    id: Option<String>,
    /// Group of workers.
    group: Option<String>,
    /// Routing key: workers with this key run the job. Give this or `group`.
    route: Option<String>,
    /// One worker of the group.
    instance: Option<String>,
    /// Queue to use if that worker is not alive: `group` or `type`.
    fallback: Option<String>,
    /// `high`, `normal` or `low`.
    priority: Option<String>,
    /// Input of the script.
    input: Option<String>,
    /// Environment of the script.
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// Longest time of one run.
    timeout: Option<Span>,
    /// Number of retries: N allow N + 1 runs. Default: 0.
    retries: Option<u32>,
    /// First pause before a retry.
    backoff: Option<Span>,
    /// Time within which a worker has to begin the job; after that it fails.
    start_timeout: Option<Span>,
    /// Sandbox that the job asks for; it can only be stricter than that of its queue and its worker.
    sandbox: Option<SandboxParams>,
    /// Labels.
    #[serde(default)]
    tags: Vec<String>,
    /// Jobs that must finish first.
    #[serde(default)]
    depends_on: Vec<String>,
    /// Rule for the failure of one of them: `fail` or `run`.
    on_failure: Option<String>,
    /// Longest wait for them.
    prerequisite_timeout: Option<Span>,
    /// True if the job runs alone on its worker.
    #[serde(default)]
    exclusive: bool,
    /// Id of the caller, as other systems record it.
    caller: Option<String>,
    /// Id of the caller's context, as other systems record it.
    #[serde(alias = "context_id")]
    caller_context: Option<String>,
    /// Log file on the worker's host.
    log_path: Option<String>,
    /// Batch of the job.
    batch: Option<String>,
    /// Start time (RFC 3339). Give this or `delay`.
    at: Option<String>,
    /// Time before the start.
    delay: Option<Span>,
    /// Concurrency key, such as a tenant.
    key: Option<String>,
    /// Unique name: no other job of the same type and name is accepted until this one has ended.
    unique: Option<String>,
    /// Time for which the unique name is kept instead.
    unique_for: Option<Span>,
    /// Event until which it is kept: `done` or `started`.
    unique_until: Option<String>,
    /// Rule for a unique name in use: `keep` the first job, `refuse` the new one, or `replace` a waiting one.
    on_duplicate: Option<String>,
}

/// Requested sandbox of a job. Sizes are in bytes.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct SandboxParams {
    /// `open`, `standard` or `strict`.
    profile: Option<String>,
    /// Limit of the memory of all processes.
    memory: Option<u64>,
    /// Limit of the processor time of all processes.
    cpu: Option<Span>,
    /// Limit of the number of processes and threads at once.
    processes: Option<u64>,
    /// Limit of the number of open files of each process.
    files: Option<u64>,
    /// Limit of the size of the work folder.
    disk: Option<u64>,
    /// Limit of the output, stdout and stderr together.
    output: Option<u64>,
}

impl SandboxParams {
    fn settings(self) -> Result<SandboxSettings, ApiError> {
        let mut settings = SandboxSettings {
            profile: parse_some("sandbox.profile", self.profile.as_deref())?,
            ..SandboxSettings::default()
        };
        for (limit, value) in [
            (Limit::Memory, self.memory),
            (Limit::Cpu, self.cpu.map(|span| millis(span.0))),
            (Limit::Processes, self.processes),
            (Limit::Files, self.files),
            (Limit::Disk, self.disk),
            (Limit::Output, self.output),
        ] {
            settings.limits.set(limit, value);
        }
        settings
            .check()
            .map_err(|fault| ApiError::invalid(format!("sandbox: {fault}")))?;
        Ok(settings)
    }
}

impl NewJobParams {
    /// Returns true for a type that is not built in, and for a job of a group: the name may be wrong.
    pub(super) fn is_special(&self) -> bool {
        let name = self.script_type.as_str();
        let is_known =
            ScriptType::KNOWN.contains(&name) || runtime::runtimes().any(|known| known == name);
        !is_known || self.group.is_some()
    }

    /// Returns the id that the caller gives.
    pub(crate) fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Returns the queue of a job of a spread queue, and takes the mark.
    pub(super) fn take_spread(&mut self) -> Result<Option<String>, ApiError> {
        if !std::mem::take(&mut self.spread) {
            return Ok(None);
        }
        if self.context.is_some() {
            return Err(ApiError::invalid("context and spread: give one of them"));
        }
        Ok(Some(match &self.group {
            Some(group) => format!("{}:group:{group}", self.script_type),
            None => self.script_type.clone(),
        }))
    }

    /// Refuses a place where it is not used: the methods that have one take it before.
    fn check_place(&self) -> Result<(), ApiError> {
        match (self.context, self.spread) {
            (Some(_), _) => Err(ApiError::invalid("context: this job has none of its own")),
            (None, true) => Err(ApiError::invalid("spread: this job has no part of its own")),
            (None, false) => Ok(()),
        }
    }

    /// Returns the job.
    ///
    /// # Errors
    /// If a parameter is wrong, or two exclude each other.
    pub(crate) fn request(self, call: &Call) -> Result<JobRequest, ApiError> {
        self.check_place()?;
        let script = text(self.script, self.payload)?;
        let mut request = JobRequest::new(parse("type", &self.script_type)?, script);
        if let Some(id) = &self.id {
            request = request.id(match call.entered {
                Some(_) => call.job_id(id)?,
                None => parse("id", id)?,
            });
        }
        request = placed(
            request,
            (self.group.as_deref(), self.route.as_deref()),
            (self.instance.as_deref(), self.fallback.as_deref()),
        )?;
        if let Some(priority) = parse_some::<Priority>("priority", self.priority.as_deref())? {
            request = request.priority(priority);
        }
        if let Some(input) = self.input {
            request = request.input(input);
        }
        if !self.env.is_empty() {
            request = request.env(self.env);
        }
        if let Some(timeout) = self.timeout {
            request = request.timeout(timeout.0);
        }
        if let Some(retries) = self.retries {
            request = request.retries(retries);
        }
        if let Some(backoff) = self.backoff {
            request = request.backoff(backoff.0);
        }
        if let Some(timeout) = self.start_timeout {
            request = request.start_timeout(timeout.0);
        }
        request = request.sandbox(self.sandbox.unwrap_or_default().settings()?);
        for tag in &self.tags {
            request = request.tag(parse("tags", tag)?);
        }
        request = after(
            request,
            (&self.depends_on, self.on_failure.as_deref(), call),
            self.prerequisite_timeout,
        )?;
        if self.exclusive {
            request = request.concurrent(false);
        }
        if self.caller.is_some() || self.caller_context.is_some() {
            let (caller, context) = (self.caller, self.caller_context);
            request = request.caller(caller.unwrap_or_default(), context.unwrap_or_default());
        }
        if let Some(path) = self.log_path {
            request = request.log_path(path);
        }
        if let Some(batch) = &self.batch {
            request = request.batch(parse("batch", batch)?);
        }
        request = timed(request, self.at.as_deref(), self.delay)?;
        if let Some(key) = self.key {
            request = request.key(key);
        }
        let policy = parse_some("on_duplicate", self.on_duplicate.as_deref())?;
        let until = until(self.unique_for, self.unique_until.as_deref())?;
        Ok(match self.unique {
            Some(name) => request.unique(name, until, policy.unwrap_or_default()),
            None => request,
        })
    }
}

/// Returns the text of the script, or of the payload.
fn text(script: Option<String>, payload: Option<Box<RawValue>>) -> Result<String, ApiError> {
    match (script, payload) {
        (Some(script), None) => Ok(script),
        (None, Some(payload)) => Ok(payload.get().to_owned()),
        (Some(_), Some(_)) => Err(ApiError::invalid("script and payload: give one of them")),
        (None, None) => Err(ApiError::invalid("give a script, or a payload")),
    }
}

/// Adds the prerequisites, `ID` or `NAME=ID`.
fn after(
    mut request: JobRequest,
    (ids, on_failure, call): (&[String], Option<&str>, &Call),
    timeout: Option<Span>,
) -> Result<JobRequest, ApiError> {
    let awaited = |id: &str| match &call.entered {
        Some(it) => Ok(it.context.awaited(it.caller.id(), id)),
        None => parse("depends_on", id),
    };
    for id in ids {
        request = match id.split_once('=') {
            Some((name, id)) => request.depends_on_as(name, awaited(id)?),
            None => request.depends_on(awaited(id)?),
        };
    }
    if let Some(rule) = parse_some::<OnFailure>("on_failure", on_failure)? {
        request = request.on_failure(rule);
    }
    Ok(match timeout {
        Some(timeout) => request.prerequisite_timeout(timeout.0),
        None => request,
    })
}

/// Returns the end of a unique name.
fn until(span: Option<Span>, event: Option<&str>) -> Result<Until, ApiError> {
    match (span, event) {
        (Some(span), None) => Ok(Until::For(millis(span.0))),
        (None, None | Some("done")) => Ok(Until::Done),
        (None, Some("started")) => Ok(Until::Started),
        _ => {
            let message = "unique_until is `done` or `started`, and unique_for replaces it";
            Err(ApiError::invalid(message))
        }
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// Sets the queue of a job.
fn placed(
    mut request: JobRequest,
    (group, route): (Option<&str>, Option<&str>),
    (instance, fallback): (Option<&str>, Option<&str>),
) -> Result<JobRequest, ApiError> {
    if group.is_some() && route.is_some() {
        return Err(ApiError::invalid("group and route: give one of them"));
    }
    if let Some(group) = parse_some("group", group)? {
        request = request.group(group);
    }
    if let Some(route) = parse_some("route", route)? {
        request = request.route(&route);
    }
    if let Some(instance) = parse_some("instance", instance)? {
        request = request.instance(instance);
    }
    match fallback {
        None => Ok(request),
        Some("group") => Ok(request.fallback(Fallback::Group)),
        Some("type") => Ok(request.fallback(Fallback::Type)),
        Some(_) => Err(ApiError::invalid("fallback: give `group` or `type`")),
    }
}

/// Sets the time of a job.
fn timed(
    request: JobRequest,
    at: Option<&str>,
    delay: Option<Span>,
) -> Result<JobRequest, ApiError> {
    match (at, delay) {
        (Some(_), Some(_)) => Err(ApiError::invalid("at and delay: give one of them")),
        (Some(at), None) => Ok(request.run_at_ms(moment("at", at)?)),
        (None, Some(delay)) => Ok(request.delay(delay.0)),
        (None, None) => Ok(request),
    }
}
