//! A job as its record says, read leniently: others write these hashes too.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::{field, limits};
use crate::name::{JobId, ScriptType};
use crate::route::Route;
use crate::secret::EnvVars;
use crate::state::Status;
use crate::trace::{InvalidTrace, TraceContext};

/// What a record says. A field that is missing or unreadable has its default; unknown fields are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Job {
    /// The id in the key, not the one in the field.
    pub id: String,
    /// Who asked.
    pub caller_id: String,
    /// The target, by either of Hero's names for it.
    pub worker_id: String,
    /// In which context.
    pub context_id: String,
    /// What to execute.
    pub script: Vec<u8>,
    /// What executes it; absent where only the queue says it.
    pub script_type: Option<String>,
    /// The group asked for.
    pub group: Option<String>,
    /// The instance asked for.
    pub instance: Option<String>,
    /// Bytes for the script.
    pub input: Option<Vec<u8>>,
    /// Seconds that one run may take: at most [`limits::MAX_TIMEOUT`], whatever the record says.
    pub timeout: u64,
    /// Runs after the first.
    pub retries: u32,
    /// Whether it may run beside others on its worker.
    pub concurrent: bool,
    /// Whether somebody may wait on the reply list; so with every record that does not say otherwise.
    pub reply: bool,
    /// Whether a client of another make submitted it: the one reply is that client's to take.
    pub foreign: bool,
    /// Whether a worker of ours claimed it and has not reported: a worker of another make takes no lease.
    pub leased: bool,
    /// A log file on the worker's host.
    pub log_path: Option<String>,
    /// ISO 8601, as written.
    pub created_at: String,
    /// ISO 8601, as written.
    pub updated_at: String,
    /// As written; see [`Job::status`].
    pub status: String,
    /// Environment of the script.
    pub env_vars: EnvVars,
    /// The result.
    pub output: Option<Vec<u8>>,
    /// Why there is none.
    pub error: Option<String>,
    /// Where in the script the error arose.
    pub traceback: Option<String>,
    /// The end of the last run's stdout.
    pub stdout: Vec<u8>,
    /// The end of the last run's stderr.
    pub stderr: Vec<u8>,
    /// Runs begun.
    pub attempt: u32,
    /// How often its worker went away.
    pub lost: u32,
    /// How often its runs asked to be run later.
    pub snoozes: u32,
    /// The worker that claimed it last.
    pub worker: Option<String>,
    /// The queue it was claimed from last.
    pub queue: Option<String>,
    /// Jobs that must finish before it, by any of the seeds' names for them, each once.
    pub depends_on: Vec<String>,
    /// Jobs that wait for it.
    pub dependents: Vec<String>,
    /// `high` or `low` where it says so.
    pub priority: Option<String>,
    /// What a prerequisite's failure means, where it says so.
    pub on_failure: Option<String>,
    /// Prerequisites that have not ended.
    pub waiting: usize,
    /// The first pause before a retry, in milliseconds.
    pub backoff_ms: Option<u64>,
    /// The old list on which its id stands as well.
    pub lock: Option<String>,
    /// Whether it came from an old list.
    pub legacy: bool,
    /// The batch that it belongs to.
    pub batch: Option<String>,
    /// What it waits or waited for as a callback, a blank, the batch.
    pub callback: Option<String>,
    /// Why it is to be stopped.
    pub stop: Option<String>,
    /// Why it is a dead letter.
    pub dead: Option<String>,
    /// When it was to run at the earliest, in milliseconds since 1970, if its submitter said.
    pub run_at_ms: Option<u64>,
    /// Whose turns it takes, and for whose limits it counts.
    pub key: Option<String>,
    /// Until when it keeps others of its unique name away (`done` or `started`), or for how many milliseconds
    /// from its submission; a blank, its type, a colon and the name.
    pub unique: Option<String>,
    /// How far it is, as its run says.
    pub progress: Option<String>,
    /// The trace that it belongs to, as written; see [`Job::trace`].
    pub traceparent: Option<String>,
    /// What tracing systems say beside it, as written.
    pub tracestate: Option<String>,
    /// Whether it was a job of Bananas, whose clients are told of its end.
    pub taken_over: bool,
    /// The job whose run has submitted it.
    pub parent: Option<String>,
    /// How many jobs stand above it; 0 where it has no parent.
    pub depth: u32,
    /// How many children its runs have submitted.
    pub children: u32,
    /// The highest number among them: each has the id of this job, a dot, and its number from 1. Numbers may be
    /// missing.
    pub calls: u32,
    /// Every field that is none of the above.
    pub other: BTreeMap<String, Vec<u8>>,
}

