//! The decisions of a flow: which jobs start, are skipped, stopped or expanded, and when the flow has ended.

use std::collections::BTreeMap;

use meshwork_model::flow::{Ancestors, Graph, Node, Plan, Text, Work};
use meshwork_model::job::EnvTooLarge;
use serde_json::{Map, Value};

use super::state::{Decision, End, FlowState, JobRun, Phase, Prepared};
use crate::expr::{self, ExprError, Facts, JobFacts};

/// The rules of one plan.
#[derive(Debug)]
pub struct Decider<'a> {
    pub(super) plan: &'a Plan,
    pub(super) graph: Graph,
    ancestors: Ancestors,
    env: BTreeMap<String, String>,
}

impl<'a> Decider<'a> {
    /// Creates the rules of a checked plan.
    ///
    /// # Errors
    ///
    /// The plan has a cycle, or the environment of the flow cannot be evaluated.
    pub fn new(plan: &'a Plan) -> Result<Self, ExprError> {
        let graph = Graph::new(plan).map_err(|cycle| ExprError {
            at: None,
            message: cycle.to_string(),
        })?;
        let mut decider = Self {
            plan,
            ancestors: graph.ancestors(),
            graph,
            env: BTreeMap::new(),
        };
        let facts = Facts {
            inputs: decider.inputs(),
            ..Facts::default()
        };
        let env = plan.env.iter();
        let env = env.map(|(name, text)| Ok((name.clone(), expr::fill_text(text, &facts)?)));
        decider.env = env.collect::<Result<_, ExprError>>()?;
        check_env(&decider.env)?;
        Ok(decider)
    }

    /// Checks the environments of all jobs before the flow starts, as far as its inputs decide them. The rest is checked
    /// when the job starts.
    ///
    /// # Errors
    ///
    /// The environment of a job is impossible, as its inputs make it.
    pub fn check_environments(&self) -> Result<(), ExprError> {
        let facts = Facts {
            inputs: self.inputs(),
            env: self.env.clone(),
            ..Facts::default()
        };
        for node in self.plan.jobs.iter().filter(|node| !node.env.is_empty()) {
            let mut env = self.env.clone();
            for (name, text) in &node.env {
                // A failure of an expression is one of its job.
                let value = expr::is_fixed(text).then(|| expr::fill_text(text, &facts));
                let value = value.and_then(Result::ok).unwrap_or_default();
                env.insert(name.clone(), value);
            }
            check_env(&env).map_err(|error| ExprError {
                at: node.at,
                message: format!("job `{}`: {error}", node.name),
            })?;
        }
        Ok(())
    }

    /// Returns the graph of the plan.
    #[must_use]
    pub const fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Returns all decisions that are possible now. Empty: the flow waits for its jobs, or has ended.
    #[must_use]
    pub fn decide(&self, state: &FlowState) -> Vec<Decision> {
        if state.outcome.is_some() {
            return Vec::new();
        }
        let halts = self.fails_fast(state);
        let mut decisions = Vec::new();
        for job in self.graph.order() {
            let run = &state.jobs[job];
            match &run.phase {
                Phase::Ended(_) => {}
                Phase::Waiting if run.items.is_some() => {
                    self.group(state, job, halts, &mut decisions);
                }
                Phase::Waiting => decisions.extend(self.waiting(state, job, halts)),
                Phase::Released | Phase::Started => {
                    let stops = self.stops(state, job, halts);
                    decisions.extend(halt(stops, job, None, run.stopping));
                }
            }
        }
        let ended = |job: usize| state.jobs[job].phase.end().is_some();
        if decisions.is_empty() && self.graph.order().all(ended) {
            decisions.extend(self.compensate(state));
        }
        decisions
    }

