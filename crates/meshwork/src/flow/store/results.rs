//! Results and errors of ended jobs. A step reads only those that its decisions need: for expressions, for a `foreach`
//! whose items have all ended, and for the result of the flow.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use meshwork_broker::flow::{Flows, MAX_MOVES};
use meshwork_flow::expr::output_value;
use meshwork_flow::run::{Decider, End, FlowState, Phase};
use meshwork_model::flow::limits::MAX_RESULTS;
use meshwork_model::flow::{Node, Plan, Work};
use serde_json::Value;

use super::view::View;
use super::{FlowError, output, output_text};

/// Place of a result: a job, or one of its items.
pub(super) type ResultSlot = (usize, Option<usize>);

/// The error of a job without a record.
pub(super) const GONE: &str = "its record is gone";

/// Results that were read so far in this step.
#[derive(Debug, Default)]
pub(super) struct Results {
    known: BTreeSet<ResultSlot>,
    bytes: usize,
    /// The outputs of jobs whose texts differ from those of their values, such as `1e5` and `"text"`.
    written: BTreeMap<usize, String>,
}

impl Results {
    /// Reads the results that the next decisions need into the state.
    pub(super) async fn load(
        &mut self,
        flows: &Flows,
        decider: &Decider<'_>,
        plan: &Plan,
        view: &mut View,
    ) -> Result<(), FlowError> {
        let wanted = wanted(decider, plan, &view.state);
        let wanted: Vec<ResultSlot> = wanted
            .into_iter()
            .filter(|it| self.known.insert(*it))
            .collect();
        for places in wanted.chunks(MAX_MOVES) {
            let mut found = Vec::new();
            for place in places {
                found.extend(view.job(plan, *place).map(|key| (*place, key)));
            }
            let keys: Vec<_> = found.iter().map(|(_, key)| *key).collect();
            let fields = flows.job_fields(&keys, &["result", "error"]).await?;
            for ((place, _), mut fields) in found.into_iter().zip(fields) {
                let (error, result) = (fields.pop().flatten(), fields.pop().flatten());
                self.bytes += result.as_ref().map_or(0, Vec::len);
                if let ((job, None), Some(result)) = (place, &result) {
                    self.note_written(job, result);
                }
                put(&mut view.state, place, result, error);
            }
        }
        if self.bytes > MAX_RESULTS {
            return Err(FlowError::Plan(format!(
                "result too large: its results take {} bytes, at most {MAX_RESULTS} are allowed",
                self.bytes
            )));
        }
        Ok(())
    }
}

impl Results {
    fn note_written(&mut self, job: usize, result: &[u8]) {
        let Some(text) = output_text(result.to_vec()) else {
            return;
        };
        if text != text_of(&output_value(&text)) {
            self.written.insert(job, text);
        }
    }

