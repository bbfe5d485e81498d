//! The flow of a file: its options, and those of each job.

use std::collections::BTreeSet;

use meshwork_model::flow::{FlowSchedule, Input, Node, NodeName, Plan, Work};
use meshwork_model::job::Tag;
use meshwork_model::schedule::timing::Recurrence;
use meshwork_model::spread::SpreadName;

use super::fields::{Faults, Fields};
use super::tree::{Data, Key, Tree};
use super::work::Sources;
use super::{closing, matrix, work};
use crate::fault::spread_and_schedule;
use crate::times::Starts as _;

/// The options of a flow.
pub(super) const FLOW: &[&str] = &[
    "flow",
    "env",
    "inputs",
    "timeout",
    "fail_fast",
    "tags",
    "schedule",
    "spread",
    "jobs",
    "on_failure",
    "finally",
    "outputs",
];
/// The options of a schedule.
pub(super) const SCHEDULE: &[&str] = &["cron", "every", "tz", "overlap", "catch_up", "with"];
/// The options of a job.
pub(super) const JOB: &[&str] = &[
    "run",
    "script",
    "type",
    "approve",
    "wait",
    "flow",
    "needs",
    "if",
    "foreach",
    "matrix",
    "concurrency",
    "retries",
    "backoff",
    "timeout",
    "continue",
    "compensates",
    "env",
    "with",
    "tags",
    "group",
    "route",
    "priority",
    "context",
    "approvers",
    "four_eyes",
];
/// The plan of a file.
pub(super) fn flow(tree: Tree, sources: &mut dyn Sources, faults: &mut Faults) -> Plan {
    let mut plan = Plan::new("");
    let (mut names, mut closing) = (Vec::new(), [Vec::new(), Vec::new()]);
    if let Some(mut fields) = Fields::new("the flow", tree, FLOW, faults) {
        let at = fields.at;
        if !fields.has("flow") {
            fields.add(at, "`flow` is missing: give the name of the flow");
        }
        plan.name = fields
            .text("flow")
            .map_or_else(String::new, |name| name.text);
        plan.env = fields.texts("env").into_iter().collect();
        let inputs = fields.map("inputs").into_iter();
        plan.inputs = inputs.map(|(key, tree)| (key.text, tree.json())).collect();
        plan.timeout_ms = fields.span("timeout");
        plan.fail_fast = fields.flag("fail_fast").unwrap_or(true);
        plan.tags = tags(&mut fields);
        if let Some(tree) = fields.take("schedule") {
            plan.schedule = schedule(tree, &mut fields);
            if let Some(given) = &plan.schedule
                && let Err(error) = given.started(&plan)
            {
                let at = given.at.unwrap_or(fields.at);
                fields.add(at, format!("`schedule`: {error}"));
            }
        }
        plan.spread = spread(&mut fields, plan.schedule.is_some());
        plan.outputs = fields.texts("outputs").into_iter().collect();
        names = fields.map("jobs");
        closing = ["on_failure", "finally"].map(|option| fields.map(option));
        fields.finish();
    }
    for (key, tree) in names {
        if let Some(node) = job(key, tree, &mut plan, sources, faults) {
            plan.jobs.push(node);
        }
    }
    for (entries, condition) in closing.into_iter().zip(["failed()", "always()"]) {
        let nodes = entries.into_iter();
        let nodes = nodes.filter_map(|(key, tree)| job(key, tree, &mut plan, sources, faults));
        let nodes = nodes.collect();
        closing::add(&mut plan, nodes, condition);
    }
    plan
}

