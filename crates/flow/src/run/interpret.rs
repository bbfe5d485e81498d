//! A flow in memory: given what each attempt would do, on a virtual clock. Equal input gives an equal report.

use std::collections::BTreeMap;
use std::time::Duration;

use meshwork_model::flow::limits::DEFAULT_APPROVAL_MS;
use meshwork_model::flow::{Node, Plan, Wait, Work};
use meshwork_model::job::limits::DEFAULT_TIMEOUT;
use meshwork_model::retry::RetryBackoff;
use serde_json::{Value, json};

use super::decide::Decider;
use super::state::{Decision, End, FlowEnd, FlowState, Phase, Prepared, Stop};
use crate::expr::ExprError;

/// One attempt: its duration, and its result or error.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    /// The time that it takes, in milliseconds. An approval: until the answer. A message: until it comes.
    pub ms: u64,
    /// The result, or the error; `Err` of an approval is a no.
    pub result: Result<Value, String>,
}

/// A run of a job, as input of a simulation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JobReport<'a> {
    /// The job.
    pub job: &'a Node,
    /// The index of the item of a `foreach`.
    pub item: Option<usize>,
    /// The generation.
    pub generation: u32,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The environment and input of the job.
    pub work: &'a Prepared,
}

/// The surroundings of a flow in memory.
pub struct Simulation<'a> {
    /// Simulates an attempt, also of jobs in nested flows.
    pub attempt: &'a dyn Fn(&JobReport<'_>) -> Attempt,
    /// Which of so many jobs that could start now starts first.
    pub pick: &'a mut dyn FnMut(usize) -> usize,
    /// The most jobs that run at once. Approvals and waits take none of these slots.
    pub slots: usize,
    /// The time at which the flow is cancelled, in milliseconds from its start.
    pub cancel_ms: Option<u64>,
    /// The time from the cancel of a running job to its end, in milliseconds. A run that ends before it keeps its end.
    pub stop_ms: &'a dyn Fn(&Node) -> u64,
}

/// An entry of the log of a run: a job or an item starts or ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// The time, in milliseconds from the start.
    pub ms: u64,
    /// The number of the job.
    pub job: usize,
    /// The index of the item of a `foreach`.
    pub item: Option<usize>,
    /// True for a start, false for an end, also of a job that never started.
    pub start: bool,
}

/// Outcome of a flow.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The state at the end.
    pub state: FlowState,
    /// The starts and ends of jobs and items, in their order.
    pub log: Vec<Entry>,
    /// The time of the end, in milliseconds from the start.
    pub ended_ms: u64,
}

impl Report {
    /// The end of the flow.
    #[must_use]
    pub fn end(&self) -> &FlowEnd {
        self.state
            .outcome
            .as_ref()
            .expect("a report is of a flow that has ended")
    }

    /// The starts of jobs in order: the time, the job, and its item.
    pub fn starts(&self) -> impl Iterator<Item = (u64, usize, Option<usize>)> {
        let starts = self.log.iter().filter(|entry| entry.start);
        starts.map(|entry| (entry.ms, entry.job, entry.item))
    }
}

/// Runs a flow from a state to its end.
///
/// # Errors
///
/// A plan that cannot run: see [`Decider::new`].
pub fn interpret(
    plan: &Plan,
    state: FlowState,
    simulation: &mut Simulation<'_>,
) -> Result<Report, ExprError> {
    let decider = Decider::new(plan)?;
    let mut run = Run {
        plan,
        state,
        simulation,
        queue: Vec::new(),
        running: BTreeMap::new(),
        busy: 0,
        now: 0,
        number: 0,
        log: Vec::new(),
    };
    let stops = [
        (plan.timeout_ms, Stop::TimedOut),
        (run.simulation.cancel_ms, Stop::Cancelled),
    ];
    let mut stops: Vec<(u64, Stop)> = stops
        .into_iter()
        .filter_map(|(ms, stop)| Some((ms?, stop)))
        .collect();
    stops.sort_by_key(|(ms, _)| std::cmp::Reverse(*ms));
    loop {
        run.apply_decisions(&decider);
        if run.state.outcome.is_some() {
            break;
        }
        run.start()?;
        let next = run.running.keys().next().map(|(ms, _)| *ms);
        match (next, stops.last().copied()) {
            // What ends at the very time of a timeout is in time.
            (next, Some((ms, stop))) if next.is_none_or(|next| ms < next) => {
                stops.pop();
                run.now = run.now.max(ms);
                run.state.stop(stop);
            }
            (Some(_), _) => run.end(),
            (None, _) => {
                let message = "the flow waits for a job that nobody runs".to_owned();
                return Err(ExprError { at: None, message });
            }
        }
    }
    Ok(Report {
        state: run.state,
        log: run.log,
        ended_ms: run.now,
    })
}