/// Bytes as text, where others may have written what is none.
#[must_use]
pub fn text(value: Vec<u8>) -> String {
    String::from_utf8(value).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}

fn some_text(value: Vec<u8>) -> Option<String> {
    Some(text(value)).filter(|text| !text.is_empty())
}

fn number<T: std::str::FromStr>(value: Vec<u8>) -> Option<T> {
    text(value).trim().parse().ok()
}

/// How many strings in quotes there are.
fn quoted(value: &[u8]) -> usize {
    value.iter().filter(|byte| **byte == b'"').count() / 2
}

/// A JSON object with whatever values, as an environment: strings as they are, the rest as JSON.
fn environment(value: &[u8]) -> EnvVars {
    let Ok(serde_json::Value::Object(map)) = serde_json::from_slice(value) else {
        return EnvVars::default();
    };
    let plain = |value| match value {
        serde_json::Value::String(text) => text,
        other => other.to_string(),
    };
    map.into_iter()
        .map(|(name, value)| (name, plain(value)))
        .collect()
}

/// A JSON array of strings; what is none has no items.
fn strings(value: &[u8]) -> Vec<String> {
    serde_json::from_slice(value).unwrap_or_default()
}

/// Job ids as other clients write them: a JSON array of strings or numbers, a JSON string, or ids with commas between.
/// Which of them can be read, the claim decides (`lua/lib/foreign_records.lua` of the broker); of others this shows what it can.
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
        let mut job = Self {
            id: id.to_owned(),
            timeout: limits::DEFAULT_TIMEOUT,
            concurrent: true,
            reply: true,
            foreign: true,
            ..Self::default()
        };
        for (name, value) in fields {
            job.set(name, value);
        }
        job
    }

    fn set(&mut self, name: String, value: Vec<u8>) {
        match name.as_str() {
            field::ID => {}
            field::CALLER_ID => self.caller_id = text(value),
            field::WORKER_ID | field::ACTOR_ID => {
                if let Some(target) = some_text(value) {
                    self.worker_id = target;
                }
            }
            field::CONTEXT_ID => self.context_id = text(value),
            field::SCRIPT => self.script = value,
            field::SCRIPT_TYPE => self.script_type = some_text(value).map(|t| t.to_lowercase()),
            field::GROUP => self.group = some_text(value),
            field::INSTANCE => self.instance = some_text(value),
            field::INPUT => self.input = Some(value),
            field::TIMEOUT => {
                // Others write what no clock can count to.
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
            field::BANANAS => self.taken_over = true,
            // For the way back alone.
            field::RECORD | field::PLACES => {}
            _ => self.set_family(name, value),
        }
    }

    fn set_family(&mut self, name: String, value: Vec<u8>) {
        match name.as_str() {
            field::PARENT => self.parent = some_text(value),
            field::DEPTH => self.depth = number(value).unwrap_or_default(),
            field::CHILDREN => self.children = number(value).unwrap_or_default(),
            field::CALLS => {
                let highest: u32 = number(value).unwrap_or_default();
                self.calls = highest.min(limits::MAX_CHILDREN);
            }
            // For the script that submits the next one.
            name if name.starts_with(field::CHILD) => {}
            _ => {
                self.other.insert(name, value);
            }
        }
    }

    /// The status, if it is one that we know. An empty one counts as dispatched: the job was pushed. One
    /// that waits for others is `dispatched` to readers of Hero's records, who know no other word for it.
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

    /// The trace that it belongs to. What is not valid is left out, and the second says why.
    #[must_use]
    pub fn trace(&self) -> (Option<TraceContext>, Option<InvalidTrace>) {
        match &self.traceparent {
            Some(parent) => TraceContext::lenient(parent, self.tracestate.as_deref()),
            None => (None, None),
        }
    }

    /// The id, for keys.
    #[must_use]
    pub fn job_id(&self) -> JobId {
        JobId::foreign(self.id.clone())
    }

    /// Where the job is to go, if the record says it in names that we accept.
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
