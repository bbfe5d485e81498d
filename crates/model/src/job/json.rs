//! JSON form of a job that is to be enqueued: the template of a schedule, and the row of an outbox.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

use data_encoding::BASE64;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{InvalidTag, Membership, NewJob, Unique, UnknownPolicy, Until, When, limits};
use crate::name::{BatchId, JobId};
use crate::route::{Priority, Route};
use crate::sandbox::InvalidSandbox;
use crate::trace::TraceContext;

/// A text is no JSON form of a job.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the text of job {id} cannot be read: {why}")]
pub struct UnreadableJob {
    id: JobId,
    why: String,
}

/// All fields of a job, without its id.
#[derive(Serialize, Deserialize)]
struct WholeJob {
    #[serde(flatten)]
    template: StoredJob,
    /// Base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    input: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run_at_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    delay_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    depends_on: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    input_names: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    on_failure: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prerequisite_timeout: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tracestate: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request_digest: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    batch: Option<String>,
    #[serde(default, skip_serializing_if = "is_false")]
    reply: bool,
}

/// Fields of the template of a schedule.
#[derive(Serialize, Deserialize)]
pub(crate) struct StoredJob {
    #[serde(rename = "type")]
    script_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    instance: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fallback: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    priority: Option<String>,
    script: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    caller_id: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    context_id: String,
    #[serde(default = "timeout")]
    timeout: u64,
    #[serde(default)]
    retries: u32,
    #[serde(default = "yes")]
    concurrent: bool,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    env: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    log_path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    backoff_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    start_timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    sandbox: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unique: Option<StoredUnique>,
    /// Unknown fields, of a later release.
    #[serde(flatten)]
    pub(crate) rest: Map<String, Value>,
}

#[derive(Serialize, Deserialize)]
struct StoredUnique {
    name: String,
    /// `done`, `started`, or a number of milliseconds.
    until: Value,
    policy: String,
}

impl StoredUnique {
    fn new(unique: &Unique) -> Self {
        Self {
            name: unique.name.clone(),
            until: match unique.until {
                Until::Done => "done".into(),
                Until::Started => "started".into(),
                Until::For(ms) => ms.into(),
            },
            policy: unique.policy.as_str().to_owned(),
        }
    }

    fn read(self) -> Result<Unique, String> {
        let until = match &self.until {
            Value::String(word) if word == "done" => Until::Done,
            Value::String(word) if word == "started" => Until::Started,
            other => other
                .as_u64()
                .map(Until::For)
                .ok_or_else(|| format!("a job is not unique until {other}"))?,
        };
        let policy = self.policy.parse();
        Ok(Unique {
            name: self.name,
            until,
            policy: policy.map_err(|error: UnknownPolicy| error.to_string())?,
        })
    }
}

fn timeout() -> u64 {
    limits::DEFAULT_TIMEOUT
}

fn yes() -> bool {
    true
}

impl StoredJob {
    pub(crate) fn new(job: &NewJob, rest: Map<String, Value>) -> Self {
        let route = &job.route;
        Self {
            script_type: route.script_type.to_string(),
            group: route.group.as_ref().map(ToString::to_string),
            instance: route.instance.as_ref().map(ToString::to_string),
            fallback: job.fallback.map(|fallback| fallback.as_str().to_owned()),
            priority: (route.priority != Priority::Normal).then(|| route.priority.to_string()),
            script: job.script.clone(),
            caller_id: job.caller_id.clone(),
            context_id: job.context_id.clone(),
            timeout: job.timeout,
            retries: job.retries,
            concurrent: job.concurrent,
            env: job
                .env_vars
                .iter()
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            log_path: job.log_path.clone(),
            backoff_ms: job.backoff_ms,
            start_timeout_ms: job.start_timeout_ms,
            key: job.key.clone(),
            sandbox: job.sandbox.to_string(),
            tags: job.tags.iter().map(ToString::to_string).collect(),
            unique: job.unique.as_ref().map(StoredUnique::new),
            rest,
        }
    }

