//! A job as read from its record. Reading is lenient, because other programs write these hashes too.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::{FailedAttempt, field, limits};
use crate::cancellation::is_cancellation;
use crate::name::{JobId, ScriptType};
use crate::route::Route;
use crate::sandbox::{InvalidSandbox, RunUsage, SandboxSettings};
use crate::secret::EnvVars;
use crate::state::{State, Status};
use crate::trace::{InvalidTrace, TraceContext};

/// The content of a record. A field that is missing or unreadable has its default; unknown fields are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Job {
    /// Id in the key; the field `id` is ignored.
    pub id: String,
    /// Id of the caller.
    pub caller_id: String,
    /// Target worker, by either of Hero's names for the field.
    pub worker_id: String,
    /// Id of the context.
    pub context_id: String,
    /// Text of the script.
    pub script: Vec<u8>,
    /// Type of the script; absent where only the queue names it.
    pub script_type: Option<String>,
    /// Requested group.
    pub group: Option<String>,
    /// Requested instance.
    pub instance: Option<String>,
    /// Input of the script, as bytes.
    pub input: Option<Vec<u8>>,
    /// Timeout of one run in seconds, at most [`limits::MAX_TIMEOUT`] whatever the record contains.
    pub timeout: u64,
    /// Number of retries.
    pub retries: u32,
    /// False if the job must run alone on its worker.
    pub concurrent: bool,
    /// True if a client may wait on the reply list. Default: true.
    pub reply: bool,
    /// True if a foreign client submitted the job. That client takes the only reply.
    pub foreign: bool,
    /// True if a Meshwork worker has claimed the job and has not reported. Foreign workers take no lease.
    pub leased: bool,
    /// A log file on the worker's host.
    pub log_path: Option<String>,
    /// ISO 8601, unchanged.
    pub created_at: String,
    /// ISO 8601, unchanged.
    pub updated_at: String,
    /// Status word, unchanged; see [`Job::status`].
    pub status: String,
    /// Environment of the script.
    pub env_vars: EnvVars,
    /// The result.
    pub output: Option<Vec<u8>>,
    /// Reason of a failure.
    pub error: Option<String>,
    /// Position of the error in the script.
    pub traceback: Option<String>,
    /// Last part of the last run's stdout.
    pub stdout: Vec<u8>,
    /// Last part of the last run's stderr.
    pub stderr: Vec<u8>,
    /// Number of attempts.
    pub attempt: u32,
    /// The last attempts that failed or were lost, the oldest first.
    pub failed_attempts: Vec<FailedAttempt>,
    /// Number of runs whose worker died.
    pub lost: u32,
    /// Number of snoozes.
    pub snoozes: u32,
    /// Start of the last run, in milliseconds since 1970.
    pub started_ms: Option<u64>,
    /// Worker of the last claim.
    pub worker: Option<String>,
    /// Queue of the last claim.
    pub queue: Option<String>,
    /// Jobs that must finish first, by any of the fields' names, each once.
    pub depends_on: Vec<String>,
    /// Names of the results of some of them, each with its job.
    pub input_names: BTreeMap<String, String>,
    /// Jobs that wait for this one.
    pub dependents: Vec<String>,
    /// `high` or `low`, if the record has it.
    pub priority: Option<String>,
    /// Rule for the failure of a prerequisite, if the record has it.
    pub on_failure: Option<String>,
    /// Number of prerequisites that have not ended.
    pub waiting: usize,
    /// Time by which a worker has to begin the job, in milliseconds since 1970. None from the first start on.
    pub start_by_ms: Option<u64>,
    /// First backoff, in milliseconds.
    pub backoff_ms: Option<u64>,
    /// Legacy list that also contains the id.
    pub lock: Option<String>,
    /// True if the job came from a legacy list.
    pub legacy: bool,
    /// Batch of the job.
    pub batch: Option<String>,
    /// Kind of a callback, a blank, the batch.
    pub callback: Option<String>,
    /// Reason of a cancellation.
    pub stop: Option<String>,
    /// Reason of a dead letter.
    pub dead: Option<String>,
    /// Due time of a delayed job, in milliseconds since 1970.
    pub run_at_ms: Option<u64>,
    /// Concurrency key, for fair queues and limits.
    pub key: Option<String>,
    /// Requested sandbox, unchanged; see [`Job::sandbox`].
    pub requested_sandbox: Option<String>,
    /// Node of the message that brought the job, if that is another one. Its runs are confined accordingly.
    pub node: Option<String>,
    /// Sandbox and resources of the last run that started processes.
    pub usage: Option<RunUsage>,
    /// Labels for lists.
    pub tags: Vec<String>,
    /// The time for which the unique name is taken (`done`, `started`, or milliseconds from the submission), a blank,
    /// the type, a colon and the name.
    pub unique: Option<String>,
    /// Progress, as the run reports it.
    pub progress: Option<String>,
    /// Trace of the job, unchanged; see [`Job::trace`].
    pub traceparent: Option<String>,
    /// Vendors' part of the trace, unchanged.
    pub tracestate: Option<String>,
    /// Digest of the request that created the job.
    pub request_digest: Option<String>,
    /// True if the job was imported from Bananas, whose clients are notified of its end.
    pub taken_over: bool,
    /// Number of the flow that the job is part of.
    pub flow: Option<u32>,
    /// Job whose run submitted this one.
    pub parent: Option<String>,
    /// Number of ancestors; 0 without a parent.
    pub depth: u32,
    /// Number of children.
    pub children: u32,
    /// Greatest number of a child. A child's id is the id of this job, a dot, and its number from 1. Numbers may be
    /// missing.
    pub calls: u32,
    /// All other fields.
    pub other: BTreeMap<String, Vec<u8>>,
}

