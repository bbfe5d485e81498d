//! `meshwork job enqueue --jsonl`: many jobs, a line of JSON each, checked as a whole and enqueued in batches.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::time::Duration;

use meshwork::{Client, Enqueued, JobRequest};
use meshwork_model::job::NewJob;
use meshwork_model::name::{BatchId, ScriptType};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::jsonl_source::{JsonlError, Source};
use crate::app::App;
use crate::args::parsers;
use crate::args::routing::{Routing, UNREAD_TOPIC};
use crate::args::script::Script;
use crate::ephemeral_worker::WorkerCheck;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::job_args::{JobArgs, TargetArgs, after};
use crate::out::note;
use crate::timing_args::TimingArgs;

/// Greatest number of jobs in one call; the limit of the broker.
const BATCH: usize = 1000;
/// Bytes of scripts and inputs in one batch, unless a single job has more: a bound on memory.
const BATCH_BYTES: usize = 16 * 1024 * 1024;

/// Defaults for lines.
pub(crate) struct All {
    pub(crate) script: Option<Script>,
    pub(crate) job_args: JobArgs,
    pub(crate) timing: TimingArgs,
    pub(crate) given: TargetArgs,
    pub(crate) routing: Routing,
    pub(crate) batch: Option<BatchId>,
    pub(super) check_worker: WorkerCheck,
}

/// One line.
#[derive(Debug, Deserialize)]
struct Line {
    script: Option<String>,
    payload: Option<Box<RawValue>>,
    #[serde(rename = "type")]
    script_type: Option<String>,
    id: Option<String>,
    group: Option<String>,
    route: Option<String>,
    topic: Option<String>,
    instance: Option<String>,
    fallback: Option<String>,
    priority: Option<String>,
    input: Option<String>,
    env: Option<BTreeMap<String, String>>,
    timeout: Option<u64>,
    retries: Option<u32>,
    /// In seconds.
    backoff: Option<f64>,
    start_timeout: Option<serde_json::Value>,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    depends_on: Vec<String>,
    on_failure: Option<String>,
    prerequisite_timeout: Option<u64>,
    exclusive: Option<bool>,
    caller: Option<String>,
    #[serde(alias = "context")]
    caller_context: Option<String>,
    log_path: Option<String>,
    batch: Option<String>,
    #[serde(flatten)]
    timing: BTreeMap<String, serde_json::Value>,
}

/// Result of a line.
#[derive(Debug, Serialize)]
struct Answer<'a> {
    line: usize,
    id: &'a str,
    result: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    other: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Enqueues the jobs of a file, `-` being stdin.
pub(super) async fn submit(context: &mut App, path: &Path, all: All) -> Result<Exit, CommandError> {
    let source = Source::open(path)?;
    let mut types = HashSet::new();
    let mut routes = Vec::new();
    source.each(|line, text| {
        let job = all.job(text).map_err(|fault| source.fault(line, fault))?;
        if types.insert(job.route.script_type.clone()) {
            routes.push(job.route);
        }
        Ok(())
    })?;
    let client = context.client().await?;
    for route in &routes {
        all.check_worker.check(&client, route).await?;
    }
    let mut sender = Sender {
        client,
        batch: Vec::new(),
        bytes: 0,
        exit: Exit::DONE,
        stored: 0,
        sent: 0,
    };
    let mut lines = source.lines()?;
    let mut number = 0;
    while let Some(text) = source.next(&mut lines)? {
        number += 1;
        if text.trim_ascii().is_empty() {
            continue;
        }
        let job = all.job(&text).map_err(|_| JsonlError::Changed {
            place: source.place.clone(),
            line: number,
            submitted: sender.sent,
        })?;
        sender.add(context, number, job).await?;
    }
    sender.send(context).await?;
    let (stored, sent) = (sender.stored, sender.sent);
    note(format_args!("{stored} of {sent} jobs stored"));
    Ok(sender.exit)
}

/// Sends jobs in batches, and prints the result of each.
struct Sender {
    client: Client,
    batch: Vec<(usize, NewJob)>,
    bytes: usize,
    exit: Exit,
    stored: usize,
    sent: usize,
}

impl Sender {
    async fn add(
        &mut self,
        context: &mut App,
        line: usize,
        job: NewJob,
    ) -> Result<(), CommandError> {
        self.bytes += job.script.len() + job.input.as_ref().map_or(0, Vec::len);
        self.batch.push((line, job));
        if self.batch.len() >= BATCH || self.bytes >= BATCH_BYTES {
            self.send(context).await?;
        }
        Ok(())
    }

