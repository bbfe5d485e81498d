//! Conversion between jobs and their records in both layouts: Hero's with the fields of [`crate::job`], and contexts'
//! with the fields of [`crate::context`]. Both are read as one type of job.

use std::borrow::Cow;

use crate::context::field as context_field;
use crate::job::{Job, NewJob, field, text};
use crate::keys::context::{ContextKeys, JobKey, Prerequisite};
use crate::keys::hero::JobKeys;
use crate::time::{exact, iso, parse_iso};
use serde_json::{Map, Value};

/// Lists of the fields that every record of Meshwork's clients has. Scripts contain the same lists as constants: each
/// writes and reads the values in this order.
#[derive(Debug)]
pub struct FieldLists {
    /// Fields whose values the client passes, without names.
    pub values: &'static [&'static str],
    /// Fields whose values a claim returns without names: those that the script sets, then those of the client. Without
    /// id and status.
    pub claimed: &'static [&'static str],
}

/// Fields that the script sets, besides id and status.
const HERO_SET: [&str; 3] = [field::CREATED_AT, field::UPDATED_AT, field::SCRIPT_TYPE];
const CONTEXT_SET: [&str; 5] = [
    field::CREATED_AT,
    field::UPDATED_AT,
    field::SCRIPT_TYPE,
    field::CREATED_MS,
    field::UPDATED_MS,
];
const HERO_VALUES: [&str; 8] = [
    field::CALLER_ID,
    field::WORKER_ID,
    field::CONTEXT_ID,
    field::SCRIPT,
    field::TIMEOUT,
    field::RETRIES,
    field::CONCURRENT,
    field::REPLY,
];
/// The id is among them, since its value is not the job's key.
const CONTEXT_VALUES: [&str; 11] = [
    field::ID,
    field::CALLER_ID,
    field::CONTEXT_ID,
    field::SCRIPT,
    field::TIMEOUT,
    field::RETRIES,
    field::ENV_VARS,
    context_field::RESULT,
    context_field::PREREQUISITES,
    context_field::DEPENDENDS,
    field::REPLY,
];

/// The lists of Hero's layout.
pub const HERO: FieldLists = FieldLists {
    values: &HERO_VALUES,
    claimed: &claimed::<3, 8, 11>(HERO_SET, HERO_VALUES, 0),
};
/// The lists of contexts.
pub const CONTEXT: FieldLists = FieldLists {
    values: &CONTEXT_VALUES,
    claimed: &claimed::<5, 11, 15>(CONTEXT_SET, CONTEXT_VALUES, 1),
};

/// Returns the fields of the script and those of the client, without the first `skipped`.
const fn claimed<const SET: usize, const VALUES: usize, const ALL: usize>(
    set: [&'static str; SET],
    values: [&'static str; VALUES],
    skipped: usize,
) -> [&'static str; ALL] {
    let mut all = [""; ALL];
    let mut at = 0;
    while at < ALL {
        all[at] = match at.checked_sub(SET) {
            Some(value) => values[value + skipped],
            None => set[at],
        };
        at += 1;
    }
    all
}

/// Item of a result that is not a map.
const ITEM: &str = "result";
/// Item with the reason of a failure.
const FAULT: &str = "error";

/// Returns the lists of fields of this layout.
#[must_use]
pub const fn field_lists(keys: &JobKeys) -> &'static FieldLists {
    match keys {
        JobKeys::Hero(_) => &HERO,
        JobKeys::Context(..) => &CONTEXT,
    }
}

/// Reads a record from a hash. Names are texts of any kind, so that constant names need no copy.
#[must_use]
pub fn job<N: AsRef<str> + From<&'static str>>(
    keys: &JobKeys,
    id: impl Into<String>,
    fields: impl Iterator<Item = (N, Vec<u8>)>,
) -> Job {
    let id = id.into();
    match keys {
        JobKeys::Hero(_) => Job::read(id, fields),
        JobKeys::Context(context, _) => {
            let fields = translated(context, &id, fields);
            Job::read(id, fields)
        }
    }
}

/// Parses a time of a record to milliseconds since 1970. `ms`: the same time as a context's record has it in milliseconds.
#[must_use]
pub fn time(keys: &JobKeys, text: &str, ms: Option<&str>) -> Option<u64> {
    match keys {
        JobKeys::Hero(_) => parse_iso(text),
        JobKeys::Context(..) => {
            let ms = ms.and_then(|ms| ms.parse().ok());
            Some(exact(text.parse().ok()?, ms))
        }
    }
}

