//! The end of a flow: compensations, one at a time, the latest first, and then its result.

use std::collections::BTreeMap;

use serde_json::Value;

use super::decide::{Decider, fails};
use super::state::{Decision, End, FlowEnd, FlowState, Phase, Stop};
use crate::expr;

impl Decider<'_> {
    /// The next compensation, or the end of the flow. All jobs of the graph have ended.
    pub(super) fn compensate(&self, state: &FlowState) -> Option<Decision> {
        let error = self.error(state);
        if error.is_none() {
            return Some(Decision::Finish(self.finished(state)));
        }
        if state.compensate {
            for (partner, _) in self.undone(state) {
                match &state.jobs[partner].phase {
                    Phase::Ended(_) => {}
                    Phase::Waiting => return Some(self.release(state, partner, None)),
                    Phase::Released | Phase::Started => return None,
                }
            }
        }
        Some(Decision::Finish(self.failed(state, error)))
    }

    /// The compensations of jobs that finished and the jobs that they undo, the job that finished last first.
    fn undone(&self, state: &FlowState) -> Vec<(usize, usize)> {
        let jobs = self.plan.jobs.iter().enumerate();
        let mut undone: Vec<(usize, usize)> = jobs
            .filter_map(|(partner, node)| {
                let target = self.graph.number(node.compensates.as_ref()?.as_str())?;
                let finished = matches!(state.jobs[target].phase, Phase::Ended(End::Finished(_)));
                finished.then_some((partner, target))
            })
            .collect();
        undone.sort_by_key(|(_, target)| std::cmp::Reverse(state.jobs[*target].ended_as));
        undone
    }

    /// The reason why the flow did not finish.
    fn error(&self, state: &FlowState) -> Option<String> {
        match state.stop {
            Some(Stop::TimedOut) => return Some("timeout".to_owned()),
            Some(Stop::Cancelled) => return Some("stopped".to_owned()),
            None => {}
        }
        let jobs = self.graph.order().filter_map(|job| {
            let (node, run) = (&self.plan.jobs[job], &state.jobs[job]);
            let end = run.phase.end().filter(|end| fails(node, end))?;
            Some((run.ended_as, node, end))
        });
        // Stopped jobs are what the first failure led to.
        let first = jobs.min_by_key(|(number, _, end)| (**end == End::Cancelled, *number));
        first.map(|(_, node, end)| match end {
            End::Failed(error) => format!("job `{}`: {error}", node.name),
            _ => format!("job `{}`: stopped", node.name),
        })
    }

    fn finished(&self, state: &FlowState) -> FlowEnd {
        let mut result = BTreeMap::new();
        for (name, text) in &self.plan.outputs {
            let facts = self.facts_of(state, &text.text, |job| self.graph.level_of(*job).is_some());
            match expr::fill(&Value::String(text.text.clone()), text.at, &facts) {
                Ok(value) => {
                    result.insert(name.clone(), value);
                }
                Err(error) => {
                    return self.failed(state, Some(format!("output `{name}`: {error}")));
                }
            }
        }
        if self.plan.outputs.is_empty() {
            let last = self
                .graph
                .order()
                .filter(|job| self.graph.is_last(self.plan, *job));
            for job in last {
                if let Some(End::Finished(value)) = state.jobs[job].phase.end() {
                    result.insert(self.plan.jobs[job].name.to_string(), value.clone());
                }
            }
        }
        FlowEnd {
            status: "finished".to_owned(),
            result,
            error: None,
            compensated: Vec::new(),
            not_compensated: Vec::new(),
        }
    }

    fn failed(&self, state: &FlowState, error: Option<String>) -> FlowEnd {
        let mut ran: Vec<_> = self
            .undone(state)
            .into_iter()
            .filter_map(|(partner, target)| {
                let run = &state.jobs[partner];
                let end = run.phase.end()?;
                let name = self.plan.jobs[target].name.to_string();
                Some((run.ended_as, name, matches!(end, End::Finished(_))))
            })
            .collect();
        ran.sort();
        let of = |wanted: bool| {
            let jobs = ran.iter().filter(|(_, _, done)| *done == wanted);
            jobs.map(|(_, name, _)| name.clone()).collect()
        };
        FlowEnd {
            status: "error".to_owned(),
            result: BTreeMap::new(),
            error,
            compensated: of(true),
            not_compensated: of(false),
        }
    }
}
