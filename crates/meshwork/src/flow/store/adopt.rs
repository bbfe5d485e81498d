//! Flows of plain clients (`HSET flow:…`, `HSET job:…`, `LPUSH`). A step takes such a flow up: it links the jobs to the
//! flow, gives them the flow's environment, and stores them as the plan. After that, the flow is like any other whose
//! jobs have all been released.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use meshwork_broker::flow::{FlowFields, FlowLease, Flows, MAX_MOVES, Moves, StepDone};
use meshwork_flow::run::Decider;
use meshwork_model::context::{ContextJob, Flow, field};
use meshwork_model::flow::limits::MAX_JOBS;
use meshwork_model::flow::{Node, Plan, Run, Work};
use meshwork_model::job::EnvTooLarge;
use meshwork_model::keys::context::{FlowId, JobKey};
use meshwork_model::route::Route;
use meshwork_model::state::Status;
use serde_json::json;

use super::FlowError;
use super::node::place;

/// Longest time between a client's writes of a flow and of its last job.
const PATIENCE: Duration = Duration::from_secs(60);
/// Pause between two checks for missing jobs.
const AGAIN: Duration = Duration::from_secs(1);
/// Approximate limit of the bytes in one commit.
const MOST_BYTES: usize = 1024 * 1024;
/// Fields that a step reads of each job.
const FIELDS: [&str; 6] = [
    field::STATUS,
    field::SCRIPT_TYPE,
    field::RETRIES,
    field::ENV_VARS,
    field::PREREQUISITES,
    field::DEPENDENDS,
];
/// Field that marks the record of a flow that was taken up.
pub(super) const PLAIN: &str = "mw_plain";
/// Field with the time at which a step first found the flow.
const SEEN: &str = "mw_seen";

/// State of a place whose job has joined and has not ended.
const JOINED: &str = "r 0";

/// Outcome of an attempt to take a flow up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TakenUp {
    /// The flow has a plan.
    Yes,
    /// The flow changed during the attempt: read it again.
    Again,
    /// The flow was refused, or a later step continues.
    Rests,
    /// Another worker has the flow.
    Lost,
}

/// A job of a flow that is being taken up.
struct Joining {
    key: JobKey,
    /// Environment as it was read.
    env: Vec<u8>,
    /// The record; `None` if the record is missing or damaged.
    job: Option<ContextJob>,
    is_missing: bool,
}

/// Returns true for a record of a plain client that no step has taken up.
pub(super) fn is_plain(record: &FlowFields) -> bool {
    let is_flow = [field::CALLER_ID, field::JOBS].map(|field| record.contains_key(field));
    is_flow.contains(&true) && !record.contains_key("mw_mark")
}

/// Takes a flow up once all its jobs are stored.
pub(super) async fn take_up(flows: &Flows, lease: &FlowLease) -> Result<TakenUp, FlowError> {
    let record = flows.record(lease.id).await?;
    if !is_plain(&record) {
        return Err(FlowError::NoFlow(lease.id));
    }
    let flow = match read(flows, lease.id, &record) {
        Ok(flow) => flow,
        Err(why) => return refuse(flows, lease, &record, why).await,
    };
    let now = flows.broker().now().await?;
    let seen = record.get(SEEN).and_then(|text| text.parse().ok());
    let is_late = now >= seen.unwrap_or(now) + PATIENCE.as_millis() as u64;
    let jobs = jobs(flows, &flow).await?;
    let mut moves = Moves::default();
    if seen.is_none() {
        moves.note(&[(SEEN, now.to_string())]);
    }
    let joined = flows.nodes(lease.id).await?;
    let (plan, is_cycle) = plan(flows, &flow, &jobs);
    // Prerequisites that the commit reads.
    let mut read = 0;
    for (at, job) in jobs.iter().enumerate() {
        let node = place(at, None);
        if joined.contains_key(&node) || (job.is_missing && !is_late) {
            continue;
        }
        join(flows, &flow, (&node, job, is_cycle), &mut moves);
        let needs = job.job.as_ref();
        read += needs.map_or(0, |job| job.dependends.len() + job.prerequisites.len());
        let is_full =
            moves.len() + 1 >= MAX_MOVES || moves.bytes() >= MOST_BYTES || read >= MAX_MOVES;
        if is_full {
            read = 0;
            if commit(flows, lease, std::mem::take(&mut moves)).await? != StepDone::Done {
                return Ok(TakenUp::Lost);
            }
        }
    }
    if commit(flows, lease, moves).await? != StepDone::Done {
        return Ok(TakenUp::Lost);
    }
    let joined = flows.nodes(lease.id).await?.len();
    if joined < jobs.len() || (jobs.is_empty() && !is_late) {
        return rest(flows, lease, &record, Some(AGAIN)).await;
    }
    let mut moves = Moves::default();
    moves.plan(&json!(plan).to_string());
    let mut fields = vec![(PLAIN, "1".to_owned()), ("mw_name", plan.name)];
    if jobs
        .iter()
        .any(|it| it.job.as_ref().is_some_and(|job| !waits(job)))
    {
        fields.push((field::STATUS, "started".to_owned()));
    }
    moves.note(&fields);
    match commit(flows, lease, moves).await? {
        StepDone::Done => Ok(TakenUp::Yes),
        _ => Ok(TakenUp::Lost),
    }
}