/// Returns the name of a field in records of this layout.
#[must_use]
pub fn field_of(keys: &JobKeys, name: &'static str) -> &'static str {
    match (keys, name) {
        (JobKeys::Context(..), field::OUTPUT) => context_field::RESULT,
        (JobKeys::Context(..), field::DEPENDENCIES) => context_field::DEPENDENDS,
        _ => name,
    }
}

/// Converts the fields of a context's record to those of Hero.
fn translated<N: AsRef<str> + From<&'static str>>(
    keys: &ContextKeys,
    id: &str,
    fields: impl Iterator<Item = (N, Vec<u8>)>,
) -> Vec<(N, Vec<u8>)> {
    let mut after = Vec::new();
    let mut out = Vec::new();
    let fields: Vec<_> = fields.collect();
    let number = |name: &str| {
        let (_, value) = fields.iter().find(|(known, _)| known.as_ref() == name)?;
        std::str::from_utf8(value).ok()?.parse::<u64>().ok()
    };
    let time = |seconds, ms: &[&str]| {
        let ms = ms.iter().filter_map(|name| number(name));
        Some(exact(number(seconds)?, ms))
    };
    let created = time(field::CREATED_AT, &[field::CREATED_MS]);
    // A plain runner writes only seconds: its end is not before the start.
    let ms = [field::UPDATED_MS, field::STARTED, field::CREATED_MS];
    let updated = time(field::UPDATED_AT, &ms);
    for (name, value) in fields {
        match name.as_ref() {
            context_field::RESULT => {
                out.extend(plain_output(value).map(|output| (field::OUTPUT.into(), output)));
            }
            context_field::DEPENDENDS => {
                let numbers: Vec<u32> = serde_json::from_slice(&value).unwrap_or_default();
                let caller = keys.parse_job(id.as_bytes()).map(|key| key.caller);
                let key = |id| {
                    caller.as_ref().map(|caller| JobKey {
                        caller: *caller,
                        id,
                    })
                };
                let jobs = numbers.into_iter().filter_map(|id| key(id).ok());
                after.extend(jobs.map(|key| keys.job(key)));
            }
            context_field::PREREQUISITES => {
                let texts: Vec<String> = serde_json::from_slice(&value).unwrap_or_default();
                after.extend(texts);
            }
            field::CREATED_AT | field::UPDATED_AT => {
                let is_created = name.as_ref() == field::CREATED_AT;
                let ms = if is_created { created } else { updated };
                out.push((name, ms.map_or_else(|| text(value), iso).into_bytes()));
            }
            field::CREATED_MS | field::UPDATED_MS => {}
            _ => out.push((name, value)),
        }
    }
    if !after.is_empty() {
        let after = Value::from(after).to_string();
        out.push((field::PREREQUISITES.into(), after.into_bytes()));
    }
    out
}

/// Returns the output in a context's result: its only item, or the map as JSON. A plain runner may have written a
/// value that is not a map; that value is the output.
#[must_use]
pub fn plain_output(value: Vec<u8>) -> Option<Vec<u8>> {
    let Ok(Value::Object(map)) = serde_json::from_slice(&value) else {
        return Some(value).filter(|value| !value.is_empty());
    };
    match (map.len(), map.get(ITEM), map.get(FAULT)) {
        (0, _, _) | (1, _, Some(_)) => None,
        (1, Some(Value::String(output)), _) => Some(output.clone().into_bytes()),
        _ => Some(value),
    }
}

/// Returns the output from the value of a record's field.
#[must_use]
pub fn read_output(keys: &JobKeys, value: Vec<u8>) -> Option<Vec<u8>> {
    match keys {
        JobKeys::Hero(_) => Some(value),
        JobKeys::Context(..) => plain_output(value),
    }
}