fn job(
    key: Key,
    tree: Tree,
    plan: &mut Plan,
    sources: &mut dyn Sources,
    faults: &mut Faults,
) -> Option<Node> {
    let name = match key.text.parse::<NodeName>() {
        Ok(name) => name,
        Err(error) => {
            faults.add(key.at, error.to_string());
            return None;
        }
    };
    let mut fields = Fields::new(format!("job `{name}`"), tree, JOB, faults)?;
    let work = work::read(&mut fields, key.at, plan, sources);
    let mut node = Node::new(name, Work::Flow(String::new()));
    node.at = Some(key.at);
    for tree in fields.list("needs") {
        node.needs.extend(need(&tree, "needs", &mut fields));
    }
    node.condition = fields.expression("if");
    node.foreach = match fields.has("matrix") {
        true => matrix::read(&mut fields),
        false => fields.expression("foreach"),
    };
    node.concurrency = fields.number("concurrency");
    node.retries = fields.number("retries").unwrap_or(0);
    node.backoff_ms = fields.span("backoff");
    node.timeout_ms = fields.span("timeout");
    node.continue_on_failure = fields.flag("continue").unwrap_or(false);
    if let Some(tree) = fields.take("compensates") {
        node.compensates = need(&tree, "compensates", &mut fields);
    }
    node.env = fields.texts("env").into_iter().collect();
    let with = fields.map("with").into_iter();
    let input = |tree: Tree| Input {
        value: tree.json(),
        at: Some(tree.at),
    };
    node.inputs = with.map(|(key, tree)| (key.text, input(tree))).collect();
    node.tags = tags(&mut fields);
    fields.finish();
    node.work = work?;
    Some(node)
}

/// The times at which a deployed flow starts: a cron expression alone, or a map of options.
fn schedule(tree: Tree, fields: &mut Fields<'_>) -> Option<FlowSchedule> {
    let at = Some(tree.at);
    if let Data::Text(rhythm) = tree.data {
        return Some(FlowSchedule {
            rhythm,
            at,
            ..FlowSchedule::default()
        });
    }
    let mut of = fields.nested("schedule", tree, SCHEDULE)?;
    let mut text = |name: &str| of.text(name).map(|text| text.text);
    let (cron, every) = (text("cron"), text("every"));
    let (zone, overlap, catch_up) = (text("tz"), text("overlap"), text("catch_up"));
    let inputs = of.map("with").into_iter();
    let inputs = inputs.map(|(key, tree)| (key.text, tree.json())).collect();
    let rhythm = match (cron, every) {
        (Some(cron), None) => Some(cron),
        (None, Some(every)) => match Recurrence::every(&every) {
            Ok(every) => Some(every.to_string()),
            Err(error) => {
                of.add(of.at, format!("`every`: {error}"));
                None
            }
        },
        _ => {
            of.add(of.at, "give `cron` or `every`, one of them");
            None
        }
    };
    of.finish();
    Some(FlowSchedule {
        rhythm: rhythm?,
        zone,
        overlap,
        catch_up,
        inputs,
        at,
    })
}

/// The spread queue in one of whose parts the flow runs.
fn spread(fields: &mut Fields<'_>, is_scheduled: bool) -> Option<SpreadName> {
    let text = fields.text("spread")?;
    let at = text.at.unwrap_or(fields.at);
    let read = text.text.parse::<SpreadName>();
    match read {
        Ok(name) if is_scheduled => fields.add(at, spread_and_schedule(&name)),
        Ok(name) => return Some(name),
        Err(error) => fields.add(at, format!("`spread`: {error}")),
    }
    None
}

/// The tags of a flow or job.
fn tags(fields: &mut Fields<'_>) -> BTreeSet<String> {
    let mut tags = BTreeSet::new();
    for tree in fields.list("tags") {
        match &tree.data {
            Data::Text(text) => match text.parse::<Tag>() {
                Ok(_) => drop(tags.insert(text.clone())),
                Err(error) => fields.add(tree.at, error.to_string()),
            },
            _ => {
                let message = format!("a tag is a text, not {}: quote it", tree.shown());
                fields.add(tree.at, message);
            }
        }
    }
    tags
}

/// The name of another job.
fn need(tree: &Tree, option: &str, fields: &mut Fields<'_>) -> Option<NodeName> {
    let read = match &tree.data {
        Data::Text(text) => text.parse::<NodeName>().map_err(|error| error.to_string()),
        _ => Err(format!("a job is named by a text, not {}", tree.shown())),
    };
    match read {
        Ok(name) => Some(name),
        Err(error) => {
            fields.add(tree.at, format!("`{option}`: {error}"));
            None
        }
    }
}
