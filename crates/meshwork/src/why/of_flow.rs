//! Reasons of a job of a flow, by the plan.

use meshwork_model::flow::{Node, Plan, Wait, Work};
use meshwork_model::keys::context::FlowId;
use meshwork_model::state::State;
use meshwork_model::time;

use super::WaitReason;
use crate::flow::{FlowClient, FlowError, FlowView, JobView};

/// Returns what a job waits for, with jobs of the plan in its place; `None` if the plan keeps it from nothing, and if it is
/// not in the flow.
///
/// # Errors
/// The flow does not exist or has no plan, or a call to the server fails.
pub(super) async fn waits(
    flows: &FlowClient,
    id: FlowId,
    job: &str,
) -> Result<Option<Vec<WaitReason>>, FlowError> {
    let plan = flows.plan(id).await?;
    let view = flows.status(id).await?;
    let Some(at) = view.jobs.iter().position(|of| of.id == job) else {
        return Ok(None);
    };
    let (node, of) = (&plan.jobs[at], &view.jobs[at]);
    if of.status != "waiting" {
        return Ok(own(id, node, of).map(|reason| vec![reason]));
    }
    let needed = needed(&plan, &view, node);
    let mut reasons: Vec<_> = needed.map(|(node, of)| open(id, node, of)).collect();
    if reasons.is_empty() {
        reasons.push(WaitReason::Step { flow: id.0 });
    }
    Ok(Some(reasons))
}

/// Returns true for the status of a job or item that has not ended.
fn is_open(status: &str) -> bool {
    matches!(status, "waiting" | "ready" | "started")
}

/// Returns the jobs that have to end before a job of the plan.
fn needed<'v>(
    plan: &'v Plan,
    view: &'v FlowView,
    node: &'v Node,
) -> impl Iterator<Item = (&'v Node, &'v JobView)> {
    let all = plan.jobs.iter().zip(&view.jobs);
    all.filter(|(other, of)| is_open(of.status) && node.needs.contains(&other.name))
}

/// Returns the reason of a job that runs without a worker.
fn own(flow: FlowId, node: &Node, of: &JobView) -> Option<WaitReason> {
    if !matches!(of.status, "ready" | "started") {
        return None;
    }
    let job = of.id.clone();
    let until_ms = of.until.as_deref().and_then(time::parse_iso);
    Some(match &node.work {
        _ if node.foreach.is_some() => {
            let open = of.items.iter().filter(|item| is_open(item.status)).count();
            WaitReason::Items {
                job,
                ended: of.items.len() - open,
                total: of.items.len(),
            }
        }
        Work::Approve(_) => WaitReason::Approval {
            flow: flow.0,
            name: of.name.clone(),
            question: of.question.clone().unwrap_or_default(),
            until_ms,
        },
        Work::Wait(Wait::Message { message_type, from }) => WaitReason::Message {
            job,
            message_type: Some(message_type.clone()),
            from: Some(*from),
        },
        Work::Wait(_) => WaitReason::Pause { job, until_ms },
        Work::Run(run) if run.context.is_some() => WaitReason::Message {
            job,
            message_type: None,
            from: None,
        },
        Work::Run(_) | Work::Flow(_) => return None,
    })
}

/// Returns the reason of a job that waits for this one.
fn open(flow: FlowId, node: &Node, of: &JobView) -> WaitReason {
    let state = match of.status {
        "ready" => State::Queued.as_str(),
        "started" => State::Running.as_str(),
        other => other,
    };
    own(flow, node, of).unwrap_or_else(|| WaitReason::Prerequisite {
        id: of.id.clone(),
        status: Some(of.status.to_owned()),
        state: Some(state.to_owned()),
    })
}
