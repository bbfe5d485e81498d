//! Stored form of a schedule: JSON, with the input stored separately. Fields of later releases are kept.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Schedule;
use super::timing::{Recurrence, Timing};
use crate::job::{InvalidTag, NewJob, Unique, UnknownPolicy, Until};
use crate::name::{JobId, ScheduleName};
use crate::route::{Fallback, Priority, Route};
use crate::sandbox::InvalidSandbox;

/// Unknown fields of the schedule, and of its job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Rest {
    schedule: Map<String, Value>,
    job: Map<String, Value>,
}

/// A record that is not a schedule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the record of schedule {name} cannot be read: {why}")]
pub struct Unreadable {
    name: ScheduleName,
    why: String,
}

impl Unreadable {
    /// Returns the error of a schedule whose key has another type.
    #[must_use]
    pub fn other_type(name: ScheduleName) -> Self {
        let why = "its key has another type".to_owned();
        Self { name, why }
    }
}

#[derive(Serialize, Deserialize)]
struct Stored {
    rhythm: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    zone: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    start: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end: Option<u64>,
    catch_up: String,
    overlap: String,
    job: StoredJob,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Serialize, Deserialize)]
struct StoredJob {
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
    #[serde(flatten)]
    rest: Map<String, Value>,
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

fn yes() -> bool {
    true
}

impl Schedule {
    /// Returns the record without the input of the job.
    #[must_use]
    pub fn encode(&self) -> String {
        let timing = &self.timing;
        let stored = Stored {
            rhythm: timing.rhythm.to_string(),
            zone: (timing.zone != Default::default()).then(|| timing.zone.to_string()),
            start: timing.start,
            end: timing.end,
            catch_up: self.catch_up.to_string(),
            overlap: self.overlap.to_string(),
            job: StoredJob::new(&self.job, self.rest.job.clone()),
            rest: self.rest.schedule.clone(),
        };
        // Strings and numbers always serialize.
        serde_json::to_string(&stored).unwrap_or_default()
    }

    /// Returns the input of its job.
    #[must_use]
    pub fn input(&self) -> Option<&[u8]> {
        self.job.input.as_deref()
    }

    /// Reads a record of [`Schedule::encode`].
    ///
    /// # Errors
    /// The bytes are no such record, or a later release wrote it in another format.
    pub fn decode(
        name: &ScheduleName,
        record: &[u8],
        input: Option<Vec<u8>>,
    ) -> Result<Self, Unreadable> {
        read(name, record, input).map_err(|why| Unreadable {
            name: name.clone(),
            why,
        })
    }
}

fn read(name: &ScheduleName, record: &[u8], input: Option<Vec<u8>>) -> Result<Schedule, String> {
    let said = |error: &dyn std::fmt::Display| error.to_string();
    let mut stored: Stored = serde_json::from_slice(record).map_err(|error| said(&error))?;
    let rhythm: Recurrence = stored.rhythm.parse().map_err(|error| said(&error))?;
    let zone = stored.zone.as_deref().unwrap_or("UTC");
    let timing = Timing {
        rhythm,
        zone: zone.parse().map_err(|error| said(&error))?,
        start: stored.start,
        end: stored.end,
    };
    let rest = Rest {
        schedule: std::mem::take(&mut stored.rest),
        job: std::mem::take(&mut stored.job.rest),
    };
    let mut job = stored.job.read(name)?;
    job.input = input;
    Ok(Schedule {
        name: name.clone(),
        timing,
        catch_up: stored.catch_up.parse().map_err(|error| said(&error))?,
        overlap: stored.overlap.parse().map_err(|error| said(&error))?,
        job,
        rest,
    })
}

impl StoredJob {
    fn new(job: &NewJob, rest: Map<String, Value>) -> Self {
        let route = &job.route;
        let fallback = job.fallback.map(|fallback| match fallback {
            Fallback::Group => "group".to_owned(),
            Fallback::Type => "type".to_owned(),
        });
        Self {
            script_type: route.script_type.to_string(),
            group: route.group.as_ref().map(ToString::to_string),
            instance: route.instance.as_ref().map(ToString::to_string),
            fallback,
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

    fn read(self, name: &ScheduleName) -> Result<NewJob, String> {
        fn word<T: std::str::FromStr<Err: std::fmt::Display>>(
            text: Option<String>,
        ) -> Result<Option<T>, String> {
            text.map(|text| text.parse().map_err(|error: T::Err| error.to_string()))
                .transpose()
        }
        let route = Route {
            script_type: self
                .script_type
                .parse()
                .map_err(|error| format!("{error}"))?,
            group: word(self.group)?,
            instance: word(self.instance)?,
            priority: word(self.priority)?.unwrap_or_default(),
        };
        let mut job = NewJob::new(JobId::foreign(name.to_string()), route, self.script);
        job.fallback = match self.fallback.as_deref() {
            None => None,
            Some("group") => Some(Fallback::Group),
            Some("type") => Some(Fallback::Type),
            Some(other) => return Err(format!("{other:?} is no fallback")),
        };
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