/// Converts bytes to text, with replacement characters where other programs wrote invalid UTF-8.
#[must_use]
pub fn text(value: Vec<u8>) -> String {
    String::from_utf8(value).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}

fn some_text(value: Vec<u8>) -> Option<String> {
    Some(text(value)).filter(|text| !text.is_empty())
}

/// Converts text to lower case, in place if it is ASCII.
fn lowercase(mut text: String) -> String {
    if text.is_ascii() {
        text.make_ascii_lowercase();
        return text;
    }
    text.to_lowercase()
}

fn words(text: &str) -> Vec<String> {
    text.split_ascii_whitespace().map(str::to_owned).collect()
}

fn number<T: std::str::FromStr>(value: Vec<u8>) -> Option<T> {
    text(value).trim().parse().ok()
}

/// Returns the number of strings in quotes.
fn quoted(value: &[u8]) -> usize {
    value.iter().filter(|byte| **byte == b'"').count() / 2
}

/// Reads a JSON object with values of any type as an environment: strings without quotes, other values as they are
/// written, so that numbers keep their digits.
fn environment(value: &[u8]) -> EnvVars {
    let Ok(map) = serde_json::from_slice::<BTreeMap<String, &RawValue>>(value) else {
        return EnvVars::default();
    };
    let plain = |value: &RawValue| {
        let text = serde_json::from_str(value.get());
        text.unwrap_or_else(|_| value.get().to_owned())
    };
    map.into_iter()
        .map(|(name, value)| (name, plain(value)))
        .collect()
}

/// Reads a JSON array of strings; anything else has no items.
fn strings(value: &[u8]) -> Vec<String> {
    serde_json::from_slice(value).unwrap_or_default()
}

/// Reads job ids in the formats of other clients: a JSON array of strings or numbers, a JSON string, or ids separated
/// by commas. The claim decides which ids are valid (`lua/lib/claim/foreign_records.lua` of the broker); invalid ones are
/// shown as far as possible.
fn job_ids(value: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(value);
    let text = text.trim();
    let id = |raw: &str| serde_json::from_str(raw).unwrap_or_else(|_| raw.to_owned());
    let ids: Vec<String> = match text.as_bytes().first() {
        None | Some(b'{') => Vec::new(),
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(text).unwrap_or_default();
            items.into_iter().map(|item| id(item.get())).collect()
        }
        Some(b'"') => vec![id(text)],
        Some(_) => text.split(',').map(|id| id.trim().to_owned()).collect(),
    };
    let named = |id: &String| !id.is_empty() && id != "null";
    ids.into_iter().filter(named).collect()
}

