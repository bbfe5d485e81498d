//! The state of a flow: which of its jobs wait, run or have ended, and how.

use std::collections::BTreeMap;

use meshwork_model::flow::Plan;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The state of a flow that was submitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowState {
    /// The jobs, in the order of the plan.
    pub jobs: Vec<JobRun>,
    /// Reason to stop the flow; `None` while it runs normally.
    pub stop: Option<Stop>,
    /// Compensations run after a failure, a cancellation or a timeout. Default: true.
    pub compensate: bool,
    /// The number of ends so far, which orders them.
    pub ends: u64,
    /// The number of retries so far.
    pub retries: u32,
    /// Number of ends before the last retry. Earlier failures do not stop the other jobs again.
    pub retried_at: u64,
    /// The end of the flow.
    pub outcome: Option<FlowEnd>,
}

/// Reason to stop a flow without a failed job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// Somebody cancelled the flow.
    Cancelled,
    /// The flow's timeout is over.
    TimedOut,
}

/// The state of one job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobRun {
    /// Number of the last retry that included this job. Reports of another generation are refused.
    pub generation: u32,
    /// The phase of the job; of a `foreach` that of the whole group.
    pub phase: Phase,
    /// The items of a `foreach` that was expanded.
    pub items: Option<Vec<ItemRun>>,
    /// The number of the job's end among all ends, from 1.
    pub ended_as: Option<u64>,
    /// True if a cancellation of the job was requested.
    pub stopping: bool,
}

/// The state of one item of a `foreach`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ItemRun {
    /// The value of the item.
    pub value: Value,
    /// The generation of the item.
    pub generation: u32,
    /// The phase of the item.
    pub phase: Phase,
    /// The number of the item's end among all ends, from 1.
    pub ended_as: Option<u64>,
    /// True if a cancellation of the item was requested.
    pub stopping: bool,
}

/// The phase of a job or an item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Waits for its prerequisites, for a decision, or for a free place among the items.
    Waiting,
    /// May start: its job is queued, or its approval or delay has begun.
    Released,
    /// Runs.
    Started,
    /// Has ended.
    Ended(End),
}

/// The end of a job or an item, after all its attempts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Finished with this result.
    Finished(Value),
    /// Failed with this error.
    Failed(String),
    /// Cancelled.
    Cancelled,
    /// Did not run.
    Skipped,
}

/// The end of a flow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowEnd {
    /// `finished` or `error`.
    pub status: String,
    /// The outputs of a flow that finished.
    pub result: BTreeMap<String, Value>,
    /// Reason why the flow failed.
    pub error: Option<String>,
    /// Compensated jobs, in the order of their compensations.
    pub compensated: Vec<String>,
    /// The jobs whose compensation failed.
    pub not_compensated: Vec<String>,
}

/// The next step of a flow. Jobs are named by their numbers in the plan.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// The job, or an item of it, may start.
    Release {
        /// The job.
        job: usize,
        /// The item of a `foreach`.
        item: Option<usize>,
        /// The generation that its reports have to name.
        generation: u32,
        /// Its environment and input.
        work: Prepared,
    },
    /// A `foreach` has these items.
    Expand {
        /// The job.
        job: usize,
        /// The values of its items.
        items: Vec<Value>,
    },
    /// The job or item ends without a run: it is skipped, its expression failed, or all items of a group have ended.
    Finalize {
        /// The job.
        job: usize,
        /// The item of a `foreach`.
        item: Option<usize>,
        /// Its end.
        end: End,
    },
    /// A job or item has to be cancelled.
    Stop {
        /// The job.
        job: usize,
        /// The item of a `foreach`.
        item: Option<usize>,
    },
    /// The flow has ended.
    Finish(FlowEnd),
}

/// The values of a job's templates.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prepared {
    /// The environment of the flow, overridden by that of the job.
    pub env: BTreeMap<String, String>,
    /// The input; the inputs of a nested flow.
    pub input: Map<String, Value>,
    /// The question of an approval.
    pub question: Option<String>,
}

/// The reason why a report changed nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// There is no such job or item.
    #[error("the flow has no such job or item")]
    Unknown,
    /// The report is about a run before the last retry.
    #[error("the report is of generation {reported}, the job is in generation {current}")]
    Generation {
        /// The generation of the report.
        reported: u32,
        /// The generation of the job.
        current: u32,
    },
    /// The job has ended, or has not been released.
    #[error("the job does not run")]
    NotRunning,
}

impl Phase {
    /// The end, if there is one.
    #[must_use]
    pub const fn end(&self) -> Option<&End> {
        match self {
            Self::Ended(end) => Some(end),
            _ => None,
        }
    }

