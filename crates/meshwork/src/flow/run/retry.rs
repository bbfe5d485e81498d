//! `retry --from`: an ended flow starts anew at some of its jobs; all others keep their results.

use std::collections::BTreeSet;

use super::decide::Decider;
use super::state::{End, FlowState, JobRun, Phase};

/// The part of a job that runs again.
#[derive(Debug, Clone, PartialEq, Eq)]
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

/// Starts an ended flow anew: the jobs that are named and all that depend on them get a new generation. On an error
/// nothing has changed.
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
    let mut starts = Vec::new();
    for place in from {
        let (From::Job(name) | From::Item(name, _) | From::All(name)) = place;
        let job = decider
            .graph
            .number(name)
            .filter(|job| decider.graph.level_of(*job).is_some());
        let job = job.ok_or_else(|| RetryError::Unknown(name.clone()))?;
        let items = state.jobs[job].items.as_ref().map_or(0, Vec::len);
        if let From::Item(name, item) = place
            && *item >= items
        {
            return Err(RetryError::NoItem(name.clone(), *item));
        }
        starts.push((job, place));
    }
    let again: BTreeSet<usize> = starts
        .iter()
        .flat_map(|(job, _)| decider.graph.with_descendants(*job))
        .collect();
    let partners: Vec<(usize, usize)> = (0..state.jobs.len())
        .filter_map(|partner| {
            let undone = decider.plan.jobs[partner].compensates.as_ref()?;
            Some((partner, decider.graph.number(undone.as_str())?))
        })
        .collect();
    for (partner, target) in &partners {
        let ran = state.jobs[*partner].phase.end().is_some();
        if ran && !again.contains(target) {
            let name = decider.plan.jobs[*target].name.to_string();
            return Err(RetryError::Undone(name));
        }
    }
    for job in again {
        let place = starts
            .iter()
            .find(|(start, _)| *start == job)
            .map(|(_, place)| *place);
        state.jobs[job] = renewed(&state.jobs[job], place);
    }
    for (partner, _) in partners {
        if state.jobs[partner].phase.end().is_some() {
            state.jobs[partner] = JobRun::new(state.jobs[partner].generation + 1);
        }
    }
    state.stop = None;
    state.outcome = None;
    state.retried_at = state.ends;
    Ok(())
}

/// The next generation of a job. `place` is given for the job that a retry names; one that depends on it starts anew.
fn renewed(run: &JobRun, place: Option<&From>) -> JobRun {
    let generation = run.generation + 1;
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
            item.generation = generation;
            item.phase = Phase::Waiting;
            item.ended_as = None;
            item.stopping = false;
        }
    }
    next.items = Some(items);
    next
}