    async fn send(&mut self, context: &mut App) -> Result<(), CommandError> {
        let (lines, jobs): (Vec<_>, Vec<_>) = self.batch.drain(..).unzip();
        self.bytes = 0;
        let answers = self.client.try_enqueue_built(&jobs).await?;
        for ((line, job), answer) in lines.into_iter().zip(&jobs).zip(&answers) {
            self.sent += 1;
            self.stored += usize::from(*answer == Enqueued::Stored);
            let refusal = match answer {
                Enqueued::Stored | Enqueued::Exists | Enqueued::Kept(_) => None,
                _ => self.client.rejection(job, answer).await?,
            };
            let other = match answer {
                Enqueued::Kept(id) | Enqueued::Taken(id) | Enqueued::Unknown(id) => Some(id),
                _ => None,
            };
            if let Some(refusal) = &refusal {
                self.exit = self.exit.or(Exit::FAILED);
                note(format_args!("line {line}: {refusal}"));
            }
            let (id, result) = (job.id.as_str(), word(answer));
            if context.out.is_json() {
                context.out.json(&Answer {
                    line,
                    id,
                    result,
                    other: other.map(|id| id.as_str()),
                    error: refusal.map(|refusal| refusal.to_string()),
                })?;
            } else {
                let other = other.map_or_else(String::new, |id| format!(" {id}"));
                context.out.line(format_args!("{id} {result}{other}"))?;
            }
        }
        Ok(context.out.flush()?)
    }
}

fn word(answer: &Enqueued) -> &'static str {
    match answer {
        Enqueued::Stored => "stored",
        Enqueued::Exists => "exists",
        Enqueued::Full => "full",
        Enqueued::Draining => "draining",
        Enqueued::Large(_) => "large",
        Enqueued::Unknown(_) => "unknown",
        Enqueued::Kept(_) => "kept",
        Enqueued::Taken(_) => "refused",
        Enqueued::NotInBatch(_) => "not_in_batch",
        // Answers about jobs of spread queues.
        Enqueued::Stale(_) | Enqueued::Elsewhere => "elsewhere",
    }
}

impl All {
    /// Parses and checks the job of a line.
    pub(super) fn job(&self, text: &[u8]) -> Result<NewJob, String> {
        let request = self.request_of(text)?;
        request.build().map_err(|error| error.to_string())
    }

    /// Parses the job of a line.
    pub(super) fn request_of(&self, text: &[u8]) -> Result<JobRequest, String> {
        let line = serde_json::from_slice(text);
        let line: Line = line.map_err(|error| unreadable(text, &error))?;
        self.request(line)
    }

    fn request(&self, line: Line) -> Result<JobRequest, String> {
        let timing = timing(&line.timing)?;
        let script = self.script(&line)?;
        let zone = timing.tz().cloned();
        let zone = zone.unwrap_or_else(|| self.timing.zone());
        let all = self.timing.add_to(self.job_args.request(&script), &zone);
        let timed = all.and_then(|request| timing.add_to(request, &zone));
        let request = timed.map_err(|error| error.to_string())?;
        // Reads no file: `--input` with `--jsonl` is refused.
        let given = self.given.clone().add_to(request, Path::new(""));
        let mut request = given.map_err(|error| error.to_string())?;
        request = places(request, &line)?;
        if let Some(id) = &line.id {
            request = request.id(parse("id", id)?);
        }
        if let Some(input) = line.input {
            request = request.input(input);
        }
        if let Some(env) = line.env {
            let here = self.job_args.env.iter().cloned();
            request = request.env(here.chain(env).collect());
        }
        if let Some(seconds) = line.timeout {
            request = request.timeout(Duration::from_secs(seconds));
        }
        if let Some(retries) = line.retries {
            request = request.retries(retries);
        }
        if let Some(seconds) = line.backoff {
            request = request.backoff(of("backoff", parsers::backoff(&seconds.to_string()))?);
        }
        if let Some(time) = &line.start_timeout {
            request = request.start_timeout(of(
                "start_timeout",
                parsers::span(&plain("start_timeout", time)?),
            )?);
        }
        for tag in &line.tags {
            request = request.tag(parse("tags", tag)?);
        }
        for id in &line.depends_on {
            request = after(request, of("depends_on", parsers::prerequisite(id))?);
        }
        if let Some(seconds) = line.prerequisite_timeout {
            request = request.prerequisite_timeout(Duration::from_secs(seconds));
        }
        if let Some(word) = &line.on_failure {
            request = request.on_failure(parse("on_failure", word)?);
        }
        if let Some(exclusive) = line.exclusive {
            request = request.concurrent(!exclusive);
        }
        if line.caller.is_some() || line.caller_context.is_some() {
            let (caller, context) = self.given.origin();
            let [caller, context] = [(line.caller, caller), (line.caller_context, context)]
                .map(|(own, all)| own.unwrap_or_else(|| all.to_owned()));
            request = request.caller(caller, context);
        }
        if let Some(batch) = &line.batch {
            request = request.batch(parse("batch", batch)?);
        } else if let Some(batch) = &self.batch {
            request = request.batch(batch.clone());
        }
        if let Some(path) = line.log_path {
            request = request.log_path(path);
        }
        let topic = line.topic.as_deref();
        let topic = topic.map(|text| parse("topic", text)).transpose()?;
        if self.routing.has_unread_topic(topic.as_ref()) {
            return Err(UNREAD_TOPIC.to_owned());
        }
        Ok(self.routing.bind(request, topic.as_ref()))
    }