    /// Evaluates a `foreach` again for items that are not released. The stored state has only their number.
    pub fn fill_items(&self, state: &mut FlowState) {
        for job in self.graph.order() {
            let waits =
                |item: &super::state::ItemRun| item.phase == Phase::Waiting && item.value.is_null();
            let of = state.jobs[job].items.as_deref().unwrap_or_default();
            let Some(foreach) = self.plan.jobs[job]
                .foreach
                .as_ref()
                .filter(|_| of.iter().any(waits))
            else {
                continue;
            };
            let values = expr::items(foreach, &self.facts(state, job, &foreach.text));
            let items = state.jobs[job].items.iter_mut().flatten();
            for (item, value) in items.zip(values.unwrap_or_default()) {
                item.value = value;
            }
        }
    }

    fn inputs(&self) -> BTreeMap<&'a str, Value> {
        let inputs = self.plan.inputs.iter();
        inputs
            .map(|(name, value)| (name.as_str(), value.clone()))
            .collect()
    }

    /// Returns true if a failure since the last retry stops all other jobs.
    fn fails_fast(&self, state: &FlowState) -> bool {
        self.halted_at(state).is_some()
    }

    /// Returns the number of the first failure since the last retry that stops all other jobs.
    pub(super) fn halted_at(&self, state: &FlowState) -> Option<u64> {
        let failed = |phase: &Phase, number: Option<u64>| {
            let is_failure = phase.end().is_some_and(End::is_failure);
            number.filter(|number| is_failure && *number > state.retried_at)
        };
        let job_failed = |(node, run): (&Node, &JobRun)| {
            if node.continue_on_failure || node.compensates.is_some() {
                return None;
            }
            let items = run.items.iter().flatten();
            let items = items.filter_map(|item| failed(&item.phase, item.ended_as));
            items.chain(failed(&run.phase, run.ended_as)).min()
        };
        let jobs = self.plan.jobs.iter().zip(&state.jobs);
        let first = || jobs.filter_map(job_failed).min();
        self.plan.fail_fast.then(first).flatten()
    }

    /// Returns true if a job has to stop, or may not start. Some jobs continue after a failure, by their options.
    fn stops(&self, state: &FlowState, job: usize, halts: bool) -> bool {
        let condition = self.plan.jobs[job].condition.as_ref();
        state.stop.is_some() || (halts && !condition.is_some_and(expr::asks_for_failure))
    }

    /// Decides about a waiting job. It waits for the ends of all its prerequisites, also after a failure or a
    /// cancellation. So all its ancestors have ended, and its `if` sees their final states.
    fn waiting(&self, state: &FlowState, job: usize, halts: bool) -> Option<Decision> {
        let finalize = |end| {
            Some(Decision::Finalize {
                job,
                item: None,
                end,
            })
        };
        let needs = self.graph.needs(job);
        if needs
            .iter()
            .any(|need| state.jobs[*need].phase.end().is_none())
        {
            return None;
        }
        if self.stops(state, job, halts) {
            return finalize(if state.stop.is_some() {
                End::Cancelled
            } else {
                End::Skipped
            });
        }
        match self.runs(state, job) {
            Ok(true) => {}
            Ok(false) => return finalize(End::Skipped),
            Err(error) => return finalize(End::Failed(error.to_string())),
        }
        let node = &self.plan.jobs[job];
        let Some(foreach) = &node.foreach else {
            return Some(self.release(state, job, None));
        };
        match expr::items(foreach, &self.facts(state, job, &foreach.text)) {
            Ok(items) => Some(Decision::Expand { job, items }),
            Err(error) => finalize(End::Failed(error.to_string())),
        }
    }

    /// Returns the value of the job's `if`, or of the default one.
    fn runs(&self, state: &FlowState, job: usize) -> Result<bool, ExprError> {
        let needs = self.graph.needs(job).iter();
        let ends: Vec<(&Node, &End)> = needs
            .filter_map(|need| Some((&self.plan.jobs[*need], state.jobs[*need].phase.end()?)))
            .collect();
        let failed = ends.iter().any(|(node, end)| fails(node, end));
        let skipped = !ends.is_empty() && ends.iter().all(|(_, end)| **end == End::Skipped);
        match &self.plan.jobs[job].condition {
            None => Ok(!failed && !skipped),
            Some(text) if failed && !expr::asks_for_failure(text) => Ok(false),
            Some(text) => expr::condition(text, &self.facts(state, job, &text.text)),
        }
    }

    /// Decides about the items of a `foreach`: releases as many as may run at once, and ends the job after all items.
    fn group(&self, state: &FlowState, job: usize, halts: bool, decisions: &mut Vec<Decision>) {
        let node = &self.plan.jobs[job];
        let items = state.jobs[job].items.as_deref().unwrap_or_default();
        let stops = self.stops(state, job, halts);
        let active = items.iter().filter(|item| item.phase.is_active()).count();
        let most = node.concurrency.map_or(usize::MAX, |most| most as usize);
        let mut free = most.saturating_sub(active);
        for (number, item) in items.iter().enumerate() {
            let number = Some(number);
            match &item.phase {
                Phase::Ended(_) => {}
                Phase::Waiting if stops => decisions.push(Decision::Finalize {
                    job,
                    item: number,
                    end: if state.stop.is_some() {
                        End::Cancelled
                    } else {
                        End::Skipped
                    },
                }),
                Phase::Waiting if free > 0 => {
                    free -= 1;
                    decisions.push(self.release(state, job, number));
                }
                Phase::Waiting => {}
                Phase::Released | Phase::Started => {
                    decisions.extend(halt(stops, job, number, item.stopping));
                }
            }
        }
        let mut ends = items.iter().map(|item| item.phase.end());
        if ends.all(|end| end.is_some()) {
            let end = group_end(items.iter().filter_map(|item| item.phase.end()));
            decisions.push(Decision::Finalize {
                job,
                item: None,
                end,
            });
        }
    }

    /// Returns the start of a job or item, or its failure if a template cannot be evaluated.
    pub(super) fn release(&self, state: &FlowState, job: usize, item: Option<usize>) -> Decision {
        let run = &state.jobs[job];
        let of_item = item.and_then(|item| run.items.as_ref()?.get(item));
        let generation = of_item.map_or(run.generation, |item| item.generation);
        let item_value = of_item.map(|of| (of.value.clone(), item.unwrap_or(0)));
        match self.prepare(state, job, item_value) {
            Ok(work) => Decision::Release {
                job,
                item,
                generation,
                work,
            },
            Err(error) => Decision::Finalize {
                job,
                item,
                end: End::Failed(error.to_string()),
            },
        }
    }

    fn prepare(
        &self,
        state: &FlowState,
        job: usize,
        item: Option<(Value, usize)>,
    ) -> Result<Prepared, ExprError> {
        let node = &self.plan.jobs[job];
        let facts = |text: &str| Facts {
            item: item.clone(),
            ..self.facts(state, job, text)
        };
        let mut work = Prepared {
            env: self.env.clone(),
            ..Prepared::default()
        };
        for (name, text) in &node.env {
            work.env
                .insert(name.clone(), expr::fill_text(text, &facts(&text.text))?);
        }
        check_env(&work.env)?;
        for (name, input) in &node.inputs {
            let value = match input.value.to_string() {
                text if text.contains("{{") => expr::fill(&input.value, input.at, &facts(&text))?,
                _ => input.value.clone(),
            };
            work.input.insert(name.clone(), value);
        }
        if let Work::Approve(approve) = &node.work {
            let Text { text, .. } = &approve.question;
            work.question = Some(expr::fill_text(&approve.question, &facts(text))?);
        }
        Ok(work)
    }

    /// Returns the values of the ancestors that a text of a job mentions.
    fn facts(&self, state: &FlowState, job: usize, text: &str) -> Facts<'a> {
        let undone = self.plan.jobs[job].compensates.as_ref();
        let undone = undone.and_then(|name| self.graph.number(name.as_str()));
        let of = undone.unwrap_or(job);
        let before = |other: &usize| undone == Some(*other) || self.ancestors.contains(of, *other);
        self.facts_of(state, text, before)
    }

    pub(super) fn facts_of(
        &self,
        state: &FlowState,
        text: &str,
        before: impl Fn(&usize) -> bool,
    ) -> Facts<'a> {
        let mut facts = Facts {
            inputs: self.inputs(),
            env: self.env.clone(),
            ..Facts::default()
        };
        for other in (0..self.plan.jobs.len()).filter(before) {
            let (node, run) = (&self.plan.jobs[other], &state.jobs[other]);
            facts.failed |= run.phase.end().is_some_and(|end| fails(node, end));
            if text.contains(node.name.as_str()) {
                facts.jobs.insert(node.name.as_str(), job_facts(run));
            }
        }
        facts
    }
}

