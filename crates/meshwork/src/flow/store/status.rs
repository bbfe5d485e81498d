//! Status of a flow, for people and programs.

use std::collections::BTreeMap;

use meshwork_broker::flow::{Flows, MAX_MOVES};
use meshwork_model::flow::Plan;
use meshwork_model::keys::context::{FlowId, JobKey};
use serde::Serialize;
use serde_json::Value;

use super::view::{self, View};
use super::{FlowError, is_final, output};
use crate::flow::run::{End, Phase};

/// Status of a flow.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FlowView {
    /// Its number.
    pub id: FlowId,
    /// Its name.
    pub name: String,
    /// `dispatched`, `started`, `finished` or `error`.
    pub status: String,
    /// The reason why it did not finish.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Outputs of the flow, if it finished.
    pub outputs: BTreeMap<String, Value>,
    /// Its jobs in the order of the plan.
    pub jobs: Vec<JobView>,
}

/// Status of a job of a flow.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobView {
    /// Its name.
    pub name: String,
    /// The key of its record.
    pub id: String,
    /// `waiting`, `ready`, `started`, `finished`, `error`, `skipped` or `stopped`.
    pub status: &'static str,
    /// Its result; of a `foreach` the list of its items' results.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub result: Value,
    /// The reason why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The question of an open approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// The time of its last change, in seconds since 1970.
    pub updated_at: u64,
    /// The items of a `foreach`, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<ItemView>,
}

/// Status of an item of a `foreach`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ItemView {
    /// Same words as for a job.
    pub status: &'static str,
    /// The key of its job; `None` if it was never stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The reason why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
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
}

/// Returns the status word of a phase.
fn word(phase: &Phase, started: bool) -> &'static str {
    match phase {
        Phase::Waiting => "waiting",
        Phase::Released | Phase::Started if started => "started",
        Phase::Released | Phase::Started => "ready",
        Phase::Ended(End::Finished(_)) => "finished",
        Phase::Ended(End::Failed(_)) => "error",
        Phase::Ended(End::Cancelled) => "stopped",
        Phase::Ended(End::Skipped) => "skipped",
    }
}

type Fields = Vec<Option<Vec<u8>>>;
const FIELDS: [&str; 5] = ["status", "result", "error", "mw_question", "updated_at"];

/// Reads some fields of all stored jobs.
async fn fields(
    flows: &Flows,
    view: &View,
    plan: &Plan,
) -> Result<BTreeMap<(usize, Option<usize>), (JobKey, Fields)>, FlowError> {
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

/// Reads the status of a flow.
pub(super) async fn read(flows: &Flows, id: FlowId) -> Result<FlowView, FlowError> {
    let plan = view::plan(flows, id).await?;
    let view = View::read(flows, id, &plan).await?;
    let status = view
        .record
        .get("status")
        .cloned()
        .ok_or(FlowError::NoFlow(id))?;
    let records = fields(flows, &view, &plan).await?;
    let started = |fields: &Fields| text(fields, 0).as_deref() == Some("started");
    let failed = |phase: &Phase, fields: &Fields| {
        let failed = matches!(phase, Phase::Ended(End::Failed(_)));
        failed.then(|| text(fields, 2)).flatten()
    };
    let none = Fields::new();
    let mut jobs = Vec::new();
    for (job, run) in view.state.jobs.iter().enumerate() {
        let record = records.get(&(job, None));
        let fields = record.map_or(&none, |(_, fields)| fields);
        let items = run.items.iter().flatten().enumerate().map(|(item, of)| {
            let record = records.get(&(job, Some(item)));
            let fields = record.map_or(&none, |(_, fields)| fields);
            ItemView {
                status: word(&of.phase, started(fields)),
                id: record.map(|(key, _)| key.to_string()),
                error: failed(&of.phase, fields),
            }
        });
        let finished = matches!(run.phase, Phase::Ended(End::Finished(_)));
        jobs.push(JobView {
            name: plan.jobs[job].name.to_string(),
            id: record.map(|(key, _)| key.to_string()).unwrap_or_default(),
            status: match run.items {
                Some(_) if run.phase == Phase::Waiting => "started",
                _ => word(&run.phase, started(fields)),
            },
            result: match finished {
                true => output(fields.get(1).cloned().flatten()),
                false => Value::Null,
            },
            error: failed(&run.phase, fields),
            question: text(fields, 3).filter(|_| run.phase == Phase::Released),
            updated_at: text(fields, 4)
                .and_then(|text| text.parse().ok())
                .unwrap_or(0),
            items: items.collect(),
        });
    }
    let result = view.record.get("result").map_or("{}", String::as_str);
    let result: BTreeMap<String, String> = serde_json::from_str(result).unwrap_or_default();
    let ended_well = status == "finished";
    let outputs = result.into_iter().filter(|_| ended_well);
    Ok(FlowView {
        id,
        name: plan.name.clone(),
        error: view.record.get("error").cloned(),
        outputs: outputs
            .map(|(name, text)| (name, crate::flow::expr::output_value(&text)))
            .collect(),
        status,
        jobs,
    })
}