    /// Returns the text of an output of the flow, and whether it is JSON. An output that is the result of a job has the
    /// job's text.
    pub(super) fn output(&self, job: Option<usize>, value: &Value) -> (String, bool) {
        match job.and_then(|job| self.written.get(&job)) {
            Some(text) => (text.clone(), true),
            None => (text_of(value), !value.is_string()),
        }
    }
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Stores a result or an error in an ended place.
fn put(
    state: &mut FlowState,
    (job, item): ResultSlot,
    result: Option<Vec<u8>>,
    error: Option<Vec<u8>>,
) {
    let run = &mut state.jobs[job];
    let phase = match item {
        None => Some(&mut run.phase),
        Some(item) => run
            .items
            .as_mut()
            .and_then(|items| items.get_mut(item))
            .map(|it| &mut it.phase),
    };
    match phase {
        // A result of this step is not in the store yet, so the state's own value stays.
        Some(Phase::Ended(End::Finished(value))) if value.is_null() => *value = output(result),
        Some(Phase::Ended(End::Failed(text))) if text.is_empty() => {
            *text = match (error, result) {
                (None, None) => GONE.to_owned(),
                (error, _) => String::from_utf8_lossy(&error.unwrap_or_default()).into_owned(),
            };
        }
        _ => {}
    }
}

/// Returns the place of each job by its name.
pub(super) fn places(plan: &Plan) -> HashMap<&str, usize> {
    let names = plan.jobs.iter().map(|node| node.name.as_str());
    names.zip(0..).collect()
}

/// Returns the places whose results the next decisions need.
fn wanted(decider: &Decider<'_>, plan: &Plan, state: &FlowState) -> BTreeSet<ResultSlot> {
    let graph = decider.graph();
    let mut wanted = BTreeSet::new();
    let ended = |job: usize| state.jobs[job].phase.end().is_some();
    let all = graph.order().all(ended);
    let jobs = places(plan);
    for (job, node) in plan.jobs.iter().enumerate() {
        let run = &state.jobs[job];
        let ready = match node.compensates {
            Some(_) => all,
            None => graph.needs(job).iter().all(|need| ended(*need)),
        };
        if matches!(run.phase, Phase::Waiting) && ready {
            name_all(&texts(node), &jobs, state, &mut wanted);
            let items = run.items.iter().flatten();
            if run.items.is_some() && items.clone().all(|item| item.phase.end().is_some()) {
                wanted.extend((0..items.count()).map(|item| (job, Some(item))));
            }
        }
        // The error of the flow names its first failure.
        if matches!(run.phase, Phase::Ended(End::Failed(_))) {
            wanted.insert((job, None));
        }
    }
    if all {
        let outputs: Vec<&str> = plan
            .outputs
            .values()
            .map(|text| text.text.as_str())
            .collect();
        name_all(&outputs, &jobs, state, &mut wanted);
        if plan.outputs.is_empty() {
            let last = graph.order().filter(|job| graph.is_last(plan, *job));
            wanted.extend(last.map(|job| (job, None)));
        }
    }
    wanted
}

/// Adds the jobs that these expressions name, with their items. A word within a text counts as a name, too.
fn name_all(
    texts: &[&str],
    jobs: &HashMap<&str, usize>,
    state: &FlowState,
    wanted: &mut BTreeSet<ResultSlot>,
) {
    let is_apart = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
    let words = texts.iter().flat_map(|text| text.split(is_apart));
    for job in words.filter_map(|word| jobs.get(word).copied()) {
        if wanted.insert((job, None)) {
            let items = state.jobs[job].items.as_ref().map_or(0, Vec::len);
            wanted.extend((0..items).map(|item| (job, Some(item))));
        }
    }
}

/// Returns the expressions of a job, which may name others.
fn texts(node: &Node) -> Vec<&str> {
    let mut texts: Vec<&str> = Vec::new();
    let expressions = node
        .condition
        .iter()
        .chain(&node.foreach)
        .chain(node.env.values());
    texts.extend(expressions.map(|text| text.text.as_str()));
    if let Work::Approve(approve) = &node.work {
        texts.push(&approve.question.text);
    }
    for input in node.inputs.values() {
        strings(&input.value, &mut texts);
    }
    texts
}

/// Collects the strings of a JSON value.
fn strings<'v>(value: &'v serde_json::Value, out: &mut Vec<&'v str>) {
    match value {
        serde_json::Value::String(text) => out.push(text),
        serde_json::Value::Array(items) => items.iter().for_each(|item| strings(item, out)),
        serde_json::Value::Object(map) => map.values().for_each(|item| strings(item, out)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use meshwork_model::flow::Run;

    use super::*;

    /// A name within another word is none.
    #[test]
    fn expressions_name_whole_words() {
        const JOBS: usize = 10_000;
        let mut plan = Plan::new("test");
        for at in 0..JOBS {
            let name = format!("j{at}").parse().unwrap();
            plan.jobs.push(Node::new(name, Work::Run(Run::default())));
        }
        let (jobs, state) = (places(&plan), FlowState::new(&plan));
        let mut wanted = BTreeSet::new();
        for text in ["{{ j12+1 }} é`${j345.x}`", "xj7 j8x j9_ -j10"] {
            name_all(&[text], &jobs, &state, &mut wanted);
        }
        let expected = [10, 12, 345].map(|job| (job, None));
        assert_eq!(wanted.into_iter().collect::<Vec<_>>(), expected);
    }
}
