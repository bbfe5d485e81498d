//! A job in JSON, the same in files of lines, the API, batches, schedules and children.

mod values;
mod write;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::job::{
    Membership, NewJob, OnDuplicate, OnFailure, Tag, Unique, Until, When, is_input_name, limits,
};
use crate::name::{BatchId, Group, Instance, JobId, RoutingKey, ScriptType};
use crate::param::{Span, Word};
use crate::route::Fallback;
use crate::route::topic::Topic;
use crate::schedule::wall_time::{Direction, WallTime};
use crate::schedule::zone::Zone;
use crate::time;

pub use values::{InputValue, NamedSpan, PriorityWord, SandboxSpec};

/// A job to be enqueued. Durations are seconds as a number, or a text with units, such as `500ms`, `90s`, `10m` or `1h30m`.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct JobSpec {
    /// Type of the script: `osis`, `sal`, `v`, `python`, `exec`, or the name of a handler.
    #[serde(rename = "type")]
    pub script_type: Option<Word<ScriptType>>,
    /// Text of the script, or the text for a handler. Give this or `payload`.
    pub script: Option<String>,
    /// JSON for a handler.
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Value>"))]
    pub payload: Option<Box<RawValue>>,
    /// Id of the job; a UUID if none is given. In a context its number, and the next free one if none is given. The same id
    /// with the same parameters adds no second job.
    pub id: Option<String>,
    /// Group of workers.
    pub group: Option<Word<Group>>,
    /// Routing key: workers with this key run the job. Give this or `group`.
    pub route: Option<Word<RoutingKey>>,
    /// Topic, for the bindings of the client or server that enqueues the job.
    pub topic: Option<Word<Topic>>,
    /// One worker of the group.
    pub instance: Option<Word<Instance>>,
    /// Queue to use if that worker is not alive: `group` or `type`.
    pub fallback: Option<Word<Fallback>>,
    /// `high`, `normal` or `low`; or 0, 1 or 2.
    pub priority: Option<PriorityWord>,
    /// Input of the script: a text is given as it is, another value as JSON.
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Value>"))]
    pub input: Option<InputValue>,
    /// Environment of the script.
    pub env: BTreeMap<String, String>,
    /// Longest time of one run, rounded up to whole seconds: at most 7 days. Default: 30 minutes.
    pub timeout: Option<Span>,
    /// Number of retries: N allow N + 1 runs. At most 100. Default: 0.
    pub retries: Option<u32>,
    /// First pause before a retry; it doubles. At most one hour. Default: 1 s.
    pub backoff: Option<Span>,
    /// Time within which a worker has to begin the job; after that it fails. At most ten years.
    pub start_timeout: Option<Span>,
    /// Sandbox that the job asks for; it can only be stricter than that of its queue and its worker. A text is its profile.
    pub sandbox: Option<SandboxSpec>,
    /// Labels, at most 10.
    pub tags: Vec<Word<Tag>>,
    /// Jobs that must finish first, each as `ID`, or `NAME=ID` with the name of its result. At most 1,000.
    pub depends_on: Vec<String>,
    /// Rule for the failure of one of them: `fail` or `continue`.
    pub on_failure: Option<Word<OnFailure>>,
    /// Longest wait for them, rounded up to whole seconds: at most 7 days. Default: no limit.
    pub prerequisite_timeout: Option<Span>,
    /// True if the job runs alone on its worker.
    pub exclusive: Option<bool>,
    /// Id of the caller, as other systems record it.
    pub caller: Option<String>,
    /// Id of the caller's context, as other systems record it.
    #[serde(alias = "context_id")]
    pub caller_context: Option<String>,
    /// Log file on the worker's host.
    pub log_path: Option<String>,
    /// Batch of the job.
    pub batch: Option<Word<BatchId>>,
    /// Start time: RFC 3339, `2026-01-31 12:00` or `tomorrow 9:00` in the zone `tz`, or `+10m` from now. Give this or `delay`.
    pub at: Option<String>,
    /// Time zone of `at`, an IANA name.
    pub tz: Option<Word<Zone>>,
    /// Time before the start. At most ten years.
    #[serde(alias = "in")]
    pub delay: Option<Span>,
    /// Concurrency key, such as a tenant.
    pub key: Option<String>,
    /// Unique name: no other job of the same type and name is accepted until this one has ended.
    pub unique: Option<String>,
    /// Time for which the unique name is kept instead.
    pub unique_for: Option<Span>,
    /// Event until which it is kept: `done` or `started`. Default: `done`.
    pub unique_until: Option<Word<Until>>,
    /// Rule for a unique name in use: `keep` the first job, `refuse` the new one, or `replace` a waiting one. Default: `keep`.
    pub on_duplicate: Option<Word<OnDuplicate>>,
    /// `NAME=DURATION`: the job runs when no other job of this name has arrived for this time; the last one runs.
    pub debounce: Option<Word<NamedSpan>>,
    /// `NAME=DURATION`: only the first job of this name within this time is stored.
    pub throttle: Option<Word<NamedSpan>>,
}

