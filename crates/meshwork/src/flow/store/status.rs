//! Status of a flow, for people and programs.

use std::collections::{BTreeMap, BTreeSet};

use meshwork_broker::flow::{FlowFields, Flows, MAX_MOVES};
use meshwork_flow::graph::Bar;
use meshwork_flow::run::{End, Phase};
use meshwork_model::flow::Plan;
use meshwork_model::keys::context::{FlowId, JobKey};
use meshwork_model::time;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::step::JSON_OUTPUTS;
use super::view::{self, View};
use super::{FlowError, is_final, output};

/// A word of [`WORDS`]. An alias, since serde would borrow a reference from the JSON.
type Word = &'static str;

/// Words for the status of a job.
const WORDS: [Word; 7] = [
    "waiting", "ready", "started", "finished", "error", "skipped", "stopped",
];

/// Reads a word. One of a later release counts as `waiting`.
fn read_word<'de, D: Deserializer<'de>>(from: D) -> Result<Word, D::Error> {
    let text = String::deserialize(from)?;
    let known = WORDS.into_iter().find(|word| *word == text);
    Ok(known.unwrap_or(WORDS[0]))
}

/// Status of a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowView {
    /// Its number.
    #[cfg_attr(feature = "schema", schemars(with = "u32"))]
    pub id: FlowId,
    /// Its name.
    pub name: String,
    /// `dispatched`, `started`, `finished` or `error`.
    pub status: String,
    /// The reason why it did not finish.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The actor who submitted it.
    pub caller: u32,
    /// Time of its submission (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    /// Time of its end (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// Outputs of the flow, if it finished: as JSON where the result of a job or an expression has made them, else as text.
    pub outputs: BTreeMap<String, Value>,
    /// The same outputs as texts, as the record has them.
    #[serde(skip)]
    pub result: BTreeMap<String, String>,
    /// Its jobs in the order of the plan.
    pub jobs: Vec<JobView>,
}

/// Status of a job of a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "FlowJob")
)]
pub struct JobView {
    /// Its name.
    pub name: String,
    /// The key of its record.
    pub id: String,
    /// `waiting`, `ready`, `started`, `finished`, `error`, `skipped` or `stopped`.
    #[serde(deserialize_with = "read_word")]
    pub status: Word,
    /// Its result; of a `foreach` the list of its items' results.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub result: Value,
    /// The reason why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The question of an open approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// The time at which an open approval is refused, or a pause ends (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Start of its last run (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// Time of its end (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// The time of its last change (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
    /// The items of a `foreach`, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<ItemView>,
}

/// Status of an item of a `foreach`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "FlowItem")
)]
pub struct ItemView {
    /// Same words as for a job.
    #[serde(deserialize_with = "read_word")]
    pub status: Word,
    /// The key of its job; `None` if it was never stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The reason why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Start of its last run (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// Time of its end (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
}

impl FlowView {
    /// Returns true if the flow has ended.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        is_final(&self.status)
    }

    /// Returns true if the flow finished without an error.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.status == "finished"
    }

    /// Returns the job of this name.
    #[must_use]
    pub fn job(&self, name: &str) -> Option<&JobView> {
        self.jobs.iter().find(|job| job.name == name)
    }

    /// Returns the bars of its waterfall: the jobs and items that have started.
    #[must_use]
    pub fn bars(&self) -> Vec<Bar> {
        let ms = |text: &Option<String>| text.as_deref().and_then(time::parse_iso);
        let mut bars = Vec::new();
        for job in &self.jobs {
            let items = job.items.iter().enumerate().map(|(at, item)| {
                let name = format!("{}[{at}]", job.name);
                (name, item.status, &item.started_at, &item.ended_at)
            });
            let own = (job.name.clone(), job.status, &job.started_at, &job.ended_at);
            for (name, status, started, ended) in std::iter::once(own).chain(items) {
                let Some(start_ms) = ms(started) else {
                    continue;
                };
                bars.push(Bar {
                    name,
                    status: status.to_owned(),
                    start_ms,
                    end_ms: ms(ended),
                });
            }
        }
        bars
    }
}