    /// Returns the script of the line, or the default.
    fn script(&self, line: &Line) -> Result<Script, String> {
        let all = self.script.as_ref();
        let script_type: Option<ScriptType> = match &line.script_type {
            Some(name) => Some(parse("type", name)?),
            None => all
                .map(|script| script.script_type.clone())
                .or_else(|| self.job_args.script_type.clone()),
        };
        let text = match (&line.script, &line.payload) {
            (Some(_), Some(_)) => return Err("it has a script and a payload: give one".to_owned()),
            (Some(script), None) => Some(script.clone()),
            (None, Some(payload)) => Some(payload.get().to_owned()),
            (None, None) => all.map(|script| script.text.clone()),
        };
        Ok(Script {
            script_type: script_type.ok_or("it has no type: give it there, or with --type")?,
            text: text.ok_or("it has neither a script nor a payload")?,
        })
    }
}

/// Sets the queue of a job.
fn places(mut request: JobRequest, line: &Line) -> Result<JobRequest, String> {
    if let Some(group) = &line.group {
        request = request.group(parse("group", group)?);
    }
    if let Some(route) = &line.route {
        if line.group.is_some() {
            return Err("it has a group and a route: give one".to_owned());
        }
        request = request.route(&parse("route", route)?);
    }
    if let Some(instance) = &line.instance {
        request = request.instance(parse("instance", instance)?);
    }
    if let Some(fallback) = &line.fallback {
        request = request.fallback(of("fallback", parsers::fallback(fallback))?);
    }
    if let Some(priority) = &line.priority {
        request = request.priority(parse("priority", priority)?);
    }
    Ok(request)
}

/// Reads the options for time, key and unique name, in the syntax of the command line.
fn timing(given: &BTreeMap<String, serde_json::Value>) -> Result<TimingArgs, String> {
    const NAMES: [&str; 11] = [
        "at",
        "tz",
        "delay",
        "in",
        "key",
        "unique",
        "unique_for",
        "unique_until",
        "on_duplicate",
        "debounce",
        "throttle",
    ];
    let mut words = vec!["line".to_owned()];
    for (name, value) in given {
        if !NAMES.contains(&name.as_str()) {
            return Err(format!("{name:?} is nothing that a job has"));
        }
        if !value.is_null() {
            let text = plain(name, value)?;
            words.push(format!("--{}={text}", name.replace('_', "-")));
        }
    }
    TimingArgs::read(&words)
}

/// A value as it stands on the command line.
fn plain(name: &str, value: &serde_json::Value) -> Result<String, String> {
    match value {
        serde_json::Value::String(text) => Ok(text.clone()),
        serde_json::Value::Number(number) => Ok(number.to_string()),
        _ => Err(format!("{name} is a text")),
    }
}

fn parse<T: std::str::FromStr<Err: ToString>>(name: &str, text: &str) -> Result<T, String> {
    of(
        name,
        text.parse().map_err(|error: T::Err| error.to_string()),
    )
}

/// Adds the name of the field to its error.
fn of<T>(name: &str, read: Result<T, String>) -> Result<T, String> {
    read.map_err(|fault| format!("field {name:?}: {fault}"))
}

/// Returns the error of a line that is no job: the field whose value has another type, if one has.
fn unreadable(text: &[u8], error: &serde_json::Error) -> String {
    let fields = serde_json::from_slice::<BTreeMap<String, Box<RawValue>>>(text);
    let fault = |name: &str, value: &RawValue| {
        let alone = BTreeMap::from([(name, value)]);
        let fault = serde_json::from_str::<Line>(&serde_json::to_string(&alone).ok()?).err()?;
        let fault = fault.to_string();
        let fault = fault
            .split(" at line ")
            .next()
            .unwrap_or_default()
            .to_owned();
        of::<()>(name, Err(fault)).err()
    };
    let fields = fields.unwrap_or_default();
    let found = fields.iter().find_map(|(name, value)| fault(name, value));
    found.unwrap_or_else(|| error.to_string())
}