    pub(crate) fn read(self, id: JobId) -> Result<NewJob, String> {
        let route = Route {
            script_type: self
                .script_type
                .parse()
                .map_err(|error| format!("{error}"))?,
            group: word(self.group)?,
            instance: word(self.instance)?,
            priority: word(self.priority)?.unwrap_or_default(),
        };
        let mut job = NewJob::new(id, route, self.script);
        job.fallback = word(self.fallback)?;
        job.caller_id = self.caller_id;
        job.context_id = self.context_id;
        job.timeout = self.timeout;
        job.retries = self.retries;
        job.concurrent = self.concurrent;
        job.env_vars = self.env.into();
        job.log_path = self.log_path;
        job.backoff_ms = self.backoff_ms;
        job.start_timeout_ms = self.start_timeout_ms;
        job.key = self.key;
        let sandbox = self.sandbox.parse();
        job.sandbox = sandbox.map_err(|error: InvalidSandbox| error.to_string())?;
        let tags = self.tags.iter().map(|tag| tag.parse());
        job.tags = tags
            .collect::<Result<_, _>>()
            .map_err(|error: InvalidTag| error.to_string())?;
        job.unique = self.unique.map(StoredUnique::read).transpose()?;
        Ok(job)
    }
}

fn is_false(value: &bool) -> bool {
    !value
}

/// Parses a word, if there is one.
fn word<T: FromStr<Err: Display>>(text: Option<String>) -> Result<Option<T>, String> {
    let parsed = text.map(|text| text.parse().map_err(|error: T::Err| error.to_string()));
    parsed.transpose()
}

impl NewJob {
    /// Returns the JSON form, without the id. The token of a running job that adds this one to its batch is not included.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut whole = WholeJob {
            template: StoredJob::new(self, Map::new()),
            input: self.input.as_deref().map(|input| BASE64.encode(input)),
            run_at_ms: None,
            delay_ms: None,
            depends_on: self.depends_on.iter().map(ToString::to_string).collect(),
            input_names: self
                .input_names
                .iter()
                .map(|(name, id)| (name.clone(), id.to_string()))
                .collect(),
            on_failure: (self.on_failure != Default::default())
                .then(|| self.on_failure.as_str().to_owned()),
            prerequisite_timeout: self.prerequisite_timeout,
            traceparent: self.trace.as_ref().map(TraceContext::parent),
            tracestate: self
                .trace
                .as_ref()
                .and_then(TraceContext::state)
                .map(str::to_owned),
            request_digest: self.request_digest.clone(),
            batch: self.batch.as_ref().map(|of| of.batch.to_string()),
            reply: self.reply,
        };
        match self.when {
            Some(When::At(ms)) => whole.run_at_ms = Some(ms),
            Some(When::In(ms)) => whole.delay_ms = Some(ms),
            None => {}
        }
        // Strings and numbers always serialize.
        serde_json::to_string(&whole).unwrap_or_default()
    }

    /// Reads the form of [`NewJob::to_json`]. Does not check the job against [`limits`].
    ///
    /// # Errors
    /// The text is no such form, or has a field that this release does not know: without it, the job would be another one.
    pub fn from_json(id: JobId, text: &str) -> Result<Self, UnreadableJob> {
        read(id.clone(), text).map_err(|why| UnreadableJob { id, why })
    }
}

