//! Random flows: each job is decided on when all its ancestors have ended, and results do not depend on the order of free
//! jobs.

use std::cell::RefCell;
use std::collections::BTreeMap;

use meshwork_model::flow::{Graph, Input, Node, Plan, Run, Work};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use serde_json::{Map, Value, json};

use super::decide::fails;
use super::tests::ends;
use super::*;

/// The settings of a property: `PROPTEST_CASES` overrides the number of cases.
fn cases(cases: u32) -> ProptestConfig {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(cases),
    }
}

/// The kind of job that has the condition `failed()`.
const FAILED: u8 = 2;
/// The kind of job that is a compensation of the job before it.
const COMPENSATION: u8 = 7;
/// The number of kinds.
const KINDS: u8 = 9;

/// A random flow: needs point to earlier jobs; some have conditions, items, `continue` or a compensation.
fn random(edges: &[(usize, usize)], kinds: &[u8]) -> Plan {
    let mut plan = Plan::new("random");
    for (number, kind) in kinds.iter().enumerate() {
        let mut node = Node::new(
            format!("j{number}").parse().unwrap(),
            Work::Run(Run::default()),
        );
        let of = |from: &usize| *from < number && kinds[*from] != COMPENSATION;
        let mut needs: Vec<usize> = edges
            .iter()
            .filter(|(_, to)| *to == number)
            .map(|(from, _)| *from)
            .filter(of)
            .collect();
        needs.sort_unstable();
        needs.dedup();
        match *kind {
            1 => node.condition = Some("always()".into()),
            FAILED => node.condition = Some("failed()".into()),
            3 => node.foreach = Some("3".into()),
            4 => {
                node.foreach = Some("5".into());
                node.concurrency = Some(2);
                node.continue_on_failure = true;
            }
            5 => node.continue_on_failure = true,
            6 => node.retries = 1,
            COMPENSATION if number > 0 && kinds[number - 1] != COMPENSATION => {
                needs.clear();
                node.compensates = Some(format!("j{}", number - 1).parse().unwrap());
            }
            8 => {
                node.condition = Some("always()".into());
                node.foreach = Some("2".into());
            }
            _ => {}
        }
        node.needs = needs
            .iter()
            .map(|need| format!("j{need}").parse().unwrap())
            .collect();
        plan.jobs.push(node);
    }
    plan
}

/// Gives each job the statuses of up to three ancestors as input: the first, a middle one and the last.
fn with_statuses(plan: &mut Plan) {
    let ancestors = Graph::new(plan).unwrap().ancestors();
    for job in 0..plan.jobs.len() {
        let above: Vec<usize> = (0..job)
            .filter(|other| ancestors.contains(job, *other))
            .collect();
        for at in [0, above.len() / 2, above.len().saturating_sub(1)] {
            let Some(other) = above.get(at) else { continue };
            let value = json!(format!("{{{{j{other}.status}}}}"));
            let input = Input { value, at: None };
            plan.jobs[job].inputs.insert(format!("j{other}"), input);
        }
    }
}

/// The inputs of what ran, by job and item, with the generation.
type Inputs = BTreeMap<(usize, Option<usize>), (u32, Map<String, Value>)>;

/// The surroundings of a random run.
#[derive(Debug, Clone, Copy)]
struct Chance {
    /// The jobs that fail, as bits.
    failures: u64,
    /// Selects the order of free jobs.
    turn: usize,
    slots: usize,
    cancel_ms: Option<u64>,
}

impl Chance {
    fn run(&self, plan: &Plan, from: FlowState, inputs: &RefCell<Inputs>) -> Report {
        let number = |node: &Node| -> usize { node.name.as_str()[1..].parse().unwrap() };
        let attempt = |report: &JobReport<'_>| {
            let (job, item) = (number(report.job), report.item.unwrap_or(0));
            let input = (report.generation, report.work.input.clone());
            inputs.borrow_mut().insert((job, report.item), input);
            let bad = (self.failures >> ((job + item) % 64)) & 1 == 1;
            Attempt {
                ms: (10 + (job * 7 + item * 3) % 50) as u64,
                result: if bad && report.attempt < 3 {
                    Err("broken".to_owned())
                } else {
                    Ok(json!(job + item))
                },
            }
        };
        let mut picked = self.turn;
        let mut pick = |of: usize| {
            picked = picked.wrapping_mul(31).wrapping_add(7);
            picked % of
        };
        let mut simulation = Simulation {
            attempt: &attempt,
            pick: &mut pick,
            slots: self.slots,
            cancel_ms: self.cancel_ms,
            // Some runs stop at once, others go on until their own end.
            stop_ms: &|node| (number(node) * 13 % 5 * 15) as u64,
        };
        interpret(plan, from, &mut simulation).unwrap()
    }
}

/// Checks the log of a run: a job starts, or ends without a start, after the ends of all its ancestors; compensations run
/// one at a time, after all jobs.
fn in_order(plan: &Plan, before: &FlowState, report: &Report) -> Result<(), TestCaseError> {
    let graph = Graph::new(plan).unwrap();
    let ancestors = graph.ancestors();
    let ended = |job: &JobRun| job.phase.end().is_some();
    let mut ended: Vec<bool> = before.jobs.iter().map(ended).collect();
    let mut compensation = None;
    for entry in &report.log {
        let of_graph = graph.level_of(entry.job).is_some();
        let mut first = (0..plan.jobs.len()).filter(|other| match of_graph {
            true => ancestors.contains(entry.job, *other),
            false => graph.level_of(*other).is_some(),
        });
        let open = first.find(|other| !ended[*other]);
        prop_assert_eq!(open, None, "{:?} in {:?}", entry, report.log);
        if !of_graph {
            let running = if entry.start { None } else { Some(entry.job) };
            prop_assert_eq!(compensation, running);
            compensation = entry.start.then_some(entry.job);
        }
        if entry.item.is_none() && !entry.start {
            ended[entry.job] = true;
        }
    }
    for job in graph.order() {
        prop_assert!(ended[job] && report.state.jobs[job].phase.end().is_some());
    }
    Ok(())
}