/// A job or item that was released.
#[derive(Debug, Clone)]
struct Released {
    job: usize,
    item: Option<usize>,
    generation: u32,
    work: Prepared,
}

struct Run<'r, 'a> {
    plan: &'r Plan,
    state: FlowState,
    simulation: &'r mut Simulation<'a>,
    queue: Vec<Released>,
    /// The ends of what runs, by time and in the order of the starts. True: it holds a slot.
    running: BTreeMap<(u64, u64), (Released, End, bool)>,
    busy: usize,
    now: u64,
    number: u64,
    log: Vec<Entry>,
}

impl Run<'_, '_> {
    /// Applies decisions until there are none.
    fn apply_decisions(&mut self, decider: &Decider<'_>) {
        loop {
            let decisions = decider.decide(&self.state);
            if decisions.is_empty() {
                return;
            }
            for decision in decisions {
                self.state.apply(&decision);
                match decision {
                    Decision::Release {
                        job,
                        item,
                        generation,
                        work,
                    } => {
                        self.queue.push(Released {
                            job,
                            item,
                            generation,
                            work,
                        });
                    }
                    Decision::Stop { job, item } => self.stop(job, item),
                    Decision::Finalize { job, item, .. } => self.note(job, item, false),
                    Decision::Expand { .. } | Decision::Finish(_) => {}
                }
            }
        }
    }

    fn note(&mut self, job: usize, item: Option<usize>, start: bool) {
        let ms = self.now;
        self.log.push(Entry {
            ms,
            job,
            item,
            start,
        });
    }

    /// Notes the end of what was released, so the report fits.
    fn report(&mut self, released: &Released, end: End) {
        let Released {
            job,
            item,
            generation,
            ..
        } = *released;
        if self.state.ended(job, item, generation, end).is_ok() {
            self.note(job, item, false);
        }
    }

    /// Takes a job out of the queue, or cancels its run, which goes on for a while.
    fn stop(&mut self, job: usize, item: Option<usize>) {
        let is = |released: &Released| (released.job, released.item) == (job, item);
        if let Some(at) = self.queue.iter().position(is) {
            let released = self.queue.remove(at);
            return self.report(&released, End::Cancelled);
        }
        let mut running = self.running.iter();
        let Some(key) = running
            .find(|(_, (released, ..))| is(released))
            .map(|(key, _)| *key)
        else {
            return;
        };
        let Some((released, end, slot)) = self.running.remove(&key) else {
            return;
        };
        if !slot {
            return self.report(&released, End::Cancelled);
        }
        let stopped = self.now + (self.simulation.stop_ms)(&self.plan.jobs[job]);
        let end = match end {
            End::Finished(value) if key.0 < stopped => End::Finished(value),
            _ => End::Cancelled,
        };
        let at = (key.0.min(stopped), key.1);
        self.running.insert(at, (released, end, slot));
    }

    /// Starts what is released, as far as there are slots.
    fn start(&mut self) -> Result<(), ExprError> {
        loop {
            let free = self.busy < self.simulation.slots;
            let can = |released: &Released| free || !takes_slot(&self.plan.jobs[released.job]);
            let ready: Vec<usize> = (0..self.queue.len())
                .filter(|n| can(&self.queue[*n]))
                .collect();
            if ready.is_empty() {
                return Ok(());
            }
            let pick = (self.simulation.pick)(ready.len()).min(ready.len() - 1);
            let released = self.queue.remove(ready[pick]);
            let node = &self.plan.jobs[released.job];
            let slot = takes_slot(node);
            let (ms, end) = self.outcome(node, &released)?;
            let Released {
                job,
                item,
                generation,
                ..
            } = released;
            let _ = self.state.started(job, item, generation);
            self.note(job, item, true);
            self.busy += usize::from(slot);
            self.number += 1;
            let at = self.now.saturating_add(ms);
            self.running
                .insert((at, self.number), (released, end, slot));
        }
    }

