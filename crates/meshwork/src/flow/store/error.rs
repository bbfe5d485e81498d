//! Reasons why a flow cannot be submitted, read or changed.

use meshwork_flow::run::RetryError;
use meshwork_flow::spread_and_schedule;
use meshwork_model::flow::Position;
use meshwork_model::keys::context::{ActorId, FlowId};
use meshwork_model::name::ScheduleName;
use meshwork_model::spread::SpreadName;

use crate::flow::FlowFaults;

/// The reason why a call about a flow failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FlowError {
    /// The session is not that of a context. Only contexts have flows.
    #[error("flows run in a context: this session is of none")]
    NoContext,
    /// The plan has faults.
    #[error(transparent)]
    Faults(#[from] FlowFaults),
    /// The plan uses a feature that no step can run yet.
    #[error("{}the job `{job}` uses {what}, which cannot be run yet", place(.at))]
    NotYet {
        /// The job.
        job: String,
        /// The feature.
        what: &'static str,
        /// Position in the file.
        at: Option<Position>,
    },
    /// The store refuses a job.
    #[error("the job `{job}`: {why}")]
    Job {
        /// The job.
        job: String,
        /// The fault.
        why: String,
    },
    /// The plan of a deployed or scheduled flow names a spread queue.
    #[error("{}", spread_and_schedule(.0))]
    Spread(SpreadName),
    /// The plan cannot be evaluated.
    #[error("the flow cannot run: {0}")]
    Plan(String),
    /// All numbers are used up.
    #[error("the context has no number left for {0}")]
    NoNumbers(&'static str),
    /// There is no such flow.
    #[error("there is no flow {0}: `meshwork flow list` names those that are there")]
    NoFlow(FlowId),
    /// The flow has lost its plan.
    #[error("the plan of the flow {0} is gone: delete the flow, and submit it again")]
    NoPlan(FlowId),
    /// A plain client wrote the flow, and no step has taken it up.
    #[error(
        "the flow {0} was written by another client, and no worker of its context has taken it up yet: start one with \
         `meshwork worker --context`, or wait a second"
    )]
    NotTakenUp(FlowId),
    /// A plain client wrote the flow, and its record is damaged.
    #[error("the flow {0} was written by another client, and cannot be used: {1}")]
    Refused(FlowId, String),
    /// A plain client wrote the flow, whose jobs are in queues already.
    #[error(
        "the flow {0} was written by another client, which has queued its jobs: run them again with `meshwork job retry`"
    )]
    Plain(FlowId),
    /// No flow of this name is deployed.
    #[error("no flow `{0}` is deployed: `meshwork flow list --deployed` names those that are")]
    NotDeployed(ScheduleName),
    /// A schedule that no deployment wrote has the name of the flow.
    #[error(
        "the schedule {0} exists, and belongs to no deployed flow: remove it with `meshwork schedule remove {0}`"
    )]
    ScheduleTaken(ScheduleName),
    /// A schedule of this name exists.
    #[error("the schedule {0} exists: replace it with --replace, or choose another name")]
    ScheduleExists(ScheduleName),
    /// The flow has not ended.
    #[error("the flow {0} has not ended: cancel it first")]
    NotEnded(FlowId),
    /// The flow has no approval of that name.
    #[error("the flow {0} has no approval `{1}`")]
    NoApproval(FlowId, String),
    /// The approval is not open yet.
    #[error("the approval `{0}` is not open yet: jobs before it have not ended")]
    NotAsked(String),
    /// The answer came after the timeout.
    #[error("the time for the approval `{0}` is over: retry the flow from it to ask again")]
    Late(String),
    /// The approval was answered before.
    #[error("the approval `{job}` has ended already{}", first(.answer))]
    Answered {
        /// The approval.
        job: String,
        /// The answer that counted and its actor, as `yes 12`; empty if nobody answered.
        answer: String,
    },
    /// The actor may not answer.
    #[error("actor {1} may not answer `{0}`: its approvers are named in the flow")]
    NoApprover(String, ActorId),
    /// The actor submitted or retried the flow, so it may not answer (`four_eyes`).
    #[error(
        "actor {1} submitted or retried the flow, and `{0}` asks for another actor (`four_eyes`)"
    )]
    FourEyes(String, ActorId),
    /// The flow cannot be retried in this way.
    #[error("flow {flow}: {why}")]
    Retry {
        /// The flow.
        flow: FlowId,
        /// The reason.
        why: RetryError,
    },
    /// Retention has dropped a job whose result others need.
    #[error("the record of job `{job}` of flow {flow} is gone: submit the flow again")]
    JobGone {
        /// The flow.
        flow: FlowId,
        /// The job.
        job: String,
    },
    /// The actor lacks the permission, or a call about the context failed.
    #[error(transparent)]
    Context(#[from] crate::context::ContextError),
    /// A call to the store failed.
    #[error(transparent)]
    Broker(#[from] meshwork_broker::Error),
}

fn place(at: &Option<Position>) -> String {
    at.as_ref().map_or_else(String::new, |at| format!("{at}: "))
}

fn first(answer: &str) -> String {
    match answer.split_once(' ') {
        Some((answer, actor)) => format!(": actor {actor} said {answer}"),
        None => String::new(),
    }
}
