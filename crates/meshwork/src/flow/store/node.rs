//! Places of the plan (a job, or an item of one): the stored form of their states, and the records of their jobs.

use std::time::Duration;

use meshwork_broker::flow::{FlowJob, Flows};
use meshwork_flow::run::Prepared;
use meshwork_model::flow::limits::DEFAULT_APPROVAL_MS;
use meshwork_model::flow::{Node, Plan, Wait, Work};
use meshwork_model::job::NewJob;
use meshwork_model::job::exec::{Exec, Program};
use meshwork_model::job::field;
use meshwork_model::keys::context::ActorId;
use meshwork_model::name::ScriptType;
use meshwork_model::route::Route;
use serde_json::{Value, json};

use super::FlowError;

/// State of a place, as stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    /// The job waits for its prerequisites.
    Waiting,
    /// The `foreach` has this number of items.
    Group(usize),
    /// The job may run, or is an open approval or a delay.
    Released,
    /// The job has ended: `f`, `e`, `c` or `s`, and its position among all ends.
    Ended(char, u64),
}

/// Parses `w 0`, `g 0 3`, `r 0` or `f 0 12`; the second part is the generation.
pub(super) fn parse(text: &str) -> Option<(Seen, u32)> {
    let mut parts = text.split(' ');
    let (word, generation) = (parts.next()?, parts.next()?.parse().ok()?);
    let number = parts.next();
    let seen = match word {
        "w" => Seen::Waiting,
        "r" | "q" => Seen::Released,
        "g" => Seen::Group(number?.parse().ok()?),
        "f" | "e" | "c" | "s" => Seen::Ended(word.chars().next()?, number?.parse().ok()?),
        _ => return None,
    };
    Some((seen, generation))
}

/// Returns the key of the place of a job or an item, as `4` or `4.2`.
pub(super) fn place(job: usize, item: Option<usize>) -> String {
    match item {
        Some(item) => format!("{job}.{item}"),
        None => job.to_string(),
    }
}

/// Returns the name of a job or an item, as `parse[3]`.
pub(super) fn name(node: &Node, item: Option<usize>) -> String {
    match item {
        Some(item) => format!("{}[{item}]", node.name),
        None => node.name.to_string(),
    }
}

/// Returns the deadline of an approval or a delay, in milliseconds since 1970; `None` for an approval without a
/// timeout.
pub(super) fn waits_for(node: &Node, now: u64) -> Option<u64> {
    match &node.work {
        Work::Approve(_) => Some(now + node.timeout_ms.unwrap_or(DEFAULT_APPROVAL_MS)),
        Work::Wait(Wait::For(ms)) => Some(now + ms),
        Work::Wait(Wait::Until(ms)) => Some(*ms),
        Work::Wait(Wait::Message { .. }) => node.timeout_ms.map(|ms| now + ms),
        Work::Run(_) | Work::Flow(_) => None,
    }
}

/// Returns the job of a place, without environment and input, which are unknown until the job may run.
pub(super) fn stored(
    flows: &Flows,
    plan: &Plan,
    caller: ActorId,
    (job, item): (usize, Option<usize>),
    generation: u32,
) -> Result<FlowJob, FlowError> {
    let node = &plan.jobs[job];
    let is_group = node.foreach.is_some() && item.is_none();
    let wrong = |why: &dyn std::fmt::Display| FlowError::Job {
        job: node.name.to_string(),
        why: why.to_string(),
    };
    let kind = if is_group { "group" } else { kind(node) };
    let script_type: ScriptType = kind.parse().map_err(|error| wrong(&error))?;
    let mut route = Route::to(script_type);
    if let Work::Run(run) = &node.work
        && !is_group
    {
        let group = run.group.as_deref().map(str::parse);
        route.group = group.transpose().map_err(|error| wrong(&error))?;
        if let Some(priority) = &run.priority {
            route.priority = priority.parse().map_err(|error| wrong(&error))?;
        }
    }
    let mut new = NewJob::new(flows.unnumbered(caller), route, text(plan, node));
    new.tags = plan
        .tags_of(node)
        .into_iter()
        .filter_map(|tag| tag.parse().ok())
        .collect();
    new.retries = node.retries;
    new.backoff_ms = node.backoff_ms;
    if let Some(ms) = node
        .timeout_ms
        .filter(|_| matches!(node.work, Work::Run(_)))
    {
        new.timeout = Duration::from_millis(ms).as_secs().max(1);
    }
    new.check().map_err(|error| wrong(&error))?;
    Ok(FlowJob {
        node: place(job, item),
        name: name(node, item),
        generation,
        waits: !node.needs.is_empty() || node.compensates.is_some(),
        job: new,
        more: Vec::new(),
    })
}

/// Returns the status of a stored job that may not run yet.
pub(super) fn waiting(node: &Node) -> &'static str {
    match node.needs.is_empty() && node.compensates.is_none() {
        true => "dispatched",
        false => "waiting_for_prerequisites",
    }
}

/// Returns the type of a node's job, or of its items.
fn kind(node: &Node) -> &str {
    match &node.work {
        // No worker of this context may take it.
        Work::Run(run) if run.context.is_some() => "message",
        Work::Run(run) => &run.script_type,
        Work::Approve(_) => "approve",
        Work::Wait(_) => "wait",
        Work::Flow(_) => "flow",
    }
}

/// Returns the script for the record: of a program in the form of `exec` jobs, of an approval its template.
pub(super) fn text(plan: &Plan, node: &Node) -> String {
    match &node.work {
        Work::Run(run) => {
            let script = plan.scripts.get(&run.script).cloned().unwrap_or_default();
            match run.script_type.as_str() {
                ScriptType::EXEC => Exec {
                    program: Program::Script(script),
                    args: Vec::new(),
                }
                .write(),
                _ => script,
            }
        }
        Work::Approve(approve) => approve.question.text.clone(),
        Work::Wait(_) => "wait".to_owned(),
        Work::Flow(key) => key.clone(),
    }
}

/// Returns the fields that are known when the job may run: environment and input.
pub(super) fn released(
    node: &Node,
    work: &Prepared,
    item: Option<(&Value, usize)>,
    flow: u32,
) -> Vec<(&'static str, Vec<u8>)> {
    let mut env = work.env.clone();
    env.insert("FLOW_ID".to_owned(), flow.to_string());
    env.insert("JOB_NAME".to_owned(), node.name.to_string());
    if let Some((_, index)) = item {
        env.insert("ITEM_INDEX".to_owned(), index.to_string());
    }
    let mut fields = vec![(field::ENV_VARS, json!(env).to_string().into_bytes())];
    let input = match item {
        _ if !work.input.is_empty() => Some(Value::Object(work.input.clone())),
        Some((value, _)) => Some(value.clone()),
        None => None,
    };
    match input {
        Some(Value::String(text)) => fields.push((field::INPUT, text.into_bytes())),
        Some(input) => fields.push((field::INPUT, input.to_string().into_bytes())),
        None => {}
    }
    if let Some(question) = &work.question {
        fields.push(("mw_question", question.clone().into_bytes()));
    }
    fields
}