/// Place in which a job is enqueued: it gives the meaning of ids and times.
pub struct SpecPlace<'a> {
    /// Reads the id of the job.
    pub id: &'a dyn Fn(&str) -> Result<JobId, String>,
    /// Reads the id of a prerequisite.
    pub awaited: &'a dyn Fn(&str) -> Result<JobId, String>,
    /// Time of this host, in milliseconds since 1970.
    pub now_ms: u64,
    /// Zone of times without one.
    pub zone: &'a Zone,
}

/// A value of a job in JSON is wrong. The text begins with the name of the field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidSpec(pub String);

impl JobSpec {
    /// Returns the text of the script, or of the payload; none if neither is given.
    ///
    /// # Errors
    /// Both are given.
    pub fn text(&self) -> Result<Option<&str>, InvalidSpec> {
        let payload = self.payload.as_deref().map(RawValue::get);
        let both = [
            ("script", self.script.is_some()),
            ("payload", payload.is_some()),
        ];
        one_of(both)?;
        Ok(self.script.as_deref().or(payload))
    }

    /// Sets what is given in a job, and leaves the rest. The topic is for the caller.
    ///
    /// # Errors
    /// A value is wrong, or two exclude each other.
    pub fn apply(self, job: &mut NewJob, place: &SpecPlace<'_>) -> Result<(), InvalidSpec> {
        if let Some(text) = self.text()? {
            job.script = text.to_owned();
        }
        one_of([
            ("group", self.group.is_some()),
            ("route", self.route.is_some()),
        ])?;
        self.check_spans()?;
        self.set_time(job, place)?;
        self.set_unique(job)?;
        set(&mut job.route.script_type, self.script_type.map(|it| it.0));
        if let Some(id) = &self.id {
            job.id = of("id", (place.id)(id))?;
        }
        if let Some(group) = self.group {
            job.route.group = Some(group.0);
        }
        if let Some(route) = self.route {
            job.route = job.route.clone().via(&route.0);
        }
        set_some(&mut job.route.instance, self.instance.map(|it| it.0));
        set_some(&mut job.fallback, self.fallback.map(|it| it.0));
        set(&mut job.route.priority, self.priority.map(|it| it.0));
        set_some(&mut job.input, self.input.map(|it| it.0));
        job.env_vars.extend(self.env);
        set(&mut job.timeout, self.timeout.map(Span::seconds));
        set(&mut job.retries, self.retries);
        set_some(&mut job.backoff_ms, self.backoff.map(Span::millis));
        set_some(
            &mut job.start_timeout_ms,
            self.start_timeout.map(Span::millis),
        );
        set(&mut job.sandbox, self.sandbox.map(|it| it.0));
        job.tags.extend(self.tags.into_iter().map(|tag| tag.0));
        for text in &self.depends_on {
            let named = text.split_once('=').filter(|(name, _)| is_input_name(name));
            let (name, id) = named.map_or((None, text.as_str()), |(name, id)| (Some(name), id));
            let id = of("depends_on", (place.awaited)(id))?;
            if let Some(name) = name {
                job.input_names.insert(name.to_owned(), id.clone());
            }
            job.depends_on.push(id);
        }
        set(&mut job.on_failure, self.on_failure.map(|it| it.0));
        set_some(
            &mut job.prerequisite_timeout,
            self.prerequisite_timeout.map(Span::seconds),
        );
        set(&mut job.concurrent, self.exclusive.map(|alone| !alone));
        set(&mut job.caller_id, self.caller);
        set(&mut job.context_id, self.caller_context);
        set_some(&mut job.log_path, self.log_path);
        let batch = self.batch.map(|it| Membership {
            batch: it.0,
            by: None,
        });
        set_some(&mut job.batch, batch);
        set_some(&mut job.key, self.key);
        Ok(())
    }