    /// Returns true between release and end.
    #[must_use]
    pub const fn is_active(&self) -> bool {
        matches!(self, Self::Released | Self::Started)
    }
}

impl End {
    /// Returns true for a failure and a cancellation.
    #[must_use]
    pub const fn is_failure(&self) -> bool {
        matches!(self, Self::Failed(_) | Self::Cancelled)
    }
}

impl JobRun {
    pub(super) const fn new(generation: u32) -> Self {
        Self {
            generation,
            phase: Phase::Waiting,
            items: None,
            ended_as: None,
            stopping: false,
        }
    }
}

impl ItemRun {
    /// Returns an item that waits, of this value.
    #[must_use]
    pub const fn waiting(value: Value, generation: u32) -> Self {
        Self {
            value,
            generation,
            phase: Phase::Waiting,
            ended_as: None,
            stopping: false,
        }
    }
}

/// The state that a report changes: the phase of a job or an item, its generation, and the number of its end.
type Target<'a> = (&'a mut Phase, u32, &'a mut Option<u64>);

impl FlowState {
    /// Creates the state of a flow that has just been submitted.
    #[must_use]
    pub fn new(plan: &Plan) -> Self {
        Self {
            jobs: vec![JobRun::new(0); plan.jobs.len()],
            stop: None,
            compensate: true,
            ends: 0,
            retries: 0,
            retried_at: 0,
            outcome: None,
        }
    }

    /// Requests that the flow stops. Changes nothing if it has ended or stops already.
    pub fn stop(&mut self, why: Stop) {
        if self.outcome.is_none() {
            self.stop.get_or_insert(why);
        }
    }

    /// Records the start of a job or an item. A repeated report changes nothing.
    ///
    /// # Errors
    ///
    /// The report does not fit the state, and changes nothing.
    pub fn started(
        &mut self,
        job: usize,
        item: Option<usize>,
        generation: u32,
    ) -> Result<(), Refused> {
        let (phase, ..) = self.active(job, item, generation)?;
        *phase = Phase::Started;
        Ok(())
    }

    /// Records the end of a job or an item, after all its attempts.
    ///
    /// # Errors
    ///
    /// The report does not fit the state, and changes nothing.
    pub fn ended(
        &mut self,
        job: usize,
        item: Option<usize>,
        generation: u32,
        end: End,
    ) -> Result<(), Refused> {
        self.active(job, item, generation)?;
        self.finalize(job, item, end);
        Ok(())
    }

    fn target(&mut self, job: usize, item: Option<usize>) -> Option<Target<'_>> {
        let run = self.jobs.get_mut(job)?;
        let Some(item) = item else {
            return Some((&mut run.phase, run.generation, &mut run.ended_as));
        };
        let item = run.items.as_mut()?.get_mut(item)?;
        Some((&mut item.phase, item.generation, &mut item.ended_as))
    }

    fn active(
        &mut self,
        job: usize,
        item: Option<usize>,
        reported: u32,
    ) -> Result<Target<'_>, Refused> {
        let target = self.target(job, item).ok_or(Refused::Unknown)?;
        let (phase, current, _) = &target;
        match (*current == reported, phase.is_active()) {
            (false, _) => Err(Refused::Generation {
                reported,
                current: *current,
            }),
            (true, false) => Err(Refused::NotRunning),
            (true, true) => Ok(target),
        }
    }

    fn finalize(&mut self, job: usize, item: Option<usize>, end: End) {
        self.ends += 1;
        let number = self.ends;
        if let Some((phase, _, ended_as)) = self.target(job, item) {
            *phase = Phase::Ended(end);
            *ended_as = Some(number);
        }
    }

    /// Applies a decision to the state.
    pub fn apply(&mut self, decision: &Decision) {
        match decision {
            Decision::Release { job, item, .. } => {
                if let Some((phase, ..)) = self.target(*job, *item) {
                    *phase = Phase::Released;
                }
            }
            Decision::Expand { job, items } => {
                let run = &mut self.jobs[*job];
                let generation = run.generation;
                let items = items.iter().cloned();
                run.items = Some(
                    items
                        .map(|value| ItemRun::waiting(value, generation))
                        .collect(),
                );
            }
            Decision::Finalize { job, item, end } => self.finalize(*job, *item, end.clone()),
            Decision::Stop { job, item } => {
                let run = &mut self.jobs[*job];
                match item {
                    None => run.stopping = true,
                    Some(item) => {
                        if let Some(items) = &mut run.items {
                            items[*item].stopping = true;
                        }
                    }
                }
            }
            Decision::Finish(end) => self.outcome = Some(end.clone()),
        }
    }
}
