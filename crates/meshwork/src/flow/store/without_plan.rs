//! Flows whose plan is gone. Nothing can go on without it: a step cancels their jobs, and ends them with this reason.

use meshwork_broker::flow::{FlowFields, FlowLease, Flows, MAX_MOVES, Moves, StepDone};
use meshwork_model::job::Job;
use meshwork_model::keys::context::{ActorId, FlowId, JobKey};
use serde_json::json;

use super::{FlowError, is_final};

/// Ends the flow and its jobs. A repeated call goes on where an earlier one was interrupted. Returns false if another worker has
/// the flow.
pub(super) async fn end(flows: &Flows, lease: &FlowLease) -> Result<bool, FlowError> {
    let why = FlowError::NoPlan(lease.id).to_string();
    loop {
        let record = flows.record(lease.id).await?;
        let mut moves = Moves::default();
        if !record.get("status").is_some_and(|status| is_final(status)) {
            tracing::warn!(flow = %lease.id, "flow ended: its plan is gone");
            let result = json!({ "error": why }).to_string();
            let status = ("status", "error".to_owned());
            moves.note(&[status, ("error", why.clone()), ("result", result)]);
            // Its jobs may then be deleted after their ends.
            if flows.commit(lease, &moves).await? != StepDone::Done {
                return Ok(false);
            }
            continue;
        }
        let mut ended = Vec::new();
        for job in jobs(flows, lease.id, &record).await? {
            match job.status() {
                Some(status) if status.is_final() => ended.push(job.id),
                _ => {
                    flows.broker().cancel(&job, "stopped", false).await?;
                }
            }
        }
        for keys in ended.chunks(MAX_MOVES - 1) {
            moves.keep(keys);
            if flows.commit(lease, &moves).await? != StepDone::Done {
                return Ok(false);
            }
            moves = Moves::default();
        }
        moves.rest(record.get("mw_dirty").map_or("", String::as_str), None);
        match flows.commit(lease, &moves).await? {
            StepDone::Again => {}
            StepDone::Stale => return Ok(false),
            StepDone::Done | StepDone::NoNumbers => return Ok(true),
        }
    }
}

/// Returns the jobs of a flow that are there.
async fn jobs(flows: &Flows, id: FlowId, record: &FlowFields) -> Result<Vec<Job>, FlowError> {
    let caller = record.get("caller_id").and_then(|text| text.parse().ok());
    let Some(caller) = caller.map(ActorId) else {
        return Ok(Vec::new());
    };
    let names = flows.names(id).await?;
    let ids = names.values().filter_map(|id| {
        let id = id.parse().ok()?;
        Some(flows.job_id(JobKey { caller, id }))
    });
    let ids: Vec<_> = ids.collect();
    let mut jobs = Vec::with_capacity(ids.len());
    for ids in ids.chunks(MAX_MOVES) {
        jobs.extend(
            flows
                .broker()
                .inspect_many(ids)
                .await?
                .into_iter()
                .flatten(),
        );
    }
    Ok(jobs)
}
