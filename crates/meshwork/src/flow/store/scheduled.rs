//! Flows that a schedule has started: the slot stored the flow with its plan, and a step adds its jobs.

use std::time::Duration;

use meshwork_broker::flow::{FlowFields, FlowLease, Flows, Moves, NewFlow, StepDone};
use meshwork_model::keys::context::{ActorId, FlowId};

use super::{FlowClient, FlowError, is_final, view};

/// Pause between two checks of a flow that has to end first.
const LOOK: Duration = Duration::from_secs(1);

/// Returns true for the record of a flow that a schedule has started, and whose jobs are not stored yet.
pub(super) fn is_without_jobs(record: &FlowFields) -> bool {
    record.contains_key("mw_schedule") && !record.contains_key("mw_sealed")
}

/// Stores the jobs of the flow, and starts it. Another step continues after a crash, since each call may be repeated.
/// Returns `Again` while the flow that it replaces has not ended.
pub(super) async fn complete(
    flows: &Flows,
    lease: &FlowLease,
    record: &FlowFields,
) -> Result<StepDone, FlowError> {
    let number = |field: &str| record.get(field).and_then(|text| text.parse::<u32>().ok());
    if let Some(before) = number("mw_after").map(FlowId)
        && still_runs(&flows.record(before).await?)
    {
        let mut moves = Moves::default();
        moves.rest(
            record.get("mw_dirty").map_or("", String::as_str),
            Some(LOOK),
        );
        // With any other answer, the flow is due again at the end of the lease.
        let _ = flows.commit(lease, &moves).await?;
        return Ok(StepDone::Again);
    }
    let plan = view::plan(flows, lease.id).await?;
    let caller = number("caller_id").map(ActorId);
    let (Some(caller), Some(mark)) = (caller, record.get("mw_mark")) else {
        return Err(FlowError::NoFlow(lease.id));
    };
    let client = FlowClient {
        flows: flows.clone(),
    };
    let new = NewFlow {
        id: lease.id,
        mark,
        caller,
    };
    let jobs = client.jobs(&plan, caller)?;
    client.complete(new, &plan, &jobs).await?;
    Ok(StepDone::Done)
}

fn still_runs(before: &FlowFields) -> bool {
    before.get("status").is_some_and(|status| !is_final(status))
}