/// Checks an environment whose expressions are evaluated.
fn check_env(env: &BTreeMap<String, String>) -> Result<(), ExprError> {
    let error = |message| ExprError { at: None, message };
    EnvTooLarge::check(env).map_err(|why| error(why.to_string()))?;
    match env.iter().find(|(_, value)| value.contains('\0')) {
        Some((name, _)) => Err(error(format!(
            "the variable `{name}` contains a NUL character, which no environment can have"
        ))),
        None => Ok(()),
    }
}

/// Returns true if the end of a prerequisite prevents its dependents.
pub(super) fn fails(node: &Node, end: &End) -> bool {
    match end {
        End::Failed(_) => !node.continue_on_failure,
        End::Cancelled => true,
        End::Finished(_) | End::Skipped => false,
    }
}

/// Returns the stop of a released job or item, once.
fn halt(stops: bool, job: usize, item: Option<usize>, stopping: bool) -> Option<Decision> {
    (stops && !stopping).then_some(Decision::Stop { job, item })
}

/// Returns the end of a `foreach` from the ends of its items.
fn group_end<'e>(ends: impl Iterator<Item = &'e End>) -> End {
    let (mut results, mut failed, mut cancelled, mut skipped) = (Vec::new(), 0, 0, 0);
    for end in ends {
        let mut result = Value::Null;
        match end {
            End::Finished(value) => result = value.clone(),
            End::Failed(_) => failed += 1,
            End::Cancelled => cancelled += 1,
            End::Skipped => skipped += 1,
        }
        results.push(result);
    }
    let total = results.len();
    match (failed, cancelled, skipped) {
        (0, 0, 0) => End::Finished(Value::Array(results)),
        (0, 0, _) => End::Skipped,
        (0, ..) => End::Cancelled,
        _ => End::Failed(format!("{failed} of {total} items failed")),
    }
}

