//! Random flows: each ends, in the order of its needs, with results that do not depend on the order of free jobs.

use meshwork_model::flow::{Node, Plan, Run, Work};
use proptest::prelude::*;
use serde_json::json;

use super::tests::ends;
use super::*;

/// A random flow: needs point to earlier jobs; some have conditions, items, `continue` or a compensation.
fn random(edges: &[(usize, usize)], kinds: &[u8]) -> Plan {
    let mut plan = Plan::new("random");
    for (number, kind) in kinds.iter().enumerate() {
        let mut node = Node::new(
            format!("j{number}").parse().unwrap(),
            Work::Run(Run::default()),
        );
        let of = |from: &usize| *from < number && kinds[*from] != 7;
        let mut needs: Vec<usize> = edges
            .iter()
            .filter(|(_, to)| *to == number)
            .map(|(from, _)| *from)
            .filter(of)
            .collect();
        needs.sort_unstable();
        needs.dedup();
        match kind {
            1 => node.condition = Some("always()".into()),
            2 => node.condition = Some("failed()".into()),
            3 => node.foreach = Some("3".into()),
            4 => {
                node.foreach = Some("5".into());
                node.concurrency = Some(2);
                node.continue_on_failure = true;
            }
            5 => node.continue_on_failure = true,
            6 => node.retries = 1,
            7 if number > 0 && kinds[number - 1] != 7 => {
                needs.clear();
                node.compensates = Some(format!("j{}", number - 1).parse().unwrap());
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

fn simulated(plan: &Plan, failures: u64, turn: usize, slots: usize) -> Report {
    let attempt = |report: &JobReport<'_>| {
        let number: u64 = report.job.name.as_str()[1..].parse().unwrap();
        let item = report.item.unwrap_or(0) as u64;
        let bad = (failures >> ((number + item) % 64)) & 1 == 1;
        Attempt {
            ms: 10 + (number * 7 + item * 3) % 50,
            result: if bad && report.attempt < 3 {
                Err("broken".to_owned())
            } else {
                Ok(json!(number + item))
            },
        }
    };
    let mut picked = turn;
    let mut pick = |of: usize| {
        picked = picked.wrapping_mul(31).wrapping_add(7);
        picked % of
    };
    let mut simulation = Simulation {
        attempt: &attempt,
        pick: &mut pick,
        slots,
        cancel_ms: None,
    };
    interpret(plan, FlowState::new(plan), &mut simulation).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Each flow ends, no job starts before its needs have ended, and compensations run one at a time.
    #[test]
    fn random_flows_end_in_order(
        edges in proptest::collection::vec((0usize..60, 0usize..60), 0..150),
        kinds in proptest::collection::vec(0u8..8, 1..60),
        failures in any::<u64>(), turn in any::<usize>(), fast in any::<bool>(), slots in 1usize..6,
    ) {
        let mut plan = random(&edges, &kinds);
        plan.fail_fast = fast;
        let report = simulated(&plan, failures, turn, slots);
        let graph = meshwork_model::flow::Graph::new(&plan).unwrap();
        for (ms, job, _) in &report.starts {
            for need in graph.needs(*job) {
                let ended_before = report.starts.iter().filter(|(_, other, _)| other == need).all(|(at, ..)| at < ms);
                prop_assert!(ended_before);
                prop_assert!(report.state.jobs[*need].phase.end().is_some());
            }
        }
        for job in graph.order() {
            prop_assert!(report.state.jobs[job].phase.end().is_some());
        }
    }

    /// Without fail fast the ends and results do not depend on the order in which free jobs run, nor on the slots.
    #[test]
    fn results_are_independent_of_the_order(
        edges in proptest::collection::vec((0usize..40, 0usize..40), 0..80),
        kinds in proptest::collection::vec(0u8..7, 1..40),
        failures in any::<u64>(), turn in any::<usize>(), slots in 1usize..6,
    ) {
        let mut plan = random(&edges, &kinds);
        plan.fail_fast = false;
        let (one, other) = (simulated(&plan, failures, 0, 1), simulated(&plan, failures, turn, slots));
        prop_assert_eq!(ends(&plan, &one), ends(&plan, &other));
        prop_assert_eq!(&one.end().result, &other.end().result);
    }
}