fn read(id: JobId, text: &str) -> Result<NewJob, String> {
    let whole: WholeJob = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if let Some(name) = whole.template.rest.keys().next() {
        return Err(format!("the field `{name}` is of a later release"));
    }
    let mut job = whole.template.read(id)?;
    let input = whole.input.map(|input| BASE64.decode(input.as_bytes()));
    job.input = input
        .transpose()
        .map_err(|error| format!("the input: {error}"))?;
    job.when = match (whole.run_at_ms, whole.delay_ms) {
        (Some(ms), _) => Some(When::At(ms)),
        (None, ms) => ms.map(When::In),
    };
    job.depends_on = whole.depends_on.into_iter().map(JobId::foreign).collect();
    let names = whole.input_names.into_iter();
    job.input_names = names.map(|(name, id)| (name, JobId::foreign(id))).collect();
    job.on_failure = word(whole.on_failure)?.unwrap_or_default();
    job.prerequisite_timeout = whole.prerequisite_timeout;
    job.request_digest = whole.request_digest;
    job.reply = whole.reply;
    let batch = word::<BatchId>(whole.batch)?;
    job.batch = batch.map(|batch| Membership { batch, by: None });
    if let Some(parent) = &whole.traceparent {
        let trace = TraceContext::parse(parent, whole.tracestate.as_deref());
        job.trace = Some(trace.map_err(|error| error.to_string())?);
    }
    Ok(job)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{OnDuplicate, OnFailure};
    use crate::route::Fallback;

    /// A job with a value in each field.
    fn full() -> NewJob {
        let route = Route {
            script_type: "pay".parse().unwrap(),
            group: Some("io".parse().unwrap()),
            instance: Some("one".parse().unwrap()),
            priority: Priority::High,
        };
        NewJob {
            id: "j1".parse().unwrap(),
            route,
            script: "{\"order\":7}".to_owned(),
            input: Some(vec![0, 159, 255]),
            caller_id: "me".to_owned(),
            context_id: "here".to_owned(),
            timeout: 5,
            retries: 3,
            concurrent: false,
            env_vars: [("A".to_owned(), "b".to_owned())].into_iter().collect(),
            log_path: Some("x.log".to_owned()),
            reply: true,
            depends_on: vec!["j0".parse().unwrap()],
            input_names: [("rows".to_owned(), "j0".parse().unwrap())].into(),
            on_failure: OnFailure::Continue,
            prerequisite_timeout: Some(9),
            fallback: Some(Fallback::Type),
            backoff_ms: Some(250),
            start_timeout_ms: Some(60_000),
            when: Some(When::At(1_800_000_000_000)),
            key: Some("tenant".to_owned()),
            sandbox: "strict".parse().unwrap(),
            tags: [crate::job::Tag::from_str("web").unwrap()].into(),
            unique: Some(Unique {
                name: "pay-7".to_owned(),
                until: Until::For(1000),
                policy: OnDuplicate::Refuse,
            }),
            trace: TraceContext::of_span(7, 8, true),
            request_digest: Some("d".to_owned()),
            batch: Some(Membership {
                batch: "b1".parse().unwrap(),
                by: None,
            }),
            spread: None,
        }
    }

    #[test]
    fn a_job_is_read_as_written() {
        let route = Route::to("osis".parse().unwrap());
        let mut plain = NewJob::new("j1".parse().unwrap(), route, "1");
        for when in [None, Some(When::In(10)), Some(When::At(11))] {
            plain.when = when;
            let read = NewJob::from_json(plain.id.clone(), &plain.to_json());
            assert_eq!(read.unwrap(), plain);
        }
        let full = full();
        let read = NewJob::from_json(full.id.clone(), &full.to_json());
        assert_eq!(read.unwrap(), full);
    }

    #[test]
    fn other_texts_are_refused_by_name() {
        let read = |text: &str| NewJob::from_json("j1".parse().unwrap(), text);
        let fault = |text: &str| read(text).unwrap_err().to_string();
        let text = full().to_json();
        assert!(fault("[]").contains("job j1"), "{}", fault("[]"));
        let later = text.replacen('{', "{\"sooner\":1,", 1);
        assert!(fault(&later).contains("`sooner`"), "{}", fault(&later));
        for (from, to, part) in [
            ("\"continue\"", "\"stop\"", "stop"),
            ("\"type\":\"pay\"", "\"type\":\"p y\"", "p y"),
            ("AJ//", "AJ/?", "input"),
            ("\"00-", "\"0-", "traceparent"),
        ] {
            assert!(text.contains(from), "{text}");
            let fault = fault(&text.replace(from, to));
            assert!(fault.contains(part), "{fault}");
        }
    }
}
