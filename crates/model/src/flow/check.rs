//! The checks of a plan that need no expressions: names, needs, cycles, options that go together, bounds.

mod options;

use std::collections::{HashMap, HashSet};

use super::graph::{Cycle, Graph};
use super::limits;
use super::name::{NodeName, Position};
use super::plan::{Node, Plan, Work};
use crate::job::EnvTooLarge;

/// Something that is wrong with a plan, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The place in the file.
    pub at: Option<Position>,
    /// The fault.
    pub kind: FaultKind,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.kind.fmt(f)
    }
}

/// The faults of a plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultKind {
    /// The name of the flow.
    #[error("{0:?} is no name of a flow: give 1 to 64 of the characters A-Z a-z 0-9 _ -")]
    Name(String),
    /// There is nothing to run.
    #[error("the flow has no jobs: give at least one under `jobs`")]
    NoJobs,
    /// Too many jobs.
    #[error("the flow has {0} jobs, with those of nested flows: at most {most} are allowed", most = limits::MAX_JOBS)]
    TooManyJobs(usize),
    /// Flows within flows within flows.
    #[error("flows are nested {0} levels deep: at most {most} are allowed", most = limits::MAX_DEPTH)]
    TooDeep(usize),
    /// Two jobs of the same name.
    #[error("two jobs are named `{0}`: give each a name of its own")]
    Twice(NodeName),
    /// Jobs that wait for each other.
    #[error("{0}; remove one of these needs")]
    Cycle(Cycle),
    /// A fault of one job.
    #[error("job `{0}`: {1}")]
    Job(NodeName, Problem),
    /// The value of an environment variable, an output or a timeout of the whole flow.
    #[error("{0}")]
    Flow(Problem),
}

/// Something that is wrong with one job.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// A name that no job has.
    #[error("`{option}` names `{name}`, but no job has this name{}", similar(.hint))]
    Unknown {
        /// `needs` or `compensates`.
        option: &'static str,
        /// The name.
        name: NodeName,
        /// A job whose name is similar.
        hint: Option<NodeName>,
    },
    /// A need that is written twice.
    #[error("it needs `{0}` twice: name it once")]
    NeedTwice(NodeName),
    /// More needs than a job may have.
    #[error("it needs {0} jobs: at most {most} are allowed; join them in groups", most = limits::MAX_NEEDS)]
    TooManyNeeds(usize),
    /// A need that is a compensation.
    #[error(
        "it needs `{0}`, which compensates another job and is no part of the graph: leave it out"
    )]
    NeedsCompensation(NodeName),
    /// A compensation that undoes something that cannot be undone.
    #[error("it compensates `{0}`, which is a compensation itself: name a job that is none")]
    CompensatesCompensation(NodeName),
    /// Two compensations of one job.
    #[error("`{0}` is compensated by `{1}` already: a job has one compensation")]
    CompensatedTwice(NodeName, NodeName),
    /// An option that a compensation does not have.
    #[error(
        "`{0}` does not go with `compensates`: a compensation runs when the job that it undoes is undone"
    )]
    OfCompensation(&'static str),
    /// An option for another kind of work.
    #[error("`{option}` goes with {with} only: leave it out")]
    Misplaced {
        /// The option.
        option: &'static str,
        /// The work that has it.
        with: &'static str,
    },
    /// A number or a time outside its range.
    #[error("`{option}` is {value}: give {range}")]
    Range {
        /// The option.
        option: &'static str,
        /// Its value.
        value: String,
        /// The values that are allowed.
        range: &'static str,
    },
    /// A variable of the environment that no program could have.
    #[error(
        "{0:?} is no name of an environment variable: use letters, digits and _, no digit first"
    )]
    EnvName(String),
    /// A variable that Meshwork sets.
    #[error("the environment variable `{0}` is set by Meshwork: choose another name")]
    EnvReserved(String),
    /// More environment than a program takes.
    #[error("{0}")]
    EnvTooLarge(EnvTooLarge),
    /// An expression or template that is too long.
    #[error("an expression takes {0} bytes: at most {most} are allowed", most = limits::MAX_EXPRESSION)]
    ExpressionTooLarge(usize),
    /// A name of an output or input.
    #[error(
        "{0:?} is no name of an input or output: use letters, digits and _, a letter first, at most 64"
    )]
    InputName(String),
    /// A script that the plan does not have, or that is too large.
    #[error("{0}")]
    Script(String),
    /// The name of a type, group or route.
    #[error("{0}")]
    Word(String),
    /// More tags than a job may have, those of the flow included.
    #[error("{0} tags are too many, with those of the flow: at most {most}", most = crate::job::limits::MAX_TAGS)]
    TooManyTags(usize),
    /// A flow that the plan does not have.
    #[error("the plan has no nested flow `{0}`")]
    NoFlow(String),
}

