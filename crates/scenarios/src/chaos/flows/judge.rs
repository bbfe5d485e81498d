//! The judge: compares each flow with its outcome in memory, and its starts with the order of its ancestors.

use std::collections::HashMap;

use meshwork::flow::run::{End, Phase};
use meshwork::flow::{FlowView, JobView};
use meshwork_model::flow::Graph;
use serde_json::Value;

use super::random::Dag;

/// Returns the word of a view for a phase.
fn word(phase: &Phase) -> &'static str {
    match phase {
        Phase::Ended(End::Finished(_)) => "finished",
        Phase::Ended(End::Failed(_)) => "error",
        Phase::Ended(End::Cancelled) => "stopped",
        Phase::Ended(End::Skipped) => "skipped",
        // A compensation that is not needed.
        Phase::Waiting => "waiting",
        Phase::Released | Phase::Started => "open",
    }
}

/// Returns each difference between a flow and its outcome in memory. A flow that something stopped may have skipped or
/// stopped jobs.
pub(super) fn outcome(dag: &Dag, view: &FlowView, cancelled: bool) -> Vec<String> {
    let differences = whole(dag, view);
    if differences.is_empty() || !(cancelled || dag.stops()) {
        return differences;
    }
    stopped(dag, view)
}

/// Compares a flow that ran to its end.
fn whole(dag: &Dag, view: &FlowView) -> Vec<String> {
    let (expected, mut differences) = (&dag.expected, Vec::new());
    for (run, job) in expected.state.jobs.iter().zip(&view.jobs) {
        let items = run.items.iter().flatten().map(|item| word(&item.phase));
        let items: Vec<_> = items.collect();
        let found: Vec<_> = job.items.iter().map(|item| item.status).collect();
        let result = match &run.phase {
            Phase::Ended(End::Finished(result)) => result,
            _ => &Value::Null,
        };
        if (word(&run.phase), &items, result) != (job.status, &found, &job.result) {
            let (name, status) = (&job.name, word(&run.phase));
            differences.push(format!(
                "{name} is {} {} {found:?}, expected {status} {result} {items:?}",
                job.status, job.result
            ));
        }
    }
    let end = expected.end();
    if end.status != view.status {
        differences.push(format!("it is {}, expected {}", view.status, end.status));
    }
    if end.error.is_none() && end.result != view.outputs {
        differences.push(format!(
            "outputs {:?}, expected {:?}",
            view.outputs, end.result
        ));
    }
    differences
}

/// Compares a flow that was stopped at some moment: a job whose ancestors ended as expected did so too, or was skipped
/// or stopped; what finished was undone.
fn stopped(dag: &Dag, view: &FlowView) -> Vec<String> {
    let mut differences = Vec::new();
    let Ok(graph) = Graph::new(&dag.plan) else {
        return vec!["its graph has a cycle".to_owned()];
    };
    let ancestors = graph.ancestors();
    let runs = &dag.expected.state.jobs;
    let equal = |job: usize| {
        let (run, found) = (&runs[job], &view.jobs[job]);
        let result = match &run.phase {
            Phase::Ended(End::Finished(result)) => *result == found.result,
            _ => true,
        };
        result && word(&run.phase) == found.status
    };
    let halted = |job: &JobView| matches!(job.status, "skipped" | "stopped");
    for (number, (node, job)) in dag.plan.jobs.iter().zip(&view.jobs).enumerate() {
        let right = match &node.compensates {
            Some(undone) => {
                let done = view
                    .job(undone.as_str())
                    .is_some_and(|it| it.status == "finished");
                (job.status == "finished") == done
            }
            None => {
                let mut before = (0..runs.len()).filter(|other| ancestors.contains(number, *other));
                // A group of which some items were stopped has failed too.
                let partly = job
                    .items
                    .iter()
                    .any(|item| matches!(item.status, "skipped" | "stopped"));
                let ended = matches!(job.status, "finished" | "error");
                halted(job)
                    || ended && (partly || equal(number) || before.any(|other| !equal(other)))
            }
        };
        if !right {
            let (name, run) = (&job.name, &runs[number].phase);
            differences.push(format!(
                "{name} is {} {}, expected {run:?} of a flow that was stopped",
                job.status, job.result
            ));
        }
    }
    if view.status != "error" {
        differences.push(format!("it is {}, and was stopped", view.status));
    }
    differences
}