/// Returns the status word of a phase.
fn word(phase: &Phase, fields: &Fields) -> &'static str {
    let started = is_started(fields);
    // A job of a plain client is released from the start, and waits by itself.
    let waits = !started && text(fields, 7).is_some();
    match phase {
        Phase::Waiting => "waiting",
        Phase::Released if waits => "waiting",
        Phase::Released | Phase::Started if started => "started",
        Phase::Released | Phase::Started => "ready",
        Phase::Ended(End::Finished(_)) => "finished",
        Phase::Ended(End::Failed(_)) => "error",
        Phase::Ended(End::Cancelled) => "stopped",
        Phase::Ended(End::Skipped) => "skipped",
    }
}

type Fields = Vec<Option<Vec<u8>>>;
/// Keys and fields of stored jobs, by place.
type Records = BTreeMap<(usize, Option<usize>), (JobKey, Fields)>;
const FIELDS: [&str; 9] = [
    "status",
    "result",
    "error",
    "mw_question",
    "updated_at",
    "mw_started",
    "mw_updated_ms",
    "mw_waiting",
    "mw_until",
];

/// Reads some fields of all stored jobs.
async fn fields(flows: &Flows, view: &View, plan: &Plan) -> Result<Records, FlowError> {
    let mut places = Vec::new();
    for (job, run) in view.state.jobs.iter().enumerate() {
        let items = run.items.as_ref().map_or(0, Vec::len);
        places.push((job, None));
        places.extend((0..items).map(|item| (job, Some(item))));
    }
    let mut found = BTreeMap::new();
    for places in places.chunks(MAX_MOVES) {
        let keys = places
            .iter()
            .filter_map(|at| Some((*at, view.job(plan, *at)?)));
        let keys: Vec<_> = keys.collect();
        let ids: Vec<JobKey> = keys.iter().map(|(_, key)| *key).collect();
        let records = flows.job_fields(&ids, &FIELDS).await?;
        for ((at, key), record) in keys.into_iter().zip(records) {
            found.insert(at, (key, record));
        }
    }
    Ok(found)
}

fn text(fields: &Fields, number: usize) -> Option<String> {
    let bytes = fields.get(number)?.as_deref()?;
    Some(String::from_utf8_lossy(bytes).into_owned())
}

fn number(fields: &Fields, number: usize) -> Option<u64> {
    text(fields, number)?.parse().ok()
}

/// Times of a job.
#[derive(Default)]
struct Times {
    started: Option<String>,
    ended: Option<String>,
    updated: Option<String>,
}

impl Times {
    fn of(phase: &Phase, fields: &Fields) -> Self {
        let started = number(fields, 5);
        // A plain runner writes only seconds: its end is not before the start.
        let exact = [number(fields, 6), started].into_iter().flatten();
        let updated = number(fields, 4).map(|seconds| time::iso(time::exact(seconds, exact)));
        let is_ended = matches!(phase, Phase::Ended(_));
        Self {
            started: started.map(time::iso),
            ended: updated.clone().filter(|_| is_ended),
            updated,
        }
    }
}

/// Returns the reason why a job failed.
fn failed(phase: &Phase, fields: &Fields) -> Option<String> {
    let failed = matches!(phase, Phase::Ended(End::Failed(_)));
    failed.then(|| text(fields, 2)).flatten()
}

fn is_started(fields: &Fields) -> bool {
    text(fields, 0).as_deref() == Some("started")
}