    /// Checks that each duration is within its limits, which the error names with the field.
    fn check_spans(&self) -> Result<(), InvalidSpec> {
        let (second, most) = (1000, limits::MAX_TIMEOUT * 1000);
        for (name, span, least, most) in [
            ("timeout", self.timeout, second, most),
            (
                "prerequisite_timeout",
                self.prerequisite_timeout,
                second,
                most,
            ),
            ("backoff", self.backoff, 0, limits::MAX_BACKOFF_MS),
            ("start_timeout", self.start_timeout, 1, limits::MAX_DELAY_MS),
            ("delay", self.delay, 0, limits::MAX_DELAY_MS),
            ("unique_for", self.unique_for, 1, limits::MAX_DELAY_MS),
        ] {
            let is_possible = |span: Span| span.millis() >= least.min(1) && span.millis() <= most;
            if span.is_some_and(|span| !is_possible(span)) {
                let (least, most) = (least as f64 / 1000.0, most / 1000);
                let why = format!("{name}: give {least} to {most} seconds");
                return Err(InvalidSpec(why));
            }
        }
        Ok(())
    }

    fn set_time(&self, job: &mut NewJob, place: &SpecPlace<'_>) -> Result<(), InvalidSpec> {
        one_of([
            ("at", self.at.is_some()),
            ("delay", self.delay.is_some()),
            ("debounce", self.debounce.is_some()),
        ])?;
        let zone = self.tz.as_ref().map_or(place.zone, |zone| &zone.0);
        let at = self.at.as_deref();
        let at = at
            .map(|text| of("at", when(text, place.now_ms, zone)))
            .transpose()?;
        let pause = self.debounce.as_ref().map(|it| it.0.span);
        let delay = self.delay.or(pause).map(|span| When::In(span.millis()));
        set_some(&mut job.when, at.or(delay));
        Ok(())
    }

    fn set_unique(&self, job: &mut NewJob) -> Result<(), InvalidSpec> {
        one_of([
            ("unique", self.unique.is_some()),
            ("debounce", self.debounce.is_some()),
            ("throttle", self.throttle.is_some()),
        ])?;
        let of_unique = [
            ("unique_for", self.unique_for.is_some()),
            ("unique_until", self.unique_until.is_some()),
            ("on_duplicate", self.on_duplicate.is_some()),
        ];
        if let (None, Some((name, _))) = (&self.unique, of_unique.iter().find(|it| it.1)) {
            return Err(InvalidSpec(format!("{name}: give `unique` too")));
        }
        one_of([of_unique[0], of_unique[1]])?;
        let until = match (self.unique_for, &self.unique_until) {
            (Some(span), _) => Until::For(span.millis()),
            (None, until) => until.as_ref().map(|it| it.0).unwrap_or_default(),
        };
        let policy = self
            .on_duplicate
            .as_ref()
            .map(|it| it.0)
            .unwrap_or_default();
        let name = self.unique.clone();
        let unique = name.map(|name| Unique {
            name,
            until,
            policy,
        });
        let debounce = self
            .debounce
            .as_ref()
            .map(|it| Unique::debounce(&it.0.name));
        let throttle = self.throttle.as_ref();
        let throttle = throttle.map(|it| Unique::throttle(&it.0.name, it.0.span.millis()));
        set_some(&mut job.unique, unique.or(debounce).or(throttle));
        Ok(())
    }
}

fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

fn set_some<T>(place: &mut Option<T>, value: Option<T>) {
    if value.is_some() {
        *place = value;
    }
}

/// Adds the name of the field to its error.
fn of<T>(name: &str, read: Result<T, String>) -> Result<T, InvalidSpec> {
    read.map_err(|fault| InvalidSpec(format!("{name}: {fault}")))
}

/// Refuses two fields that exclude each other.
fn one_of<const N: usize>(fields: [(&str, bool); N]) -> Result<(), InvalidSpec> {
    let mut given = fields.iter().filter(|(_, given)| *given);
    match (given.next(), given.next()) {
        (Some((one, _)), Some((other, _))) => {
            let why = format!("{one} and {other}: give one of them");
            Err(InvalidSpec(why))
        }
        _ => Ok(()),
    }
}

/// Reads a start time.
fn when(text: &str, now_ms: u64, zone: &Zone) -> Result<When, String> {
    if let Some(delay) = text.strip_prefix('+').and_then(time::parse_span) {
        return Ok(When::In(delay));
    }
    let wall = || {
        let time: WallTime = text.parse().ok()?;
        time.ms(now_ms, zone, Direction::Next)
    };
    match time::parse_instant(text).or_else(wall) {
        Some(at) if at.saturating_add(time::LATE_MS) < now_ms => Err(format!(
            "{text} is past: leave it out to run the job at once"
        )),
        Some(at) => Ok(When::At(at)),
        None => Err(format!(
            "{text:?} is no time from 1970 to 9999: write RFC 3339, as 2026-01-31T12:00:00Z, or '2026-01-31 12:00', \
             'tomorrow 9:00', or +10m from now"
        )),
    }
}

#[cfg(test)]
mod tests;