/// Returns the output of a run as stored in the record. In a context it is a map of texts. An output that is no such
/// map, or that looks like one with the item `result` or `error` alone, is the item `result` unchanged.
#[must_use]
pub fn output<'a>(keys: &JobKeys, output: &'a [u8]) -> Cow<'a, [u8]> {
    if matches!(keys, JobKeys::Hero(_)) {
        return Cow::Borrowed(output);
    }
    let item = |map: &Map<String, Value>| map.contains_key(ITEM) || map.contains_key(FAULT);
    let map = match serde_json::from_slice(output) {
        Ok(Value::Object(map))
            if map.values().all(Value::is_string)
                && !map.is_empty()
                && !(map.len() == 1 && item(&map)) =>
        {
            map
        }
        _ => Map::from_iter([(ITEM.to_owned(), String::from_utf8_lossy(output).into())]),
    };
    Cow::Owned(Value::Object(map).to_string().into_bytes())
}

/// Returns the prerequisites of a new job, in the form for scripts.
#[must_use]
pub fn prerequisites(keys: &JobKeys, job: &NewJob) -> Vec<String> {
    let JobKeys::Context(context, _) = keys else {
        let ids = job.prerequisites().into_iter();
        return ids.map(ToString::to_string).collect();
    };
    let ids = job.prerequisites().into_iter();
    ids.map(|id| match context.parse_prerequisite(id.as_str()) {
        Ok(Prerequisite::Job(key)) => context.job(key),
        Ok(Prerequisite::Message(key)) => context.message(key),
        Ok(Prerequisite::Flow(key)) => context.flow(key),
        Ok(Prerequisite::Gate(_)) | Err(_) => id.to_string(),
    })
    .collect()
}

/// Returns the values that every new job has, in the order of [`FieldLists::values`].
#[must_use]
pub fn values(keys: &JobKeys, job: &NewJob) -> Vec<Vec<u8>> {
    let JobKeys::Context(context, _) = keys else {
        return hero_values(job).into();
    };
    let Ok(key) = context.parse_job(job.id.as_str().as_bytes()) else {
        return Vec::new(); // the broker has refused it
    };
    let (mut numbers, mut texts) = (Vec::new(), Vec::new());
    for id in prerequisites(keys, job) {
        match context.parse_job(id.as_bytes()) {
            Ok(other) if other.caller == key.caller => numbers.push(other.id),
            _ => texts.push(id),
        }
    }
    let env = job.env_vars.iter();
    let env: Map<String, Value> = env
        .map(|(name, value)| (name.clone(), value.as_str().into()))
        .collect();
    [
        key.id.to_string(),
        key.caller.to_string(),
        context.context().to_string(),
        job.script.clone(),
        job.timeout.to_string(),
        job.retries.to_string(),
        Value::Object(env).to_string(),
        "{}".to_owned(),
        Value::from(texts).to_string(),
        Value::from(numbers).to_string(),
        u8::from(job.reply).to_string(),
    ]
    .map(String::into_bytes)
    .into()
}

fn hero_values(job: &NewJob) -> [Vec<u8>; HERO_VALUES.len()] {
    let worker = job.route.instance.as_ref();
    [
        job.caller_id.clone().into(),
        worker.map_or("", |instance| instance.as_str()).into(),
        job.context_id.clone().into(),
        job.script.clone().into(),
        job.timeout.to_string().into(),
        job.retries.to_string().into(),
        job.concurrent.to_string().into(),
        u8::from(job.reply).to_string().into(),
    ]
}

/// Returns the fields that only some new jobs have.
#[must_use]
pub fn options(keys: &JobKeys, job: &NewJob) -> Vec<(&'static str, Vec<u8>)> {
    let mut options = job.options();
    if matches!(keys, JobKeys::Hero(_)) {
        return options;
    }
    let among_values = [field::ENV_VARS, field::PREREQUISITES, field::DEPENDENCIES];
    options.retain(|(name, _)| !among_values.contains(name));
    if !job.input_names.is_empty() {
        let keys = job
            .prerequisites()
            .into_iter()
            .zip(prerequisites(keys, job));
        let keys: Vec<_> = keys.collect();
        let key = |id| {
            keys.iter()
                .find(|(of, _)| *of == id)
                .map(|(_, key)| key.as_str())
        };
        let names = job.input_names.iter();
        let names: Map<String, Value> = names
            .filter_map(|(name, id)| Some((name.clone(), key(id)?.into())))
            .collect();
        options.retain(|(name, _)| *name != field::INPUT_NAMES);
        options.push((
            field::INPUT_NAMES,
            Value::Object(names).to_string().into_bytes(),
        ));
    }
    if !job.concurrent {
        options.push((field::CONCURRENT, b"false".to_vec()));
    }
    options
}