    /// Lets time go on to the next end.
    fn end(&mut self) {
        let Some(((at, _), (released, end, slot))) = self.running.pop_first() else {
            return;
        };
        self.now = at;
        self.busy -= usize::from(slot);
        self.report(&released, end);
    }

    /// The time and the end of all attempts of a job.
    fn outcome(&mut self, node: &Node, released: &Released) -> Result<(u64, End), ExprError> {
        match &node.work {
            Work::Wait(Wait::For(ms)) => Ok((*ms, End::Finished(Value::Null))),
            // The virtual clock begins in 1970: the time is the span from the start.
            Work::Wait(Wait::Until(ms)) => {
                Ok((ms.saturating_sub(self.now), End::Finished(Value::Null)))
            }
            Work::Flow(key) => self.nested(key, released),
            Work::Approve(_) => Ok(self.attempts(
                node,
                released,
                node.timeout_ms.or(Some(DEFAULT_APPROVAL_MS)),
            )),
            Work::Wait(Wait::Message { .. }) => Ok(self.attempts(node, released, node.timeout_ms)),
            Work::Run(_) => {
                let timeout = node.timeout_ms.unwrap_or(DEFAULT_TIMEOUT * 1000);
                Ok(self.attempts(node, released, Some(timeout)))
            }
        }
    }

    fn attempts(&self, node: &Node, released: &Released, timeout: Option<u64>) -> (u64, End) {
        let mut ms: u64 = 0;
        let mut attempt = 1;
        loop {
            let report = JobReport {
                job: node,
                item: released.item,
                generation: released.generation,
                attempt,
                work: &released.work,
            };
            let Attempt { ms: takes, result } = (self.simulation.attempt)(&report);
            let late = timeout.is_some_and(|most| takes > most);
            let result = if late {
                Err("timeout".to_owned())
            } else {
                result
            };
            ms = ms.saturating_add(timeout.map_or(takes, |most| takes.min(most)));
            match result {
                Ok(value) => return (ms, End::Finished(value)),
                Err(error) if attempt > node.retries => return (ms, End::Failed(error)),
                Err(_) => {
                    let first = node.backoff_ms.map(Duration::from_millis);
                    // The whole pause, without a random part.
                    let chance = if first.is_some() { 0.0 } else { 1.0 };
                    let pause = RetryBackoff::default().pause(attempt, first, chance);
                    ms = ms.saturating_add(pause.as_millis() as u64);
                    attempt += 1;
                }
            }
        }
    }

    /// A nested flow runs on a clock of its own; its end is the end of the job.
    fn nested(&mut self, key: &str, released: &Released) -> Result<(u64, End), ExprError> {
        let Some(flow) = self.plan.flows.get(key) else {
            let message = format!("the plan has no nested flow `{key}`");
            return Ok((0, End::Failed(message)));
        };
        let mut flow = flow.clone();
        flow.inputs.extend(released.work.input.clone());
        let mut simulation = Simulation {
            attempt: self.simulation.attempt,
            pick: &mut *self.simulation.pick,
            slots: self.simulation.slots,
            cancel_ms: None,
            stop_ms: self.simulation.stop_ms,
        };
        let report = interpret(&flow, FlowState::new(&flow), &mut simulation)?;
        let FlowEnd { error, result, .. } = report.end();
        let end = match error {
            None => End::Finished(json!(result)),
            Some(error) => End::Failed(error.clone()),
        };
        Ok((report.ended_ms, end))
    }
}

const fn takes_slot(node: &Node) -> bool {
    matches!(node.work, Work::Run(_))
}

impl Report {
    /// The phase of the job of this name.
    #[must_use]
    pub fn phase(&self, plan: &Plan, name: &str) -> Option<&Phase> {
        let job = plan.jobs.iter().position(|job| job.name.as_str() == name)?;
        Some(&self.state.jobs[job].phase)
    }
}