/// Returns true for a job that no runner has started.
fn waits(job: &ContextJob) -> bool {
    matches!(
        job.status,
        Status::Dispatched | Status::WaitingForPrerequisites
    )
}

pub(super) fn read(flows: &Flows, id: FlowId, record: &FlowFields) -> Result<Flow, String> {
    let fields = record.iter();
    let fields = fields.map(|(name, value)| (name.clone(), value.clone().into_bytes()));
    let flow = Flow::from_fields(flows.keys().context(), id, fields);
    let mut flow = flow.map_err(|error| error.to_string())?;
    let mut known = BTreeSet::new();
    flow.jobs.retain(|id| known.insert(*id));
    match flow.jobs.len() {
        0..=MAX_JOBS => Ok(flow),
        many => Err(format!(
            "flow:{id}: it has {many} jobs, at most {MAX_JOBS} are allowed"
        )),
    }
}

async fn jobs(flows: &Flows, flow: &Flow) -> Result<Vec<Joining>, FlowError> {
    let keys: Vec<JobKey> = flow.job_keys().collect();
    let mut jobs = Vec::with_capacity(keys.len());
    for keys in keys.chunks(MAX_MOVES) {
        let found = flows.job_fields(keys, &FIELDS).await?;
        for (key, values) in keys.iter().zip(found) {
            let values = FIELDS.into_iter().zip(values);
            let fields: Vec<(String, Vec<u8>)> = values
                .filter_map(|(name, value)| Some((name.to_owned(), value?)))
                .collect();
            let of = |name: &str| fields.iter().find(|(field, _)| field == name);
            let is_missing = of(field::STATUS).is_none();
            let env = of(field::ENV_VARS).map(|(_, env)| env.clone());
            let job = ContextJob::from_fields(flow.context_id, *key, fields);
            jobs.push(Joining {
                key: *key,
                env: env.unwrap_or_default(),
                job: job.ok().filter(|_| !is_missing),
                is_missing,
            });
        }
    }
    Ok(jobs)
}

fn join(
    flows: &Flows,
    flow: &Flow,
    (node, job, is_cycle): (&str, &Joining, bool),
    moves: &mut Moves,
) {
    let key = flows.keys().job(job.key);
    let env = job.job.as_ref().map(|job| merged(flow, &job.env_vars));
    let too_large = env.as_ref().and_then(|env| EnvTooLarge::check(env).err());
    let env = env.filter(|_| too_large.is_none());
    let env = env.map(|env| json!(env).to_string()).unwrap_or_default();
    let script_type = job.job.as_ref().and_then(|job| job.script_type.clone());
    let queue = script_type.map(|name| Route::to(name).queue(flows.broker().keys()));
    moves.join(
        (node, name(job.key.id).as_str(), job.key.id),
        (&key, &queue.unwrap_or_default()),
        (&job.env, &env),
        (job.is_missing, is_cycle),
    );
    if let Some(why) = too_large.filter(|_| job.job.as_ref().is_some_and(waits)) {
        let why = why.to_string();
        moves.finalize(node, JOINED, ("e", 0), (&key, "error", why.as_bytes()));
    }
}