/// Returns a job in the form that expressions use.
fn job_facts(run: &JobRun) -> JobFacts {
    let skipped = JobFacts {
        status: "skipped",
        result: Value::Object(Map::new()),
        ..JobFacts::default()
    };
    let Some(end) = run.phase.end() else {
        return skipped;
    };
    if *end == End::Skipped {
        return skipped;
    }
    let status = if end.is_failure() {
        "error"
    } else {
        "finished"
    };
    let ends: Vec<&End> = match &run.items {
        Some(items) => items.iter().filter_map(|item| item.phase.end()).collect(),
        None => vec![end],
    };
    let error = |end: &&End| match end {
        End::Failed(error) => Some(error.clone()),
        End::Cancelled => Some("stopped".to_owned()),
        End::Finished(_) | End::Skipped => None,
    };
    let errors: Vec<Option<String>> = ends.iter().map(error).collect();
    let value = |end: &&End| match end {
        End::Finished(value) => value.clone(),
        _ => Value::Null,
    };
    let mut results: Vec<Value> = ends.iter().map(value).collect();
    let result = match (&run.items, results.pop()) {
        (None, Some(result)) => result,
        (_, last) => {
            results.extend(last);
            Value::Array(results)
        }
    };
    let failed = errors.iter().flatten().count();
    JobFacts {
        status,
        result,
        succeeded: errors.len() - failed,
        failed,
        errors,
    }
}
