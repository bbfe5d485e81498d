//! `retry --from`: runs some jobs of an ended flow again; all others keep their results.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::decide::Decider;
use super::state::{End, FlowState, ItemRun, JobRun, Phase};
use crate::expr;

/// The part of a job that runs again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryFrom {
    /// The job; of a `foreach` only the items that did not finish.
    Job(String),
    /// One item of a `foreach`.
    Item(String, usize),
    /// The job; a `foreach` is expanded again.
    All(String),
}

/// The reason why a flow does not run again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RetryError {
    /// The flow still runs.
    #[error("the flow has not ended: cancel it first, or wait for its end")]
    NotEnded,
    /// The flow has no such job.
    #[error("the flow has no job `{0}` that could be retried")]
    Unknown(String),
    /// The job has no such item.
    #[error("the job `{0}` has no item {1}")]
    NoItem(String, usize),
    /// A job was undone by its compensation and would not run again.
    #[error("job `{0}` was undone by its compensation: retry from it, or from a job before it")]
    Undone(String),
}

/// Gives a new generation to jobs of an ended flow: the named ones, those that the end of the flow cancelled or
/// skipped, and all that depend on them. Returns all places at which the retry starts. On an error nothing has changed.
///
/// # Errors
///
/// The flow has not ended, a name is unknown, or a job was undone and would not run again.
pub fn retry(
    decider: &Decider<'_>,
    state: &mut FlowState,
    from: &[RetryFrom],
) -> Result<Vec<RetryFrom>, RetryError> {
    if state.outcome.is_none() {
        return Err(RetryError::NotEnded);
    }
    let mut from = from.to_vec();
    let named: BTreeSet<usize> = starts(decider, state, &from)?.into_keys().collect();
    let halted = halted(decider, state).into_iter();
    let halted = halted.filter(|job| !named.contains(job));
    from.extend(halted.map(|job| RetryFrom::All(decider.plan.jobs[job].name.to_string())));
    let starts = starts(decider, state, &from)?;
    let again = again(decider, &starts);
    for (partner, target) in partners(decider) {
        let ran = state.jobs[partner].phase.end().is_some();
        if ran && !again.contains_key(&target) {
            let name = decider.plan.jobs[target].name.to_string();
            return Err(RetryError::Undone(name));
        }
    }
    state.retries += 1;
    renew_all(decider, state, &again);
    state.stop = None;
    state.outcome = None;
    state.retried_at = state.ends;
    Ok(from)
}

/// Gives the generation of the last retry to the jobs that it includes and that do not have it yet. `from` is what
/// [`retry`] returned.
///
/// # Errors
///
/// A name is unknown.
pub fn renew(
    decider: &Decider<'_>,
    state: &mut FlowState,
    from: &[RetryFrom],
) -> Result<(), RetryError> {
    let starts = starts(decider, state, from)?;
    renew_all(decider, state, &again(decider, &starts));
    Ok(())
}

/// Jobs at which a retry starts, each with its places.
type Starts<'f> = BTreeMap<usize, Vec<&'f RetryFrom>>;

fn starts<'f>(
    decider: &Decider<'_>,
    state: &FlowState,
    from: &'f [RetryFrom],
) -> Result<Starts<'f>, RetryError> {
    let mut starts = Starts::new();
    for place in from {
        let (RetryFrom::Job(name) | RetryFrom::Item(name, _) | RetryFrom::All(name)) = place;
        let job = decider
            .graph
            .number(name)
            .filter(|job| decider.graph.level_of(*job).is_some());
        let job = job.ok_or_else(|| RetryError::Unknown(name.clone()))?;
        let items = state.jobs[job].items.as_ref().map_or(0, Vec::len);
        match place {
            RetryFrom::Item(name, item) if *item >= items => {
                return Err(RetryError::NoItem(name.clone(), *item));
            }
            _ => starts.entry(job).or_default().push(place),
        }
    }
    Ok(starts)
}

/// Returns the jobs that the end of the flow cancelled or skipped, without which it could not finish. A job whose `if`
/// was false is not among them: its ancestors had ended, so the answer would be the same.
fn halted(decider: &Decider<'_>, state: &FlowState) -> Vec<usize> {
    let halted_at = decider.halted_at(state);
    let jobs = state.jobs.iter().enumerate().filter(|(job, run)| {
        let condition = decider.plan.jobs[*job].condition.as_ref();
        match run.phase.end() {
            Some(End::Cancelled) => true,
            Some(End::Skipped) => {
                let after = halted_at.is_some_and(|number| run.ended_as > Some(number));
                after && !condition.is_some_and(expr::asks_for_failure)
            }
            _ => false,
        }
    });
    let jobs = jobs.map(|(job, _)| job);
    jobs.filter(|job| decider.graph.level_of(*job).is_some())
        .collect()
}

/// Returns the jobs that a retry includes. A job without places is included as a whole, since it depends on another
/// one.
fn again<'f>(decider: &Decider<'_>, starts: &Starts<'f>) -> Starts<'f> {
    let mut again = starts.clone();
    for start in starts.keys() {
        let jobs = decider.graph.with_descendants(*start).into_iter();
        again.extend(jobs.filter(|job| job != start).map(|job| (job, Vec::new())));
    }
    again
}

/// Returns the compensations, each with the job that it undoes.
fn partners(decider: &Decider<'_>) -> Vec<(usize, usize)> {
    let jobs = decider.plan.jobs.iter().enumerate();
    jobs.filter_map(|(partner, node)| {
        let undone = node.compensates.as_ref()?;
        Some((partner, decider.graph.number(undone.as_str())?))
    })
    .collect()
}

fn renew_all(decider: &Decider<'_>, state: &mut FlowState, again: &Starts<'_>) {
    let generation = state.retries;
    for (job, places) in again {
        let run = &mut state.jobs[*job];
        if run.generation < generation {
            *run = renewed(run, places, generation);
        }
    }
    for (partner, _) in partners(decider) {
        let run = &mut state.jobs[partner];
        if run.generation < generation && run.phase.end().is_some() {
            *run = JobRun::new(generation);
        }
    }
}

/// Returns a job in its new generation: reset as a whole, or only the items that the places name.
fn renewed(run: &JobRun, places: &[&RetryFrom], generation: u32) -> JobRun {
    let mut next = JobRun::new(generation);
    let all = places.is_empty()
        || places
            .iter()
            .any(|place| matches!(place, RetryFrom::All(_)));
    let Some(items) = run.items.as_ref().filter(|_| !all) else {
        return next;
    };
    let mut items = items.clone();
    for (number, item) in items.iter_mut().enumerate() {
        let again = places.iter().any(|place| match place {
            RetryFrom::Item(_, wanted) => number == *wanted,
            _ => !matches!(item.phase, Phase::Ended(End::Finished(_))),
        });
        if again {
            *item = ItemRun::waiting(item.value.clone(), generation);
        }
    }
    next.items = Some(items);
    next
}