/// Merges the environments of a job: a later one overrides an earlier one. First that of the flow, then the job's own,
/// then the number of the flow.
pub(super) fn merged(flow: &Flow, own: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut env: BTreeMap<String, String> = (*flow.env_vars).clone();
    env.extend(own.clone());
    env.insert("FLOW_ID".to_owned(), flow.id.to_string());
    env
}

/// Returns the name of a job in the plan. The result of the flow has only the number.
fn name(id: u32) -> String {
    format!("{NAMED}{id}")
}

/// Prefix of the names of jobs.
const NAMED: &str = "job_";

/// Returns the name of a result of a plain flow: the number of its job.
pub(super) fn number(name: &str) -> &str {
    name.strip_prefix(NAMED).unwrap_or(name)
}

/// Returns the plan, and true if jobs depend on each other.
fn plan(flows: &Flows, flow: &Flow, jobs: &[Joining]) -> (Plan, bool) {
    let all: BTreeSet<JobKey> = jobs.iter().map(|it| it.key).collect();
    let node = |joining: &Joining| {
        let needs = joining.job.iter().flat_map(|job| needs(flows, job));
        let needs: BTreeSet<u32> = needs
            .filter(|key| *key != joining.key && all.contains(key))
            .map(|key| key.id)
            .collect();
        let script_type = joining
            .job
            .as_ref()
            .and_then(|job| job.script_type.as_ref());
        let run = Run {
            script_type: script_type.map(ToString::to_string).unwrap_or_default(),
            ..Run::default()
        };
        Some(Node {
            needs: needs
                .into_iter()
                .filter_map(|id| name(id).parse().ok())
                .collect(),
            retries: joining.job.as_ref().map_or(0, |job| job.retries.into()),
            ..Node::new(name(joining.key.id).parse().ok()?, Work::Run(run))
        })
    };
    let mut plan = Plan {
        // A plain client cannot request that the other jobs stop.
        fail_fast: false,
        jobs: jobs.iter().filter_map(node).collect(),
        ..Plan::new(format!("flow-{}", flow.id))
    };
    // Jobs that depend on each other wait until their timeouts. Here their dependencies would make the plan invalid.
    let is_cycle = Decider::new(&plan).is_err();
    if is_cycle {
        for node in &mut plan.jobs {
            node.needs.clear();
        }
    }
    (plan, is_cycle)
}

/// Returns the prerequisites of a job.
fn needs(flows: &Flows, job: &ContextJob) -> Vec<JobKey> {
    let prefix = flows.keys().prefix();
    let texts = job.prerequisites.iter();
    let keys = texts.filter_map(|text| text.strip_prefix(prefix).unwrap_or(text).parse().ok());
    job.dependencies().chain(keys).collect()
}

async fn commit(flows: &Flows, lease: &FlowLease, moves: Moves) -> Result<StepDone, FlowError> {
    if moves.is_empty() {
        return Ok(StepDone::Done);
    }
    Ok(flows.commit(lease, &moves).await?)
}

async fn rest(
    flows: &Flows,
    lease: &FlowLease,
    record: &FlowFields,
    look_in: Option<Duration>,
) -> Result<TakenUp, FlowError> {
    let mut moves = Moves::default();
    let dirty = record.get("mw_dirty").map_or("", String::as_str);
    moves.rest(dirty, look_in);
    match commit(flows, lease, moves).await? {
        StepDone::Done => Ok(TakenUp::Rests),
        StepDone::Again => Ok(TakenUp::Again),
        _ => Ok(TakenUp::Lost),
    }
}

/// Ends a flow whose record is damaged, with the reason as its error.
async fn refuse(
    flows: &Flows,
    lease: &FlowLease,
    record: &FlowFields,
    why: String,
) -> Result<TakenUp, FlowError> {
    tracing::warn!(flow = %lease.id, why, "flow of a plain client refused");
    let mut moves = Moves::default();
    moves.list();
    let result = json!({ "error": why }).to_string();
    moves.note(&[
        (PLAIN, "1".to_owned()),
        (field::STATUS, "error".to_owned()),
        (field::ERROR, why),
        (field::RESULT, result),
    ]);
    if commit(flows, lease, moves).await? != StepDone::Done {
        return Ok(TakenUp::Lost);
    }
    rest(flows, lease, record, None).await
}