#[cfg(test)]
mod tests {
    use crate::keys::context::{ContextId, ContextLayout};
    use crate::name::JobId;
    use crate::route::Route;

    use super::*;

    fn keys() -> JobKeys {
        let context = ContextId::new(7).unwrap();
        JobKeys::of_context(ContextKeys::new(context, ContextLayout::Prefix))
    }

    fn new(id: &str) -> NewJob {
        let route = Route::to("osis".parse().unwrap());
        NewJob::new(JobId::foreign(id.to_owned()), route, "1")
    }

    #[test]
    fn a_plain_output_is_an_item_and_comes_back() {
        for (out, stored) in [
            ("42", r#"{"result":"42"}"#),
            ("", r#"{"result":""}"#),
            (r#"{"a":"1","b":"x"}"#, r#"{"a":"1","b":"x"}"#),
            // A number as a text would come back as another value.
            (r#"{"a":1}"#, r#"{"result":"{\"a\":1}"}"#),
            (r#"{"result":"x"}"#, r#"{"result":"{\"result\":\"x\"}"}"#),
            (r#"{"error":"x"}"#, r#"{"result":"{\"error\":\"x\"}"}"#),
        ] {
            let written = output(&keys(), out.as_bytes());
            assert_eq!(&*written, stored.as_bytes());
        }
        let back = |value: &str| plain_output(value.into()).map(text);
        assert_eq!(back(r#"{"result":"42"}"#).as_deref(), Some("42"));
        assert_eq!(back(r#"{"a":"1"}"#).as_deref(), Some(r#"{"a":"1"}"#));
        assert_eq!(back("done").as_deref(), Some("done"));
        assert_eq!(
            (back("{}"), back(r#"{"error":"boom"}"#), back("")),
            (None, None, None)
        );
    }

    #[test]
    fn times_are_exact_unless_another_client_has_written_seconds() {
        let read = |fields: &[(&str, &str)]| {
            let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).into());
            let fields = fields.iter().map(owned);
            let job = super::job(&keys(), "{ctx:7}:job:12:3", fields);
            (job.created_at, job.updated_at)
        };
        let (exact, whole) = ("2023-11-14T22:13:20.123Z", "2023-11-14T22:13:20.000Z");
        let created = ("created_at", "1700000000");
        let updated = ("updated_at", "1700000000");
        let both = [
            created,
            updated,
            ("mw_created_ms", "1700000000123"),
            ("mw_updated_ms", "1700000000123"),
        ];
        assert_eq!(read(&both), (exact.to_owned(), exact.to_owned()));
        assert_eq!(
            read(&[created, updated]),
            (whole.to_owned(), whole.to_owned())
        );
        // The exact times are those of before.
        let old = ("mw_updated_ms", "1699999999999");
        assert_eq!(read(&[updated, old]).1, whole);
        // An end is not before the start, nor a change before the creation.
        let started = ("mw_started", "1700000000123");
        assert_eq!(read(&[updated, old, started]).1, exact);
        assert_eq!(
            read(&[updated, ("mw_created_ms", "1700000000123")]).1,
            exact
        );
        for odd in ["soon", "-1", ""] {
            assert_eq!(read(&[("updated_at", odd), started]).1, odd);
        }
    }

    #[test]
    fn what_it_waits_for_is_told_apart() {
        let mut job = new("{ctx:7}:job:12:3");
        let after = ["job:12:1", "{ctx:7}:job:13:2", "approved"];
        job.depends_on = after.map(|id| JobId::foreign(id.to_owned())).into();
        let values: Vec<_> = values(&keys(), &job).into_iter().map(text).collect();
        assert_eq!(values[8..10], [r#"["{ctx:7}:job:13:2","approved"]"#, "[1]"]);
        assert_eq!(values.len(), CONTEXT.values.len());
        let fields = [("prerequisites", &values[8]), ("dependends", &values[9])];
        let fields = fields.map(|(name, value)| (name.to_owned(), value.clone().into_bytes()));
        let read = super::job(&keys(), job.id.as_str(), fields.into_iter());
        let mut waits = read.depends_on;
        waits.sort();
        assert_eq!(waits, ["approved", "{ctx:7}:job:12:1", "{ctx:7}:job:13:2"]);
    }
}