/// Starts and ends of jobs, as they are noted outside of the store.
#[derive(Debug, Default)]
pub(super) struct Noted {
    /// The positions of the first start and the first end, by flow, job and item.
    programs: HashMap<(String, String, String), (usize, Option<usize>)>,
    /// The starts of each job in the logs of the workers, in their order.
    pub(super) starts: HashMap<String, Vec<std::time::Duration>>,
}

impl Noted {
    /// Reads the file that programs append to.
    pub(super) fn read(tally: &str, starts: HashMap<String, Vec<std::time::Duration>>) -> Self {
        let mut programs: HashMap<_, (usize, Option<usize>)> = HashMap::new();
        for (at, line) in tally.lines().enumerate() {
            let mut words = line.split(' ').map(str::to_owned);
            let mut next = || words.next().unwrap_or_default();
            let (word, key) = (next(), (next(), next(), next()));
            let noted = programs.entry(key).or_insert((at, None));
            if word == "end" {
                noted.1.get_or_insert(at);
            }
        }
        Self { programs, starts }
    }

    /// Returns each job that started before its ancestors had ended, and each that ran although it was skipped, or did not run
    /// although it finished.
    pub(super) fn order(
        &self,
        dag: &Dag,
        view: &FlowView,
        log_name: impl Fn(&str) -> Option<String>,
    ) -> Vec<String> {
        let mut wrong = Vec::new();
        let Ok(graph) = Graph::new(&dag.plan) else {
            return vec!["its graph has a cycle".to_owned()];
        };
        let ancestors = graph.ancestors();
        let logged = |id: &str| self.starts.get(&log_name(id)?);
        let first = |id: &str| logged(id)?.first().copied();
        let is_group = |number: usize| dag.plan.jobs[number].foreach.is_some();
        for (number, job) in view.jobs.iter().enumerate() {
            let runs = runs(job, is_group(number));
            for (id, status) in &runs {
                let ran = logged(id).is_some();
                if (*status == "skipped" && ran) || (*status == "finished" && !ran) {
                    wrong.push(format!("{} is {status}, started: {ran}", job.name));
                }
            }
            let began = runs.iter().filter_map(|(id, _)| first(id)).min();
            let noted = self.first_begin(view, job, is_group(number));
            for (other, before) in view.jobs.iter().enumerate() {
                if !ancestors.contains(number, other) {
                    continue;
                }
                let mut runs = self::runs(before, is_group(other)).into_iter();
                let late = runs.any(|(id, _)| first(id).zip(began).is_some_and(|(n, j)| n > j));
                if late || self.ends_after(dag, view, other, noted) {
                    let (job, before) = (&job.name, &before.name);
                    wrong.push(format!("{job} began before {before} had ended"));
                }
            }
        }
        wrong
    }

    fn of(&self, view: &FlowView, job: &JobView, item: &str) -> Option<&(usize, Option<usize>)> {
        let key = (view.id.to_string(), job.name.clone(), item.to_owned());
        self.programs.get(&key)
    }

    fn first_begin(&self, view: &FlowView, job: &JobView, is_group: bool) -> Option<usize> {
        let items = items(job, is_group);
        let noted = items.iter().filter_map(|item| self.of(view, job, item));
        noted.map(|(begin, _)| *begin).min()
    }

    /// Returns true if a program of this job that finished ended after the position, or not at all.
    fn ends_after(&self, dag: &Dag, view: &FlowView, need: usize, begin: Option<usize>) -> bool {
        let job = &view.jobs[need];
        let is_group = dag.plan.jobs[need].foreach.is_some();
        let (true, Some(begin)) = (dag.kinds[need].notes() && job.status == "finished", begin)
        else {
            return false;
        };
        let ends = |item: &String| self.of(view, job, item).and_then(|(_, end)| *end);
        let mut items = items(job, is_group).into_iter();
        items.any(|item| ends(&item).is_none_or(|end| end > begin))
    }
}

/// The records of a job's runs, with their statuses.
fn runs(job: &JobView, is_group: bool) -> Vec<(&str, &'static str)> {
    if !is_group {
        return vec![(&job.id, job.status)];
    }
    let items = job.items.iter();
    let known = items.filter_map(|item| Some((item.id.as_deref()?, item.status)));
    known.collect()
}

/// The values of `ITEM_INDEX`.
fn items(job: &JobView, is_group: bool) -> Vec<String> {
    match is_group {
        true => (0..job.items.len()).map(|item| item.to_string()).collect(),
        false => vec![String::new()],
    }
}
