//! Submits a flow: checks the plan, and stores it with a job for each node.

use meshwork_broker::flow::{FlowJob, MAX_MOVES, NewFlow, Stored};
use meshwork_flow::run::Decider;
use meshwork_flow::times;
use meshwork_macros::boxed;
use meshwork_model::context::MessageType;
use meshwork_model::flow::{Node, Plan, Run, Wait, Work};
use meshwork_model::keys::context::{ActorId, FlowId};
use serde_json::json;

use super::{FlowClient, FlowError, node};

/// Approximate limit of the bytes of jobs in one call.
const MOST_BYTES: usize = 1024 * 1024;

impl FlowClient {
    /// Submits a flow with jobs of `caller`. The plan has the inputs ([`set_inputs`](crate::flow::set_inputs)).
    ///
    /// # Errors
    /// The plan uses a feature that cannot run yet, a job cannot be stored, or the environment of the flow cannot be
    /// evaluated: nothing is stored then. Or a call to the server fails: jobs stored by then never run.
    #[boxed]
    pub async fn submit(&self, plan: &Plan, caller: ActorId) -> Result<FlowId, FlowError> {
        let plan = &times::submitted(plan);
        let jobs = self.jobs(plan, caller)?;
        let mark = uuid::Uuid::new_v4().to_string();
        let text = json!(plan).to_string();
        let env: std::collections::BTreeMap<_, _> = plan
            .env
            .iter()
            .map(|(name, text)| (name, &text.text))
            .collect();
        let fields = [
            ("mw_name", plan.name.clone()),
            ("env_vars", json!(env).to_string()),
            ("result", "{}".to_owned()),
        ];
        let new = loop {
            let id = self
                .flows
                .draw()
                .await?
                .ok_or(FlowError::NoNumbers("flows"))?;
            let mark = &mark;
            let new = NewFlow { id, mark, caller };
            if self.flows.open(new, &text, &fields).await? == Stored::Stored {
                break new;
            }
        };
        self.complete(new, plan, &jobs).await?;
        Ok(new.id)
    }

    /// Checks a plan, and returns its jobs.
    pub(super) fn jobs(&self, plan: &Plan, caller: ActorId) -> Result<Vec<FlowJob>, FlowError> {
        runnable(plan)?;
        Decider::new(plan)
            .and_then(|decider| decider.check_environments())
            .map_err(|error| FlowError::Plan(error.to_string()))?;
        let jobs =
            (0..plan.jobs.len()).map(|job| node::stored(&self.flows, plan, caller, (job, None), 0));
        jobs.collect()
    }

    /// Stores the jobs of a flow whose record and plan are stored, and starts it. May be repeated, also by others.
    pub(super) async fn complete(
        &self,
        new: NewFlow<'_>,
        plan: &Plan,
        jobs: &[FlowJob],
    ) -> Result<(), FlowError> {
        let mut from = 0;
        while from < jobs.len() {
            let size = |job: &FlowJob| job.job.script.len();
            let mut bytes = 0;
            let many = jobs[from..].iter().take(MAX_MOVES).take_while(|job| {
                let fits = bytes == 0 || bytes + size(job) <= MOST_BYTES;
                bytes += size(job).max(1);
                fits
            });
            let to = from + many.count();
            match self.flows.add(new, &jobs[from..to]).await? {
                Stored::Stored => from = to,
                Stored::Again => {}
                Stored::None => return Err(FlowError::NoNumbers("jobs")),
                Stored::Taken => return Err(FlowError::NoFlow(new.id)),
            }
        }
        let names = self.flows.names(new.id).await?;
        let numbers = plan
            .jobs
            .iter()
            .filter_map(|job| names.get(job.name.as_str()));
        let numbers: Vec<&str> = numbers.map(String::as_str).collect();
        let fields = [("jobs", format!("[{}]", numbers.join(",")))];
        match self.flows.seal(new, plan.timeout_ms, &fields).await? {
            Stored::Stored => Ok(()),
            _ => Err(FlowError::NoFlow(new.id)),
        }
    }
}

/// Refuses a plan with a feature that no step can run yet.
pub(super) fn runnable(plan: &Plan) -> Result<(), FlowError> {
    for job in &plan.jobs {
        if let Some(what) = not_yet(job) {
            let (job, at) = (job.name.to_string(), job.at);
            return Err(FlowError::NotYet { job, what, at });
        }
    }
    Ok(())
}

/// Returns a sentence for each job that a submission refuses, since no step can run it yet.
#[must_use]
pub fn not_runnable(plan: &Plan) -> Vec<String> {
    let refused = plan.jobs.iter().filter_map(|job| {
        let what = not_yet(job)?;
        let place = job.at.map_or_else(String::new, |at| format!("{at}: "));
        Some(format!(
            "{place}job `{}` uses {what}, which cannot be run yet: `flow submit` and `flow run` refuse it",
            job.name
        ))
    });
    refused.collect()
}

/// Returns what a message does not bring to another context.
fn in_context(node: &Node, run: &Run) -> Option<&'static str> {
    match () {
        () if node.foreach.is_some() => Some("`foreach` in another context"),
        () if !node.inputs.is_empty() => Some("`with` in another context (give values in `env`)"),
        () if run.group.is_some() || run.route.is_some() || run.priority.is_some() => {
            Some("`group`, `route` or `priority` in another context")
        }
        () => None,
    }
}

fn not_yet(node: &Node) -> Option<&'static str> {
    match &node.work {
        Work::Flow(_) => Some("a nested flow (`flow`)"),
        Work::Run(run) if run.context.is_some() => in_context(node, run),
        Work::Wait(Wait::Message { message_type, .. })
            if message_type.parse::<MessageType>().is_err() =>
        {
            Some("a message of an unknown type (job, chat and mail are known)")
        }
        Work::Run(run) if run.route.is_some() => Some("a routing key (`route`)"),
        Work::Approve(_) | Work::Wait(_) if node.foreach.is_some() => {
            Some("`foreach` with a job that no script runs")
        }
        Work::Run(_) | Work::Approve(_) | Work::Wait(_) => None,
    }
}
