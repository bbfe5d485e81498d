//! Reasons of a job of a flow, by the plan.

use meshwork_model::flow::{Node, Plan, Wait, Work};
use meshwork_model::keys::context::FlowId;
use meshwork_model::state::State;
use meshwork_model::time;

use super::WaitReason;
use crate::flow::expr::asks_for_failure;
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

/// Returns why a job was skipped, or an item of one; `None` if it was not.
///
/// # Errors
/// The flow does not exist or has no plan, or a call to the server fails.
pub(super) async fn skipped(
    flows: &FlowClient,
    id: FlowId,
    job: &str,
) -> Result<Option<String>, FlowError> {
    let plan = flows.plan(id).await?;
    let view = flows.status(id).await?;
    let is_item = |of: &JobView| {
        let mut items = of.items.iter();
        items.any(|it| it.status == "skipped" && it.id.as_deref() == Some(job))
    };
    let mut jobs = plan.jobs.iter().zip(&view.jobs);
    let of = jobs.find(|(_, of)| of.status == "skipped" && of.id == job || is_item(of));
    Ok(of.map(|of| cause(&plan, &view, of)))
}

/// Returns the cause of a skip, by the rules of a run.
fn cause(plan: &Plan, view: &FlowView, (node, of): (&Node, &JobView)) -> String {
    let all = || plan.jobs.iter().zip(&view.jobs);
    let has_failed =
        |(node, of): &(&Node, &JobView)| of.status == "error" && !node.continue_on_failure;
    let needs = || all().filter(|(other, _)| node.needs.contains(&other.name));
    let condition = node.condition.as_ref();
    let bears_failure = condition.is_some_and(asks_for_failure);
    if let Some((_, failed)) = needs().find(has_failed).filter(|_| !bears_failure) {
        return format!("its prerequisite {} failed", failed.name);
    }
    // A failure that came later did not skip it.
    let before = |failed: &JobView| failed.ended_at <= of.ended_at;
    let mut halting = all()
        .filter(has_failed)
        .filter(|(_, failed)| before(failed));
    if let Some((_, failed)) = halting.next().filter(|_| plan.fail_fast && !bears_failure) {
        return format!("job {} of its flow failed", failed.name);
    }
    match condition {
        Some(condition) => format!("its `if` was false: {}", condition.text),
        None => {
            let names: Vec<_> = needs().map(|(_, need)| need.name.as_str()).collect();
            format!(
                "all of its prerequisites were skipped: {}",
                names.join(", ")
            )
        }
    }
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