/// Reads the status of a flow.
pub(super) async fn read(flows: &Flows, id: FlowId) -> Result<FlowView, FlowError> {
    let plan = match view::plan(flows, id).await {
        Err(FlowError::NoPlan(_)) => return without_plan(flows, id).await,
        plan => plan?,
    };
    let view = View::read(flows, id, &plan).await?;
    let status = view
        .record
        .get("status")
        .cloned()
        .ok_or(FlowError::NoFlow(id))?;
    let records = fields(flows, &view, &plan).await?;
    let places = 0..view.state.jobs.len();
    let jobs = places.map(|job| job_of(&plan, &view, &records, job));
    let result = view.record.get("result").map_or("{}", String::as_str);
    let result: BTreeMap<String, String> = serde_json::from_str(result).unwrap_or_default();
    let result = Some(result).filter(|_| status == "finished");
    let result = result.unwrap_or_default();
    let of_json = view.record.get(JSON_OUTPUTS).map_or("[]", String::as_str);
    let of_json: BTreeSet<String> = serde_json::from_str(of_json).unwrap_or_default();
    let value = |(name, text): (&String, &String)| {
        let value = match of_json.contains(name) {
            true => meshwork_flow::expr::output_value(text),
            false => Value::String(text.clone()),
        };
        (name.clone(), value)
    };
    let at = |field: &str, exact: &str| at(&view.record, field, exact);
    Ok(FlowView {
        id,
        name: plan.name.clone(),
        error: view.record.get("error").cloned(),
        caller: view.caller.0,
        created_at: at("created_at", "mw_created_ms"),
        ended_at: at("updated_at", "mw_updated_ms").filter(|_| is_final(&status)),
        outputs: result.iter().map(value).collect(),
        result,
        jobs: jobs.collect(),
        status,
    })
}

/// Returns the status of a flow without its jobs.
async fn without_plan(flows: &Flows, id: FlowId) -> Result<FlowView, FlowError> {
    let record = flows.record(id).await?;
    let text = |field: &str| record.get(field).cloned();
    let status = text("status").ok_or(FlowError::NoFlow(id))?;
    let ended_at = at(&record, "updated_at", "mw_updated_ms");
    Ok(FlowView {
        id,
        name: text("mw_name").unwrap_or_default(),
        error: Some(text("error").unwrap_or_else(|| FlowError::NoPlan(id).to_string())),
        caller: text("caller_id")
            .and_then(|it| it.parse().ok())
            .unwrap_or_default(),
        created_at: at(&record, "created_at", "mw_created_ms"),
        ended_at: ended_at.filter(|_| is_final(&status)),
        outputs: BTreeMap::new(),
        result: BTreeMap::new(),
        jobs: Vec::new(),
        status,
    })
}

/// Returns a time of a flow, from a field in seconds and one with the exact time.
fn at(record: &FlowFields, field: &str, exact: &str) -> Option<String> {
    let number = |name: &str| record.get(name)?.parse::<u64>().ok();
    Some(time::iso(time::exact(number(field)?, number(exact))))
}

/// Returns the status of a job of the plan.
fn job_of(plan: &Plan, view: &View, records: &Records, job: usize) -> JobView {
    let none = Fields::new();
    let run = &view.state.jobs[job];
    let record = records.get(&(job, None));
    let fields = record.map_or(&none, |(_, fields)| fields);
    let items = run.items.iter().flatten().enumerate().map(|(item, of)| {
        let record = records.get(&(job, Some(item)));
        let fields = record.map_or(&none, |(_, fields)| fields);
        let times = Times::of(&of.phase, fields);
        ItemView {
            status: word(&of.phase, fields),
            id: record.map(|(key, _)| key.to_string()),
            error: failed(&of.phase, fields),
            started_at: times.started,
            ended_at: times.ended,
        }
    });
    let finished = matches!(run.phase, Phase::Ended(End::Finished(_)));
    let times = Times::of(&run.phase, fields);
    JobView {
        name: plan.jobs[job].name.to_string(),
        id: record.map(|(key, _)| key.to_string()).unwrap_or_default(),
        status: match run.items {
            Some(_) if run.phase == Phase::Waiting => "started",
            _ => word(&run.phase, fields),
        },
        result: match finished {
            true => output(fields.get(1).cloned().flatten()),
            false => Value::Null,
        },
        error: failed(&run.phase, fields),
        question: text(fields, 3).filter(|_| run.phase == Phase::Released),
        until: number(fields, 8)
            .filter(|_| run.phase == Phase::Released)
            .map(time::iso),
        started_at: times.started,
        ended_at: times.ended,
        updated_at: times.updated,
        items: items.collect(),
    }
}
