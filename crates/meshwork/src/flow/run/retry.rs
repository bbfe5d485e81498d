//! `retry --from`: an ended flow starts anew at some of its jobs; all others keep their results.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::decide::Decider;
use super::state::{End, FlowState, ItemRun, JobRun, Phase};

/// The part of a job that runs again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum From {
    /// The job; of a `foreach` the items that did not finish.
    Job(String),
    /// One item of a `foreach`.
    Item(String, usize),
    /// The job; a `foreach` is expanded anew.
    All(String),
}

/// The reason why a flow does not run again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RetryError {
    /// The flow still runs.
    #[error("the flow has not ended: cancel it first, or wait for its end")]
    NotEnded,
    /// No such job.
    #[error("the flow has no job `{0}` that could be retried")]
    Unknown(String),
    /// No such item.
    #[error("the job `{0}` has no item {1}")]
    NoItem(String, usize),
    /// A job that was undone would stay undone.
    #[error("job `{0}` was undone by its compensation: retry from it, or from a job before it")]
    Undone(String),
}

/// Starts an ended flow anew: the jobs that are named, all that depend on them, and those that were stopped or skipped get a
/// new generation. On an error nothing has changed.
///
/// # Errors
///
/// A flow that has not ended, a name that is not there, or a job that was undone and would not run again.
pub fn retry(
    decider: &Decider<'_>,
    state: &mut FlowState,
    from: &[From],
) -> Result<(), RetryError> {
    if state.outcome.is_none() {
        return Err(RetryError::NotEnded);
    }
    let starts = starts(decider, state, from)?;
    let again = again(decider, state, &starts);
    for (partner, target) in partners(decider) {
        let ran = state.jobs[partner].phase.end().is_some();
        if ran && !again.contains(&target) {
            let name = decider.plan.jobs[target].name.to_string();
            return Err(RetryError::Undone(name));
        }
    }
    state.retries += 1;
    renew_all(decider, state, &starts);
    state.stop = None;
    state.outcome = None;
    state.retried_at = state.ends;
    Ok(())
}

/// Gives the generation of the last retry to the jobs that it includes and that do not have it yet.
///
/// # Errors
///
/// A name that is not there.
pub(in crate::flow) fn renew(
    decider: &Decider<'_>,
    state: &mut FlowState,
    from: &[From],
) -> Result<(), RetryError> {
    let starts = starts(decider, state, from)?;
    renew_all(decider, state, &starts);
    Ok(())
}

/// A job at which a retry starts, by its number.
type Start<'f> = (usize, &'f From);

fn starts<'f>(
    decider: &Decider<'_>,
    state: &FlowState,
    from: &'f [From],
) -> Result<Vec<Start<'f>>, RetryError> {
    let start = |place: &'f From| {
        let (From::Job(name) | From::Item(name, _) | From::All(name)) = place;
        let job = decider
            .graph
            .number(name)
            .filter(|job| decider.graph.level_of(*job).is_some());
        let job = job.ok_or_else(|| RetryError::Unknown(name.clone()))?;
        let items = state.jobs[job].items.as_ref().map_or(0, Vec::len);
        match place {
            From::Item(name, item) if *item >= items => {
                Err(RetryError::NoItem(name.clone(), *item))
            }
            _ => Ok((job, place)),
        }
    };
    from.iter().map(start).collect()
}

/// The jobs that a retry includes: those at which it starts, all that depend on them, and those that were stopped or skipped.
/// The flow could not finish without these; one whose `if` was false is skipped once more.
fn again(decider: &Decider<'_>, state: &FlowState, starts: &[Start<'_>]) -> BTreeSet<usize> {
    let dependents = starts
        .iter()
        .flat_map(|(job, _)| decider.graph.with_descendants(*job));
    let idle = (0..state.jobs.len()).filter(|job| {
        let end = state.jobs[*job].phase.end();
        let did_not_run = matches!(end, Some(End::Cancelled | End::Skipped));
        did_not_run && decider.graph.level_of(*job).is_some()
    });
    dependents.chain(idle).collect()
}

/// Compensations, each with the job that it undoes.
fn partners(decider: &Decider<'_>) -> Vec<(usize, usize)> {
    let jobs = decider.plan.jobs.iter().enumerate();
    jobs.filter_map(|(partner, node)| {
        let undone = node.compensates.as_ref()?;
        Some((partner, decider.graph.number(undone.as_str())?))
    })
    .collect()
}

fn renew_all(decider: &Decider<'_>, state: &mut FlowState, starts: &[Start<'_>]) {
    let generation = state.retries;
    for job in again(decider, state, starts) {
        let run = &mut state.jobs[job];
        if run.generation < generation {
            let start = starts.iter().find(|(start, _)| *start == job);
            *run = renewed(run, start.map(|(_, place)| *place), generation);
        }
    }
    for (partner, _) in partners(decider) {
        let run = &mut state.jobs[partner];
        if run.generation < generation && run.phase.end().is_some() {
            *run = JobRun::new(generation);
        }
    }
}

/// A job in its new generation. `place` is given for one at which the retry starts; one that depends on it is as new.
fn renewed(run: &JobRun, place: Option<&From>, generation: u32) -> JobRun {
    let mut next = JobRun::new(generation);
    let (Some(items), Some(From::Job(_) | From::Item(..))) = (&run.items, place) else {
        return next;
    };
    let mut items = items.clone();
    for (number, item) in items.iter_mut().enumerate() {
        let again = match place {
            Some(From::Item(_, wanted)) => number == *wanted,
            _ => !matches!(item.phase, Phase::Ended(End::Finished(_))),
        };
        if again {
            *item = ItemRun::waiting(item.value.clone(), generation);
        }
    }
    next.items = Some(items);
    next
}
