//! `meshwork job enqueue --jsonl`: many jobs, a line of JSON each, checked as a whole and enqueued in batches.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use meshwork::{Client, JobRequest};
use meshwork_model::job::NewJob;
use meshwork_model::name::{BatchId, NameError};
use meshwork_model::number::counted;
use meshwork_model::read;
use meshwork_model::schedule::zone::Zone;
use meshwork_model::spec::{JobSpec, SpecPlace};
use meshwork_model::time;
use meshwork_ops::{Beside, NewJobOutcome, With, enqueue_many};
use serde::Serialize;
use serde::de::{Error, MapAccess};
use serde_json::json;

use super::jsonl_source::{JsonlError, Source};
use crate::app::App;
use crate::args::moment;
use crate::args::parsers;
use crate::args::routing::{Routing, UNREAD_TOPIC};
use crate::args::script::Script;
use crate::ephemeral_worker::{WorkerCheck, required};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::job_args::{JobArgs, TargetArgs};
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

/// Free text of the caller as lines had it, under the name that is now the number of a context.
#[derive(Debug, Default)]
struct OldContext(Option<String>);

impl Beside for OldContext {
    const NAMES: &'static [&'static str] = &["context"];

    fn read<'de, A: MapAccess<'de>>(&mut self, _: &str, map: &mut A) -> Result<(), A::Error> {
        self.0 = match map.next_value()? {
            serde_json::Value::String(text) => Some(text),
            serde_json::Value::Null => None,
            _ => {
                return Err(A::Error::custom(
                    "lines have no contexts: enqueue the jobs one by one, or send them in a message",
                ));
            }
        };
        Ok(())
    }
}

/// Result of a line.
#[derive(Debug, Serialize)]
struct Answer<'a> {
    line: usize,
    #[serde(flatten)]
    outcome: &'a NewJobOutcome,
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
    let client = context.near().await?;
    for route in &routes {
        match &client {
            Some(client) => drop(all.check_worker.check(client, route).await?),
            None if all.check_worker.is_required() => return Err(required()),
            None => {}
        }
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
    note(format_args!("{stored} of {} stored", counted(sent, "job")));
    Ok(sender.exit)
}

/// Sends jobs in batches, and prints the result of each.
struct Sender {
    /// None: the API is used.
    client: Option<Client>,
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
        let outcomes = match &self.client {
            Some(client) => enqueue_many(client, &jobs).await?,
            None => by_api(context, &jobs).await?,
        };
        for (line, outcome) in lines.into_iter().zip(&outcomes) {
            self.sent += 1;
            self.stored += usize::from(outcome.is_stored());
            if let Some(refusal) = &outcome.error {
                self.exit = self.exit.or(Exit::FAILED);
                note(format_args!("line {line}: {refusal}"));
            }
            if context.out.is_json() {
                context.out.json(&Answer { line, outcome })?;
            } else {
                let NewJobOutcome { id, result, .. } = outcome;
                let other = outcome.other.as_ref();
                let other = other.map_or_else(String::new, |id| format!(" {id}"));
                context.out.line(format_args!("{id} {result}{other}"))?;
            }
        }
        Ok(context.out.flush()?)
    }
}

/// Enqueues jobs by the API. Their ids let a repeated call store each once.
async fn by_api(context: &App, jobs: &[NewJob]) -> Result<Vec<NewJobOutcome>, CommandError> {
    let written = jobs.iter().map(JobSpec::written);
    let written: Vec<_> = written
        .collect::<Result<_, _>>()
        .map_err(CommandError::usage)?;
    let params = json!({"jobs": written});
    let mut answer: BTreeMap<String, Vec<NewJobOutcome>> =
        context.call("job.create_many", &params).await?;
    Ok(answer.remove("jobs").unwrap_or_default())
}

impl All {
    /// Parses and checks the job of a line.
    pub(super) fn job(&self, text: &[u8]) -> Result<NewJob, String> {
        let request = self.request_of(text)?;
        request.build().map_err(|error| error.to_string())
    }

    /// Parses the job of a line.
    pub(super) fn request_of(&self, text: &[u8]) -> Result<JobRequest, String> {
        let With {
            beside: OldContext(text),
            own: mut spec,
        } = read::from_json::<With<OldContext, JobSpec>>(text)?;
        spec.caller_context = spec.caller_context.or(text);
        let topic = spec.topic.take().map(|topic| topic.0);
        if self.routing.has_unread_topic(topic.as_ref()) {
            return Err(UNREAD_TOPIC.to_owned());
        }
        let request = self.defaults(&spec)?;
        let zone = self.zone_of(&spec)?;
        let id = |id: &str| id.parse().map_err(|error: NameError| error.to_string());
        let place = SpecPlace {
            id: &id,
            awaited: &parsers::job_id,
            now_ms: meshwork::host_ms(),
            zone: &zone,
        };
        let request = request.with_spec(spec, &place);
        let request = request.map_err(|error| error.to_string())?;
        Ok(self.routing.bind(request, topic.as_ref()))
    }

    /// Returns the job of the command's options, with the script of a line.
    fn defaults(&self, spec: &JobSpec) -> Result<JobRequest, String> {
        let script = self.script(spec)?;
        let request = self.job_args.request(&script);
        let zone = self.timing.zone().map_err(|error| error.to_string())?;
        let timed = self.timing.add_to(request, &zone);
        let request = timed.map_err(|error| error.to_string())?;
        // Reads no file: `--input` with `--jsonl` is refused.
        let given = self.given.clone().add_to(request, Path::new(""));
        let request = given.map_err(|error| error.to_string())?;
        Ok(match &self.batch {
            Some(batch) => request.batch(batch.clone()),
            None => request,
        })
    }

    /// Returns the time zone of a line without its own: that of the host is looked at only for a time that needs one.
    fn zone_of(&self, spec: &JobSpec) -> Result<Zone, String> {
        let needs = |text: &str| !text.starts_with('+') && time::parse_instant(text).is_none();
        match self.timing.tz() {
            Some(zone) => Ok(zone.clone()),
            None if spec.at.as_deref().is_some_and(needs) => {
                moment::local().map_err(|error| error.to_string())
            }
            None => Ok(Zone::default()),
        }
    }

    /// Returns the script of the line, or the default.
    fn script(&self, spec: &JobSpec) -> Result<Script, String> {
        let all = self.script.as_ref();
        let script_type = spec.script_type.as_ref().map(|it| it.0.clone());
        let script_type = script_type
            .or_else(|| all.map(|script| script.script_type.clone()))
            .or_else(|| self.job_args.script_type.clone());
        let text = spec.text().map_err(|error| error.to_string())?;
        let text = text.or(all.map(|script| script.text.as_str()));
        Ok(Script {
            script_type: script_type.ok_or("it has no type: give it there, or with --type")?,
            text: text
                .ok_or("it has neither a script nor a payload")?
                .to_owned(),
        })
    }
}
