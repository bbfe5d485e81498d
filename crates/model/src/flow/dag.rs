//! The graph of a flow as `flow.dag` shows it, before, while and after the flow runs.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::graph::{Cycle, Graph};
use super::plan::Plan;

/// A flow's jobs, edges and levels. Jobs are named by `Id`: their names, or their numbers in the store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dag<Id> {
    /// The flow. None: it was not submitted.
    pub flow_id: Option<u32>,
    /// The actor that submitted it.
    pub caller_id: Option<u32>,
    /// The context in which it runs.
    pub context_id: Option<u32>,
    /// `dispatched`, `started`, `finished` or `error`. None: it was not submitted.
    pub status: Option<String>,
    /// The jobs, in the order of the plan; compensations come with level 0.
    pub nodes: Vec<DagNode<Id>>,
    /// Pairs of jobs: the second one needs the first one.
    pub edges: Vec<(Id, Id)>,
    /// The jobs of each level, from level 1.
    pub levels: Vec<Vec<Id>>,
    /// The jobs that could start now.
    pub ready: Vec<Id>,
    /// The jobs that have started.
    pub started: Vec<Id>,
    /// The jobs that have finished.
    pub completed: Vec<Id>,
    /// The jobs that have failed.
    pub failed: Vec<Id>,
    /// The result of the flow, once it has ended.
    pub result: Option<Value>,
}

/// One job of a [`Dag`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DagNode<Id> {
    /// The job.
    pub id: Id,
    /// The type of its script, or `approve`, `wait`, `flow`, `group`.
    pub script_type: String,
    /// The status of the job. None: the flow was not submitted.
    pub status: Option<String>,
    /// The jobs that it needs.
    pub depends: Vec<Id>,
    /// One more than the highest level of its needs, from 1. 0: a compensation.
    pub level: usize,
    /// The job that this one undoes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compensates: Option<Id>,
    /// The time of its first start, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<u64>,
    /// The time of its end, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<u64>,
    /// The time of its first start, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_ms: Option<u64>,
    /// The time of its end, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_ms: Option<u64>,
    /// Its error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The state of a job in a [`Dag`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobState {
    /// The status of the job's record. None: the flow was not submitted.
    pub status: Option<String>,
    /// The time of its first start, in milliseconds since 1970.
    pub started_ms: Option<u64>,
    /// The time of its end, in milliseconds since 1970.
    pub finished_ms: Option<u64>,
    /// Its error.
    pub error: Option<String>,
}

impl<Id: Clone> Dag<Id> {
    /// The graph of a plan. `id` gives the id and `state` the state of the job with a number (its place in the plan).
    ///
    /// # Errors
    ///
    /// A cycle.
    pub fn new(
        plan: &Plan,
        id: impl Fn(usize) -> Id,
        state: impl Fn(usize) -> JobState,
    ) -> Result<Self, Cycle> {
        let graph = Graph::new(plan)?;
        let ids = |numbers: &[usize]| -> Vec<Id> { numbers.iter().map(|n| id(*n)).collect() };
        let states: Vec<JobState> = (0..plan.jobs.len()).map(&state).collect();
        let with = |status: &str| -> Vec<Id> {
            let is = |n: &usize| states[*n].status.as_deref() == Some(status);
            (0..states.len()).filter(is).map(&id).collect()
        };
        let ended = |n: &usize| matches!(states[*n].status.as_deref(), Some("finished" | "error"));
        let waits = |n: &usize| {
            let status = states[*n].status.as_deref();
            graph.level_of(*n).is_some()
                && matches!(
                    status,
                    None | Some("dispatched" | "waiting_for_prerequisites")
                )
        };
        let ready = (0..states.len())
            .filter(waits)
            .filter(|n| graph.needs(*n).iter().all(ended));
        let nodes = plan.jobs.iter().zip(&states).enumerate();
        let node = |(n, (job, state)): (usize, (&super::Node, &JobState))| DagNode {
            id: id(n),
            script_type: job.kind().to_owned(),
            status: state.status.clone(),
            depends: ids(graph.needs(n)),
            level: graph.level_of(n).unwrap_or(0),
            compensates: job
                .compensates
                .as_ref()
                .and_then(|undone| graph.number(undone.as_str()))
                .map(&id),
            started_at: state.started_ms.map(|ms| ms / 1000),
            finished_at: state.finished_ms.map(|ms| ms / 1000),
            started_ms: state.started_ms,
            finished_ms: state.finished_ms,
            error: state.error.clone(),
        };
        let edge = |n: usize| {
            let needs = graph.needs(n).iter();
            needs.map(|need| (id(*need), id(n))).collect::<Vec<_>>()
        };
        Ok(Self {
            flow_id: None,
            caller_id: None,
            context_id: None,
            status: None,
            nodes: nodes.map(node).collect(),
            edges: (0..states.len()).flat_map(edge).collect(),
            levels: graph.levels().iter().map(|level| ids(level)).collect(),
            ready: ready.map(&id).collect(),
            started: with("started"),
            completed: with("finished"),
            failed: with("error"),
            result: None,
        })
    }
}
