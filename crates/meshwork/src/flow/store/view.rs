//! State of a flow, read from the store.

use std::collections::HashMap;

use meshwork_broker::flow::{FlowFields, Flows, Nodes};
use meshwork_flow::run::{End, FlowState, ItemRun, Phase, RetryFrom, Stop};
use meshwork_model::flow::Plan;
use meshwork_model::keys::context::{ActorId, FlowId, JobKey};
use serde_json::Value;

use super::adopt::is_plain;
use super::node::{self, Seen};
use super::{FlowError, is_final};

/// An item of a `foreach`: its place, phase and generation, and the number of its end.
type Item = (usize, Phase, u32, Option<u64>);

/// State of a flow in a step. Results and errors are read only when needed.
#[derive(Debug)]
pub(super) struct View {
    pub(super) id: FlowId,
    pub(super) caller: ActorId,
    pub(super) record: FlowFields,
    pub(super) nodes: Nodes,
    pub(super) names: HashMap<String, u32>,
    pub(super) state: FlowState,
}

/// Reads the plan of a flow.
pub(super) async fn plan(flows: &Flows, id: FlowId) -> Result<Plan, FlowError> {
    if let Some(text) = flows.plan(id).await? {
        return read_plan(&text);
    }
    let record = flows.record(id).await?;
    Err(match record.get("error") {
        Some(why) if is_plain(&record) => FlowError::Refused(id, why.clone()),
        None if is_plain(&record) => FlowError::NotTakenUp(id),
        _ if record.contains_key("status") => FlowError::NoPlan(id),
        _ => FlowError::NoFlow(id),
    })
}

pub(super) fn read_plan(text: &str) -> Result<Plan, FlowError> {
    let broken = |error: serde_json::Error| FlowError::Plan(format!("its plan: {error}"));
    serde_json::from_str(text).map_err(broken)
}

impl View {
    /// Reads a submitted flow. The record is read first, so that `mw_dirty` reveals later changes.
    pub(super) async fn read(flows: &Flows, id: FlowId, plan: &Plan) -> Result<Self, FlowError> {
        let record = flows.record(id).await?;
        let nodes = flows.nodes(id).await?;
        let names = flows.names(id).await?.into_iter();
        let names = names.filter_map(|(name, number)| Some((name, number.parse().ok()?)));
        let caller = record.get("caller_id").and_then(|text| text.parse().ok());
        let caller = caller.ok_or(FlowError::NoFlow(id))?;
        let state = state(plan, &record, &nodes);
        Ok(Self {
            id,
            caller,
            record,
            nodes,
            names: names.collect(),
            state,
        })
    }

    /// Returns the value of `mw_dirty` at the time of the read.
    pub(super) fn dirty(&self) -> &str {
        self.record.get("mw_dirty").map_or("", String::as_str)
    }

    pub(super) fn is_ended(&self) -> bool {
        self.record.get("status").is_some_and(|it| is_final(it))
    }

    /// Returns a number of the record.
    pub(super) fn number(&self, field: &str) -> Option<u64> {
        self.record.get(field)?.parse().ok()
    }

    /// Returns the jobs of a requested retry; `None` without a request.
    pub(super) fn retry(&self) -> Option<Vec<RetryFrom>> {
        let text = self.record.get("mw_retry")?;
        // A request in an unknown format repeats no job.
        Some(serde_json::from_str(text).unwrap_or_default())
    }

    /// Returns the keys of all jobs.
    pub(super) fn keys(&self, flows: &Flows) -> Vec<String> {
        let key = |id: &u32| {
            let (caller, id) = (self.caller, *id);
            flows.keys().job(JobKey { caller, id })
        };
        self.names.values().map(key).collect()
    }

    /// Returns the job of a place; `None` if it is not stored.
    pub(super) fn job(&self, plan: &Plan, (job, item): (usize, Option<usize>)) -> Option<JobKey> {
        let id = *self.names.get(&node::name(&plan.jobs[job], item))?;
        Some(JobKey {
            caller: self.caller,
            id,
        })
    }
}

/// Returns the state of the places, without results.
fn state(plan: &Plan, record: &FlowFields, nodes: &Nodes) -> FlowState {
    let mut state = FlowState::new(plan);
    let number = |name: &str| record.get(name).and_then(|text| text.parse::<u64>().ok());
    state.ends = number("mw_ends").unwrap_or(0);
    state.retried_at = number("mw_retried").unwrap_or(0);
    state.retries = number("mw_retries")
        .and_then(|it| it.try_into().ok())
        .unwrap_or(0);
    state.compensate = !record.contains_key("mw_keep");
    state.stop = match record.get("mw_stop").map(String::as_str) {
        Some("timeout") => Some(Stop::TimedOut),
        Some(_) => Some(Stop::Cancelled),
        None => None,
    };
    let mut items: HashMap<usize, Vec<Item>> = HashMap::new();
    let mut sizes: HashMap<usize, usize> = HashMap::new();
    for (place, text) in nodes {
        let Some((seen, generation)) = node::parse(text) else {
            continue;
        };
        let (phase, ended_as) = phase(seen);
        if let Some((job, item)) = place.split_once('.') {
            if let (Ok(job), Ok(item)) = (job.parse(), item.parse()) {
                let of: &mut Vec<_> = items.entry(job).or_default();
                of.push((item, phase, generation, ended_as));
            }
        } else if let Some(run) = place
            .parse()
            .ok()
            .and_then(|job: usize| state.jobs.get_mut(job))
        {
            run.phase = phase;
            run.generation = generation;
            run.ended_as = ended_as;
            if let (Seen::Group(size), Ok(job)) = (seen, place.parse()) {
                sizes.insert(job, size);
            }
        }
    }
    for (job, run) in state.jobs.iter_mut().enumerate() {
        let known = items.remove(&job).unwrap_or_default();
        let ended = matches!(run.phase, Phase::Ended(End::Finished(_)));
        let is_group = plan.jobs[job].foreach.is_some();
        let highest = known.iter().map(|(item, ..)| item + 1).max();
        let size = sizes
            .get(&job)
            .copied()
            .or(highest)
            .or((is_group && ended).then_some(0));
        let Some(size) = size else { continue };
        let waiting = ItemRun::waiting(Value::Null, run.generation);
        let mut all = vec![waiting; size];
        for (item, phase, generation, ended_as) in known {
            if let Some(of) = all.get_mut(item) {
                *of = ItemRun {
                    generation,
                    phase,
                    ended_as,
                    ..of.clone()
                };
            }
        }
        run.items = Some(all);
    }
    state
}

fn phase(seen: Seen) -> (Phase, Option<u64>) {
    match seen {
        Seen::Waiting | Seen::Group(_) => (Phase::Waiting, None),
        Seen::Released => (Phase::Released, None),
        Seen::Ended(how, number) => {
            let end = match how {
                'f' => End::Finished(Value::Null),
                'e' => End::Failed(String::new()),
                'c' => End::Cancelled,
                _ => End::Skipped,
            };
            (Phase::Ended(end), Some(number))
        }
    }
}