fn similar(hint: &Option<NodeName>) -> String {
    hint.as_ref()
        .map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

/// All faults of a plan, in the order of its jobs. Empty: the plan can run, if its expressions can be evaluated.
#[must_use]
pub fn check(plan: &Plan) -> Vec<Fault> {
    let mut faults = Faults(Vec::new());
    let (jobs, depth) = (plan.total_jobs(), plan.depth());
    if plan.name.parse::<crate::name::Group>().is_err() {
        faults.flow(FaultKind::Name(plan.name.clone()));
    }
    if plan.jobs.is_empty() {
        faults.flow(FaultKind::NoJobs);
    }
    if jobs > limits::MAX_JOBS {
        faults.flow(FaultKind::TooManyJobs(jobs));
        return faults.0;
    }
    if depth > limits::MAX_DEPTH {
        faults.flow(FaultKind::TooDeep(depth));
        return faults.0;
    }
    options::flow(plan, &mut faults);
    names(plan, &mut faults);
    for job in &plan.jobs {
        options::job(plan, job, &mut faults);
    }
    if let Err(cycle) = Graph::new(plan) {
        let at = plan.job(cycle.0[0].as_str()).and_then(|job| job.at);
        let kind = FaultKind::Cycle(cycle);
        faults.0.push(Fault { at, kind });
    }
    for nested in plan.flows.values() {
        faults.0.extend(check(nested));
    }
    faults.0
}

/// Needs and compensations: names that are there, once, and of the right kind.
fn names(plan: &Plan, faults: &mut Faults) {
    let mut jobs: HashMap<&NodeName, &Node> = HashMap::new();
    for job in &plan.jobs {
        if jobs.insert(&job.name, job).is_some() {
            let kind = FaultKind::Twice(job.name.clone());
            faults.0.push(Fault { at: job.at, kind });
        }
    }
    let unknown = |option, name: &NodeName| Problem::Unknown {
        option,
        name: name.clone(),
        hint: closest(name, jobs.keys().copied()),
    };
    let mut undone: HashMap<&NodeName, &NodeName> = HashMap::new();
    for job in &plan.jobs {
        if job.needs.len() > limits::MAX_NEEDS {
            faults.job(job, Problem::TooManyNeeds(job.needs.len()));
            continue;
        }
        let mut seen = HashSet::new();
        for need in &job.needs {
            match jobs.get(need) {
                None => faults.job(job, unknown("needs", need)),
                Some(other) if other.compensates.is_some() => {
                    faults.job(job, Problem::NeedsCompensation(need.clone()));
                }
                Some(_) if !seen.insert(need) => faults.job(job, Problem::NeedTwice(need.clone())),
                Some(_) => {}
            }
        }
        let Some(target) = &job.compensates else {
            continue;
        };
        match jobs.get(target) {
            None => faults.job(job, unknown("compensates", target)),
            Some(other) if other.compensates.is_some() => {
                faults.job(job, Problem::CompensatesCompensation(target.clone()));
            }
            Some(_) => {
                if let Some(first) = undone.insert(target, &job.name) {
                    let problem = Problem::CompensatedTwice(target.clone(), first.clone());
                    faults.job(job, problem);
                }
            }
        }
    }
}

/// The name that differs in the fewest places, two at most.
fn closest<'a>(name: &NodeName, names: impl Iterator<Item = &'a NodeName>) -> Option<NodeName> {
    let near = names.map(|other| (distance(name.as_str(), other.as_str()), other));
    let near = near.filter(|(distance, _)| *distance <= 2).min();
    near.map(|(_, other)| other.clone())
}

/// The number of letters to change, add or remove.
#[must_use]
pub fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.bytes().enumerate() {
            let cost = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = cost.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// The jobs that change nothing: approvals and waits that nobody needs, and jobs that neither need another one nor are
/// needed while all others are connected. `used` holds the names that expressions of the flow's outputs use.
#[must_use]
pub fn unused(plan: &Plan, used: &HashSet<NodeName>) -> Vec<NodeName> {
    let Ok(graph) = Graph::new(plan) else {
        return Vec::new();
    };
    let undone: HashSet<&NodeName> = plan
        .jobs
        .iter()
        .filter_map(|job| job.compensates.as_ref())
        .collect();
    let connected = |n: usize| !graph.needs(n).is_empty() || !graph.dependents(n).is_empty();
    let others = (0..plan.jobs.len()).any(connected);
    let idle = |(n, job): &(usize, &Node)| {
        let gate = matches!(job.work, Work::Approve(_) | Work::Wait(_));
        let needed = !graph.dependents(*n).is_empty();
        job.compensates.is_none()
            && !undone.contains(&job.name)
            && !used.contains(&job.name)
            && ((gate && !needed && plan.jobs.len() > 1) || (others && !connected(*n)))
    };
    let jobs = plan.jobs.iter().enumerate().filter(idle);
    jobs.map(|(_, job)| job.name.clone()).collect()
}

/// Faults while they are collected.
struct Faults(Vec<Fault>);

impl Faults {
    fn flow(&mut self, kind: FaultKind) {
        self.0.push(Fault { at: None, kind });
    }

    fn job(&mut self, job: &Node, problem: Problem) {
        let kind = FaultKind::Job(job.name.clone(), problem);
        self.0.push(Fault { at: job.at, kind });
    }
}