impl Job {
    /// Reads the fields of `hero:job:{id}`.
    #[must_use]
    pub fn from_fields(id: &str, fields: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        Self::read(id.to_owned(), fields)
    }

    /// Reads fields whose names are texts of any kind, so that constant names need no copy.
    pub(crate) fn read<N: AsRef<str>>(
        id: String,
        fields: impl IntoIterator<Item = (N, Vec<u8>)>,
    ) -> Self {
        let mut job = Self {
            id,
            timeout: limits::DEFAULT_TIMEOUT,
            concurrent: true,
            reply: true,
            foreign: true,
            ..Self::default()
        };
        for (name, value) in fields {
            job.set(name.as_ref(), value);
        }
        job
    }

    fn set(&mut self, name: &str, value: Vec<u8>) {
        match name {
            field::ID => {}
            field::CALLER_ID => self.caller_id = text(value),
            field::WORKER_ID | field::ACTOR_ID => {
                if let Some(target) = some_text(value) {
                    self.worker_id = target;
                }
            }
            field::CONTEXT_ID => self.context_id = text(value),
            field::SCRIPT => self.script = value,
            field::SCRIPT_TYPE => self.script_type = some_text(value).map(lowercase),
            field::GROUP => self.group = some_text(value),
            field::INSTANCE => self.instance = some_text(value),
            field::INPUT => self.input = Some(value),
            field::TIMEOUT => {
                // Other programs may write numbers beyond any clock.
                self.timeout = number(value)
                    .filter(|seconds| *seconds > 0)
                    .unwrap_or(limits::DEFAULT_TIMEOUT)
                    .min(limits::MAX_TIMEOUT);
            }
            field::RETRIES => self.retries = number(value).unwrap_or_default(),
            field::CONCURRENT => self.concurrent = !text(value).eq_ignore_ascii_case("false"),
            field::REPLY => (self.reply, self.foreign) = (value != b"0", false),
            field::LOG_PATH => self.log_path = some_text(value),
            field::CREATED_AT => self.created_at = text(value),
            field::UPDATED_AT => self.updated_at = text(value),
            field::STATUS => self.status = text(value),
            field::ENV_VARS => self.env_vars = environment(&value),
            field::OUTPUT => self.output = Some(value),
            field::ERROR => self.error = some_text(value),
            field::TRACEBACK => self.traceback = some_text(value),
            field::STDOUT => self.stdout = value,
            field::STDERR => self.stderr = value,
            field::ATTEMPT => self.attempt = number(value).unwrap_or_default(),
            field::LOST => self.lost = number(value).unwrap_or_default(),
            field::SNOOZES => self.snoozes = number(value).unwrap_or_default(),
            field::TOKEN => self.leased = !value.is_empty(),
            field::WORKER => self.worker = some_text(value),
            field::QUEUE => self.queue = some_text(value),
            field::PREREQUISITES | field::DEPENDENCIES => {
                for id in job_ids(&value) {
                    if !self.depends_on.contains(&id) {
                        self.depends_on.push(id);
                    }
                }
            }
            field::DEPENDENTS => self.dependents = strings(&value),
            field::PRIORITY => self.priority = some_text(value),
            field::ON_FAILURE => self.on_failure = some_text(value),
            field::WAITING => self.waiting = quoted(&value),
            field::BACKOFF => self.backoff_ms = number(value),
            field::LOCK => self.lock = some_text(value),
            field::LEGACY => self.legacy = value == b"1",
            field::BATCH => self.batch = some_text(value),
            field::CALLBACK => self.callback = some_text(value),
            field::STOP => self.stop = some_text(value),
            field::DEAD => self.dead = some_text(value),
            field::RUN_AT => self.run_at_ms = number(value),
            field::KEY => self.key = some_text(value),
            field::UNIQUE => self.unique = some_text(value),
            field::PROGRESS => self.progress = some_text(value),
            field::TRACEPARENT => self.traceparent = some_text(value),
            field::TRACESTATE => self.tracestate = some_text(value),
            field::REQUEST => self.request_digest = some_text(value),
            field::BANANAS => self.taken_over = true,
            field::FLOW => self.flow = number(value),
            // Only the export to Bananas needs these.
            field::RECORD | field::PLACES | field::IMPORT => {}
            _ => self.set_other(name, value),
        }
    }

