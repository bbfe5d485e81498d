//! The options of a flow and of its jobs: which go together, and their ranges.

use std::collections::{BTreeMap, BTreeSet};

use super::{FaultKind, Faults, Problem};
use crate::flow::limits;
use crate::flow::plan::{Node, Plan, Run, Text, Wait, Work};
use crate::job::{EnvTooLarge, Tag, limits as of_job};
use crate::name::{Group, RoutingKey, ScriptType};
use crate::route::Priority;
use crate::time::duration;

/// Variables that Meshwork sets for each job of a flow.
const RESERVED_ENV: [&str; 5] = [
    "FLOW_ID",
    "JOB_NAME",
    "ITEM_INDEX",
    "CALLER_ID",
    "CONTEXT_ID",
];

/// Checks what belongs to the whole flow.
pub(super) fn flow(plan: &Plan, faults: &mut Faults) {
    let mut problems = Vec::new();
    env(&plan.env, &mut problems);
    tags(&plan.tags, plan.tags.len(), &mut problems);
    if let Some(ms) = plan.timeout_ms {
        span(
            "timeout",
            ms,
            1..=limits::MAX_WAIT_MS,
            "1ms to ten years",
            &mut problems,
        );
    }
    for (name, text) in &plan.outputs {
        input_name(name, &mut problems);
        length(text, &mut problems);
    }
    for name in plan.inputs.keys() {
        input_name(name, &mut problems);
    }
    for problem in problems {
        faults.flow(FaultKind::Flow(problem));
    }
}

/// Checks what belongs to one job.
pub(super) fn job(plan: &Plan, job: &Node, faults: &mut Faults) {
    let mut problems = Vec::new();
    work(plan, job, &mut problems);
    env(&job.env, &mut problems);
    for name in job.inputs.keys() {
        input_name(name, &mut problems);
    }
    for text in [&job.condition, &job.foreach].into_iter().flatten() {
        length(text, &mut problems);
    }
    if plan.tags.len() <= of_job::MAX_TAGS {
        tags(&job.tags, plan.tags_of(job).len(), &mut problems);
    }
    together(job, &mut problems);
    times(job, &mut problems);
    for problem in problems {
        faults.job(job, problem);
    }
}

fn work(plan: &Plan, job: &Node, problems: &mut Vec<Problem>) {
    match &job.work {
        Work::Run(run) => script(plan, run, problems),
        Work::Approve(approve) => {
            length(&approve.question, problems);
            if approve.approvers.len() > limits::MAX_APPROVERS {
                let value = format!("{} actors", approve.approvers.len());
                problems.push(Problem::Range {
                    option: "approvers",
                    value,
                    range: "at most 100 actors",
                });
            }
        }
        Work::Wait(Wait::For(ms)) => {
            span(
                "for",
                *ms,
                1..=limits::MAX_WAIT_MS,
                "1ms to ten years",
                problems,
            );
        }
        Work::Wait(Wait::Until(_)) => {}
        Work::Wait(Wait::Message { message_type, .. }) => {
            if let Err(error) = message_type.parse::<ScriptType>() {
                problems.push(Problem::Word(error.to_string()));
            }
        }
        Work::Flow(key) => {
            if !plan.flows.contains_key(key) {
                problems.push(Problem::NoFlow(key.clone()));
            }
        }
    }
}

fn script(plan: &Plan, run: &Run, problems: &mut Vec<Problem>) {
    match plan.scripts.get(&run.script) {
        None => problems.push(Problem::Script(format!(
            "the plan has no script {}",
            run.script
        ))),
        Some(text) if text.len() > of_job::MAX_SCRIPT => problems.push(Problem::Script(format!(
            "the script takes {} bytes: at most {} are allowed",
            text.len(),
            of_job::MAX_SCRIPT
        ))),
        Some(text) if text.trim().is_empty() => {
            let problem = "the script is empty: there is nothing to run";
            problems.push(Problem::Script(problem.to_owned()));
        }
        Some(_) => {}
    }
    let words = [
        run.script_type
            .parse::<ScriptType>()
            .err()
            .map(|e| e.to_string()),
        parsed::<Group>(run.group.as_deref()),
        parsed::<RoutingKey>(run.route.as_deref()),
        parsed::<Priority>(run.priority.as_deref()),
    ];
    problems.extend(words.into_iter().flatten().map(Problem::Word));
}

fn parsed<T: std::str::FromStr>(text: Option<&str>) -> Option<String>
where
    T::Err: std::fmt::Display,
{
    let error = text?.parse::<T>().err()?;
    Some(error.to_string())
}