/// Checks that each job was decided on by the final ends of its ancestors.
fn final_facts(plan: &Plan, report: &Report, inputs: &Inputs) -> Result<(), TestCaseError> {
    let state = &report.state;
    let status = |job: usize| match state.jobs[job].phase.end() {
        Some(End::Skipped) => "skipped",
        Some(end) if end.is_failure() => "error",
        Some(_) => "finished",
        None => "open",
    };
    for ((job, item), (generation, input)) in inputs {
        let run = &state.jobs[*job];
        let of_item = item.and_then(|item| run.items.as_ref()?.get(item));
        if of_item.map_or(run.generation, |item| item.generation) != *generation {
            continue;
        }
        for (other, said) in input {
            let other: usize = other[1..].parse().unwrap();
            prop_assert_eq!(status(other), said, "j{} of j{}", other, job);
        }
    }
    let ancestors = Graph::new(plan).unwrap().ancestors();
    for (job, node) in plan.jobs.iter().enumerate() {
        let asks = node
            .condition
            .as_ref()
            .is_some_and(|it| it.text == "failed()");
        if !asks || state.stop.is_some() {
            continue;
        }
        let failed = (0..plan.jobs.len()).any(|other| {
            let end = state.jobs[other].phase.end();
            ancestors.contains(job, other) && end.is_some_and(|end| fails(&plan.jobs[other], end))
        });
        prop_assert_eq!(status(job) != "skipped", failed, "j{}", job);
    }
    Ok(())
}

/// The places of a retry that exist, from random numbers.
fn places(plan: &Plan, state: &FlowState, starts: &[(usize, u8)]) -> Vec<RetryFrom> {
    let graph = Graph::new(plan).unwrap();
    let place = |(job, kind): &(usize, u8)| {
        let job = job % plan.jobs.len();
        graph.level_of(job)?;
        let name = plan.jobs[job].name.to_string();
        let items = state.jobs[job].items.as_ref().map_or(0, Vec::len);
        Some(match kind {
            0 => RetryFrom::All(name),
            kind if items > 0 => RetryFrom::Item(name, usize::from(*kind) % items),
            _ => RetryFrom::Job(name),
        })
    };
    starts.iter().filter_map(place).collect()
}

proptest! {
    #![proptest_config(cases(200))]

    /// Each flow ends, each job is decided on after the ends of all its ancestors and by them, and compensations run one at
    /// a time; also after retries.
    #[test]
    fn random_flows_end_in_order(
        edges in proptest::collection::vec((0usize..40, 0usize..40), 0..100),
        kinds in proptest::collection::vec(0u8..KINDS, 1..40),
        failures in any::<[u64; 3]>(), turn in any::<usize>(), fast in any::<bool>(), slots in 1usize..6,
        cancel_ms in proptest::option::weighted(0.2, 0u64..300),
        retries in proptest::collection::vec(proptest::collection::vec((0usize..40, 0u8..4), 1..4), 2),
    ) {
        let mut plan = random(&edges, &kinds);
        plan.fail_fast = fast;
        with_statuses(&mut plan);
        let inputs = RefCell::new(Inputs::new());
        let mut chance = Chance { failures: failures[0], turn, slots, cancel_ms };
        let mut from = FlowState::new(&plan);
        let decider = Decider::new(&plan).unwrap();
        for (number, retried) in retries.iter().map(Some).chain([None]).enumerate() {
            let report = chance.run(&plan, from.clone(), &inputs);
            in_order(&plan, &from, &report)?;
            final_facts(&plan, &report, &inputs.borrow())?;
            let Some(starts) = retried else { break };
            let places = places(&plan, &report.state, starts);
            from = report.state;
            match retry(&decider, &mut from, &places) {
                Ok(_) => {}
                Err(RetryError::Undone(_)) => break,
                Err(error) => prop_assert!(false, "{error}"),
            }
            chance = Chance { failures: failures[number + 1], cancel_ms: None, ..chance };
        }
    }

    /// Without fail fast the ends and results do not depend on the order in which free jobs run, nor on the slots.
    #[test]
    fn results_are_independent_of_the_order(
        edges in proptest::collection::vec((0usize..40, 0usize..40), 0..80),
        kinds in proptest::collection::vec(0u8..COMPENSATION, 1..40),
        failures in any::<u64>(), turn in any::<usize>(), slots in 1usize..6,
    ) {
        let mut plan = random(&edges, &kinds);
        plan.fail_fast = false;
        let one = Chance { failures, turn: 0, slots: 1, cancel_ms: None };
        let other = Chance { turn, slots, ..one };
        let [one, other] = [one, other].map(|chance| chance.run(&plan, FlowState::new(&plan), &RefCell::default()));
        prop_assert_eq!(ends(&plan, &one), ends(&plan, &other));
        prop_assert_eq!(&one.end().result, &other.end().result);
    }
}