    fn set_other(&mut self, name: &str, value: Vec<u8>) {
        match name {
            field::PARENT => self.parent = some_text(value),
            field::DEPTH => self.depth = number(value).unwrap_or_default(),
            field::INPUT_NAMES => {
                self.input_names = serde_json::from_slice(&value).unwrap_or_default();
            }
            field::TAGS => self.tags = words(&text(value)),
            field::FAILED_ATTEMPTS => self.failed_attempts = FailedAttempt::read_all(&value),
            field::USAGE => self.usage = text(value).parse().ok(),
            field::FROM_NODE => self.node = Some(text(value)),
            field::SANDBOX => self.requested_sandbox = some_text(value),
            field::STARTED => self.started_ms = number(value),
            field::START_BY => {
                let by = text(value);
                self.start_by_ms = by.split(' ').next().and_then(|by| by.parse().ok());
            }
            field::CHILDREN => self.children = number(value).unwrap_or_default(),
            field::CALLS => {
                let highest: u32 = number(value).unwrap_or_default();
                self.calls = highest.min(limits::MAX_CHILDREN);
            }
            // Only the script that submits the next child needs these.
            name if name.starts_with(field::CHILD) => {}
            _ => {
                self.other.insert(name.to_owned(), value);
            }
        }
    }

    /// Returns the requested sandbox.
    ///
    /// # Errors
    /// The record has another text. The job must not run: the text may request a strict sandbox.
    pub fn sandbox(&self) -> Result<SandboxSettings, InvalidSandbox> {
        self.requested_sandbox
            .as_deref()
            .unwrap_or_default()
            .parse()
    }

    /// Returns the status, if the word is known. An empty word counts as dispatched, because the job was pushed. A
    /// job that waits for others is `dispatched` too, since Hero has no other word.
    #[must_use]
    pub fn status(&self) -> Option<Status> {
        let status = match self.status.as_str() {
            "" => Status::Dispatched,
            word => word.parse().ok()?,
        };
        let waits = status == Status::Dispatched && self.waiting > 0;
        Some(if waits {
            Status::WaitingForPrerequisites
        } else {
            status
        })
    }

    /// Returns the state for people, if the status is known. `is_delayed`: the job is among the delayed jobs, which the
    /// record does not tell.
    #[must_use]
    pub fn state(&self, is_delayed: bool) -> Option<State> {
        Some(match self.status()? {
            Status::Dispatched if is_delayed => State::Delayed,
            Status::Started if self.stop.is_some() => State::Cancelling,
            Status::Error if self.is_cancelled() => State::Cancelled,
            status => status.into(),
        })
    }

    /// Returns true if the job has not ended and no cancel was requested.
    #[must_use]
    pub fn is_cancellable(&self) -> bool {
        self.status().is_some_and(|status| !status.is_final()) && self.stop.is_none()
    }

    /// Returns true if a cancellation has ended the job. Only the text of the error tells it, as Hero's clients and
    /// workers write it; a failure becomes a dead letter, whatever its text.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.status() == Some(Status::Error)
            && self.dead.is_none()
            && self.error.as_deref().is_some_and(is_cancellation)
    }

    /// Returns the trace. Invalid parts are omitted, and the second value has the reason.
    #[must_use]
    pub fn trace(&self) -> (Option<TraceContext>, Option<InvalidTrace>) {
        match &self.traceparent {
            Some(parent) => TraceContext::lenient(parent, self.tracestate.as_deref()),
            None => (None, None),
        }
    }

    /// Returns the id, for keys.
    #[must_use]
    pub fn job_id(&self) -> JobId {
        JobId::foreign(self.id.clone())
    }

    /// Returns the route, if the record has valid names for it.
    #[must_use]
    pub fn route(&self) -> Option<Route> {
        let script_type: ScriptType = self.script_type.as_deref()?.parse().ok()?;
        let group = self.group.as_deref().map(str::parse).transpose().ok()?;
        let instance = self.instance.as_deref().map(str::parse).transpose().ok()?;
        let priority = self.priority.as_deref().map(str::parse).transpose().ok()?;
        Some(Route {
            script_type,
            group,
            instance,
            priority: priority.unwrap_or_default(),
        })
    }
}