/// Options that need or exclude another one.
fn together(job: &Node, problems: &mut Vec<Problem>) {
    let runs = matches!(job.work, Work::Run(_) | Work::Flow(_));
    let with = "`run`, `script` and `flow`";
    let only_with_runs = [
        ("foreach", job.foreach.is_some()),
        ("retries", job.retries > 0),
        ("backoff", job.backoff_ms.is_some()),
        ("env", !job.env.is_empty()),
        ("with", !job.inputs.is_empty()),
        ("compensates", job.compensates.is_some()),
    ];
    for (option, _) in only_with_runs
        .into_iter()
        .filter(|(_, given)| *given && !runs)
    {
        problems.push(Problem::Misplaced { option, with });
    }
    if job.concurrency.is_some() && job.foreach.is_none() {
        let (option, with) = ("concurrency", "`foreach`");
        problems.push(Problem::Misplaced { option, with });
    }
    if job.backoff_ms.is_some() && job.retries == 0 {
        let (option, with) = ("backoff", "`retries`");
        problems.push(Problem::Misplaced { option, with });
    }
    if job.compensates.is_some() {
        let of_graph = [
            ("needs", !job.needs.is_empty()),
            ("if", job.condition.is_some()),
            ("foreach", job.foreach.is_some()),
            ("continue", job.continue_on_failure),
        ];
        let given = of_graph.into_iter().filter(|(_, given)| *given);
        problems.extend(given.map(|(option, _)| Problem::OfCompensation(option)));
    }
}

/// Numbers and times.
fn times(job: &Node, problems: &mut Vec<Problem>) {
    if let Some(k) = job.concurrency {
        let most = limits::MAX_ITEMS as u64;
        range(
            "concurrency",
            k.into(),
            1..=most,
            "a number from 1 to 10000",
            problems,
        );
    }
    let retries = u64::from(job.retries);
    let most = of_job::MAX_RETRIES.into();
    range(
        "retries",
        retries,
        0..=most,
        "a number from 0 to 100",
        problems,
    );
    if let Some(ms) = job.backoff_ms {
        span(
            "backoff",
            ms,
            0..=of_job::MAX_BACKOFF_MS,
            "at most one hour",
            problems,
        );
    }
    if let Some(ms) = job.timeout_ms {
        match job.work {
            Work::Run(_) => {
                let most = of_job::MAX_TIMEOUT * 1000;
                span("timeout", ms, 1000..=most, "1s to 7d", problems);
            }
            _ => span(
                "timeout",
                ms,
                1..=limits::MAX_WAIT_MS,
                "1ms to ten years",
                problems,
            ),
        }
    }
}

fn span(
    option: &'static str,
    ms: u64,
    allowed: std::ops::RangeInclusive<u64>,
    range: &'static str,
    problems: &mut Vec<Problem>,
) {
    if !allowed.contains(&ms) {
        let value = duration(ms);
        problems.push(Problem::Range {
            option,
            value,
            range,
        });
    }
}

fn range(
    option: &'static str,
    value: u64,
    allowed: std::ops::RangeInclusive<u64>,
    range: &'static str,
    problems: &mut Vec<Problem>,
) {
    if !allowed.contains(&value) {
        let value = value.to_string();
        problems.push(Problem::Range {
            option,
            value,
            range,
        });
    }
}

fn tags(tags: &BTreeSet<String>, count: usize, problems: &mut Vec<Problem>) {
    let faults = tags.iter().filter_map(|tag| tag.parse::<Tag>().err());
    problems.extend(faults.map(|error| Problem::Word(error.to_string())));
    if count > of_job::MAX_TAGS {
        problems.push(Problem::TooManyTags(count));
    }
}

fn length(text: &Text, problems: &mut Vec<Problem>) {
    if text.text.len() > limits::MAX_EXPRESSION {
        problems.push(Problem::ExpressionTooLarge(text.text.len()));
    }
}

fn env(env: &BTreeMap<String, Text>, problems: &mut Vec<Problem>) {
    for (name, value) in env {
        length(value, problems);
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if !begins || !name.chars().all(word) {
            problems.push(Problem::EnvName(name.chars().take(64).collect()));
        } else if RESERVED_ENV.contains(&name.as_str()) {
            problems.push(Problem::EnvReserved(name.clone()));
        }
    }
    let all = env.iter().map(|(name, value)| (name, &value.text));
    problems.extend(EnvTooLarge::check(all).err().map(Problem::EnvTooLarge));
}

/// Inputs and outputs are named as in expressions; letters of either case are allowed.
fn input_name(name: &str, problems: &mut Vec<Problem>) {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic());
    if !begins || name.len() > limits::MAX_NAME || !name.chars().all(word) {
        problems.push(Problem::InputName(name.chars().take(64).collect()));
    }
}
