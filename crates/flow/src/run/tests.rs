//! The rules of runs, one test each, and random flows.

use std::collections::BTreeMap;

use meshwork_model::flow::{Approve, Node, Plan, Run, Wait, Work};
use serde_json::{Value, json};

use super::*;
use crate::expr;

/// A plan of scripts with needs.
pub(super) fn plan(jobs: &[(&str, &[&str])]) -> Plan {
    let mut plan = Plan::new("test");
    for (name, needs) in jobs {
        let mut node = Node::new(name.parse().unwrap(), Work::Run(Run::default()));
        node.needs = needs.iter().map(|need| need.parse().unwrap()).collect();
        plan.jobs.push(node);
    }
    plan
}

pub(super) fn job<'p>(plan: &'p mut Plan, name: &str) -> &'p mut Node {
    plan.jobs
        .iter_mut()
        .find(|job| job.name.as_str() == name)
        .unwrap()
}

/// Fails the jobs and items of these names (`a`, `a[1]`); the others give their names, or `values`.
#[derive(Default)]
pub(super) struct World<'w> {
    pub(super) fails: &'w [&'w str],
    pub(super) values: BTreeMap<&'w str, Value>,
    pub(super) cancel_ms: Option<u64>,
    pub(super) stop_ms: u64,
    pub(super) from: Option<FlowState>,
}

impl World<'_> {
    pub(super) fn run(self, plan: &Plan) -> Report {
        assert_eq!(expr::check(plan), Vec::new());
        let attempt = |report: &JobReport<'_>| {
            let name = match report.item {
                Some(item) => format!("{}[{item}]", report.job.name),
                None => report.job.name.to_string(),
            };
            // `a@0` fails in generation 0 only, `a#1` in its first attempt only.
            let of_generation = format!("{name}@{}", report.generation);
            let of_attempt = format!("{name}#{}", report.attempt);
            let fails = [&name, &of_generation, &of_attempt]
                .into_iter()
                .any(|n| self.fails.contains(&n.as_str()));
            let value = self
                .values
                .get(name.as_str())
                .cloned()
                .unwrap_or_else(|| json!(name));
            Attempt {
                ms: 1000,
                result: if fails {
                    Err("broken".to_owned())
                } else {
                    Ok(value)
                },
            }
        };
        let mut simulation = Simulation {
            attempt: &attempt,
            pick: &mut |_| 0,
            slots: 4,
            cancel_ms: self.cancel_ms,
            stop_ms: &|_| self.stop_ms,
        };
        let state = self.from.unwrap_or_else(|| FlowState::new(plan));
        interpret(plan, state, &mut simulation).unwrap()
    }
}

pub(super) fn failing<'w>(fails: &'w [&'w str]) -> World<'w> {
    World {
        fails,
        ..World::default()
    }
}

/// The ends of all jobs: `a=ok b=error c=skipped d=stopped`, and `-` for a compensation that did not run.
pub(super) fn ends(plan: &Plan, report: &Report) -> String {
    let jobs = plan.jobs.iter().zip(&report.state.jobs);
    let words: Vec<String> = jobs
        .map(|(node, run)| {
            let word = match run.phase.end() {
                Some(End::Finished(_)) => "ok",
                Some(End::Failed(_)) => "error",
                Some(End::Skipped) => "skipped",
                Some(End::Cancelled) => "stopped",
                None => "-",
            };
            format!("{}={word}", node.name)
        })
        .collect();
    words.join(" ")
}

fn result(report: &Report, plan: &Plan, name: &str) -> Value {
    match report.phase(plan, name).unwrap() {
        Phase::Ended(End::Finished(value)) => value.clone(),
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn a_diamond_ends_with_the_results_of_the_jobs_that_nobody_needs() {
    let plan = plan(&[
        ("a", &[]),
        ("b", &["a"]),
        ("c", &["a"]),
        ("d", &["b", "c"]),
        ("e", &["a"]),
    ]);
    let report = World::default().run(&plan);
    assert_eq!(report.ended_ms, 3000);
    let end = report.end();
    assert_eq!((end.status.as_str(), &end.error), ("finished", &None));
    assert_eq!(json!(end.result), json!({"d": "d", "e": "e"}));
}

#[test]
fn outputs_are_the_result_of_the_flow() {
    let mut plan = plan(&[("a", &[])]);
    plan.inputs.insert("n".to_owned(), json!(2));
    plan.outputs.insert("x".to_owned(), "{{a.result.n}}".into());
    plan.outputs
        .insert("y".to_owned(), "n is {{inputs.n}}".into());
    let values = BTreeMap::from([("a", json!({"n": [1]}))]);
    let report = World {
        values,
        ..World::default()
    }
    .run(&plan);
    assert_eq!(json!(report.end().result), json!({"x": [1], "y": "n is 2"}));
    let report = World::default().run(&plan);
    assert!(
        report
            .end()
            .error
            .as_ref()
            .unwrap()
            .starts_with("output `x`: the expression `a.result.n`")
    );
}

#[test]
fn a_failure_skips_what_has_not_started_and_stops_what_runs() {
    let mut plan = plan(&[("a", &[]), ("slow", &[]), ("b", &["a"]), ("c", &["slow"])]);
    job(&mut plan, "slow").work = Work::Wait(Wait::For(60_000));
    let report = failing(&["a"]).run(&plan);
    assert_eq!(
        ends(&plan, &report),
        "a=error slow=stopped b=skipped c=skipped"
    );
    assert_eq!(report.end().error.as_deref(), Some("job `a`: broken"));
    plan.fail_fast = false;
    let report = failing(&["a"]).run(&plan);
    assert_eq!(ends(&plan, &report), "a=error slow=ok b=skipped c=ok");
    assert_eq!(report.end().status, "error");
}

#[test]
fn continue_lets_the_flow_go_on() {
    let mut plan = plan(&[("a", &[]), ("b", &["a"])]);
    job(&mut plan, "a").continue_on_failure = true;
    let report = failing(&["a"]).run(&plan);
    assert_eq!(ends(&plan, &report), "a=error b=ok");
    assert_eq!(report.end().status, "finished");
}

#[test]
fn retries_are_used_up_before_a_job_has_failed() {
    let mut plan = plan(&[("a", &[])]);
    job(&mut plan, "a").retries = 1;
    job(&mut plan, "a").backoff_ms = Some(5000);
    let report = failing(&["a#1"]).run(&plan);
    assert_eq!(
        (ends(&plan, &report).as_str(), report.ended_ms),
        ("a=ok", 7000)
    );
    assert_eq!(ends(&plan, &failing(&["a"]).run(&plan)), "a=error");
}

#[test]
fn an_if_is_asked_once_after_all_needs() {
    let mut plan = plan(&[
        ("a", &[]),
        ("b", &["a"]),
        ("c", &["b"]),
        ("d", &["b", "a"]),
        ("e", &["c"]),
    ]);
    job(&mut plan, "b").condition = Some("a.result == \"x\"".into());
    // `c` has skipped needs only, `d` has not.
    let report = World::default().run(&plan);
    assert_eq!(
        ends(&plan, &report),
        "a=ok b=skipped c=skipped d=ok e=skipped"
    );
    assert_eq!(report.end().status, "finished");
    job(&mut plan, "c").condition = Some("b.status == \"skipped\"".into());
    assert_eq!(
        ends(&plan, &World::default().run(&plan)),
        "a=ok b=skipped c=ok d=ok e=ok"
    );
}

#[test]
fn an_if_that_asks_for_failure_is_asked_after_one() {
    let mut plan = plan(&[
        ("a", &[]),
        ("b", &["a"]),
        ("clean", &["b"]),
        ("tell", &["b"]),
        ("plain", &["b"]),
    ]);
    job(&mut plan, "clean").condition = Some("failed()".into());
    job(&mut plan, "tell").condition = Some("always()".into());
    job(&mut plan, "plain").condition = Some("true".into());
    let report = failing(&["a"]).run(&plan);
    assert_eq!(
        ends(&plan, &report),
        "a=error b=skipped clean=ok tell=ok plain=skipped"
    );
    assert_eq!(report.end().status, "error");
    let report = World::default().run(&plan);
    assert_eq!(
        ends(&plan, &report),
        "a=ok b=ok clean=skipped tell=ok plain=ok"
    );
}

/// A cancel that takes its time: what comes after the cancelled job is decided on by its end.
#[test]
fn a_job_is_decided_on_when_all_its_ancestors_have_ended() {
    let mut plan = plan(&[
        ("boom", &[]),
        ("a", &[]),
        ("b", &["a"]),
        ("always", &["b"]),
        ("failed", &["b"]),
    ]);
    job(&mut plan, "a").condition = Some("always()".into());
    job(&mut plan, "a").backoff_ms = Some(1000);
    job(&mut plan, "a").retries = 2;
    job(&mut plan, "always").condition = Some("always()".into());
    job(&mut plan, "failed").condition = Some("failed()".into());
    // `a` goes on after the failure, since it asks for it.
    let report = failing(&["boom", "a#1", "a#2"]).run(&plan);
    assert_eq!(
        ends(&plan, &report),
        "boom=error a=ok b=skipped always=ok failed=skipped"
    );
    let starts: Vec<_> = report.starts().map(|(ms, job, _)| (job, ms)).collect();
    assert_eq!(starts, [(0, 0), (1, 0), (3, 6000)]);
    // `a` is cancelled, and the cleanup runs however long that takes.
    job(&mut plan, "a").condition = None;
    for stop_ms in [0, 1, 3000] {
        let world = World {
            fails: &["boom", "a#1", "a#2"],
            stop_ms,
            ..World::default()
        };
        let report = world.run(&plan);
        assert_eq!(
            ends(&plan, &report),
            "boom=error a=stopped b=skipped always=ok failed=ok"
        );
    }
}

#[test]
fn an_expression_that_fails_fails_its_job() {
    let mut plan = plan(&[("a", &[]), ("b", &["a"])]);
    job(&mut plan, "b").condition = Some("a.result.nothing == 1".into());
    let report = World::default().run(&plan);
    assert_eq!(ends(&plan, &report), "a=ok b=error");
    let error = report.end().error.as_ref().unwrap();
    assert!(
        error.starts_with("job `b`: the expression `a.result.nothing == 1`: "),
        "{error}"
    );
}

#[test]
fn an_environment_that_cannot_be_fails_its_job() {
    let large = "x".repeat(65_536);
    for (value, says) in [
        (large.as_str(), "takes 65537 bytes, `V` alone 65537"),
        ("a\0b", "the variable `V` contains a NUL character"),
    ] {
        let mut of_result = plan(&[("a", &[]), ("b", &["a"])]);
        let env = &mut job(&mut of_result, "b").env;
        env.insert("V".to_owned(), "{{a.result}}".into());
        let decider = Decider::new(&of_result).unwrap();
        assert_eq!(decider.check_environments(), Ok(()));
        let mut world = World::default();
        world.values.insert("a", json!(value));
        let report = world.run(&of_result);
        let Some(End::Failed(error)) = report.state.jobs[1].phase.end() else {
            panic!("{}", ends(&of_result, &report));
        };
        assert!(error.contains(says), "{error}");
        // An input is known before the flow starts.
        let mut of_input = of_result.clone();
        of_input.inputs.insert("x".to_owned(), json!(value));
        let env = &mut job(&mut of_input, "b").env;
        env.insert("V".to_owned(), "{{inputs.x}}".into());
        let decider = Decider::new(&of_input).unwrap();
        let error = decider.check_environments().unwrap_err().to_string();
        assert!(
            error.starts_with("job `b`: ") && error.contains(says),
            "{error}"
        );
        of_input.env.insert("V".to_owned(), "{{inputs.x}}".into());
        let error = Decider::new(&of_input).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn a_foreach_gives_a_list_by_index() {
    let mut plan = plan(&[("a", &[]), ("b", &["a"]), ("c", &["b"])]);
    let b = job(&mut plan, "b");
    b.foreach = Some("a.result".into());
    b.concurrency = Some(2);
    b.env.insert("X".to_owned(), "{{item}}-{{index}}".into());
    let values = BTreeMap::from([("a", json!([10, 20, 30]))]);
    let report = World {
        values: values.clone(),
        ..World::default()
    }
    .run(&plan);
    assert_eq!(result(&report, &plan, "b"), json!(["b[0]", "b[1]", "b[2]"]));
    assert_eq!(report.ended_ms, 4000);
    let items: Vec<_> = report
        .starts()
        .filter(|(_, job, _)| *job == 1)
        .map(|(ms, _, item)| (ms, item.unwrap()))
        .collect();
    assert_eq!(items, [(1000, 0), (1000, 1), (2000, 2)]);
    // An item that fails stops the others, unless the flow goes on.
    let world = World {
        values: values.clone(),
        fails: &["b[1]"],
        ..World::default()
    };
    let report = world.run(&plan);
    assert_eq!(ends(&plan, &report), "a=ok b=error c=skipped");
    assert_eq!(
        report.end().error.as_deref(),
        Some("job `b`: 1 of 3 items failed")
    );
    job(&mut plan, "b").continue_on_failure = true;
    job(&mut plan, "c").condition = Some(
        "b.failed == 1 && b.total == 3 && b.result[1] == () && b.errors[1] == \"broken\"".into(),
    );
    let world = World {
        values,
        fails: &["b[1]"],
        ..World::default()
    };
    assert_eq!(ends(&plan, &world.run(&plan)), "a=ok b=error c=ok");
    // No items: the group finishes at once.
    job(&mut plan, "c").condition = None;
    let values = BTreeMap::from([("a", json!([]))]);
    let report = World {
        values,
        ..World::default()
    }
    .run(&plan);
    assert_eq!(
        (result(&report, &plan, "b"), ends(&plan, &report).as_str()),
        (json!([]), "a=ok b=ok c=ok")
    );
}

#[test]
fn compensations_run_the_latest_first() {
    let mut plan = plan(&[
        ("a", &[]),
        ("b", &["a"]),
        ("c", &["b"]),
        ("ua", &[]),
        ("ub", &[]),
        ("uc", &[]),
    ]);
    for (partner, of) in [("ua", "a"), ("ub", "b"), ("uc", "c")] {
        job(&mut plan, partner).compensates = Some(of.parse().unwrap());
    }
    job(&mut plan, "ub")
        .env
        .insert("X".to_owned(), "{{b.result}}{{a.result}}".into());
    let report = failing(&["c"]).run(&plan);
    assert_eq!(ends(&plan, &report), "a=ok b=ok c=error ua=ok ub=ok uc=-");
    assert_eq!(report.end().compensated, ["b", "a"]);
    // One that fails is noted, and the next one goes on.
    let report = failing(&["c", "ub"]).run(&plan);
    let end = report.end();
    assert_eq!(
        (&end.compensated[..], &end.not_compensated[..]),
        (&["a".to_owned()][..], &["b".to_owned()][..])
    );
    // No failure: nothing is undone.
    assert_eq!(
        ends(&plan, &World::default().run(&plan)),
        "a=ok b=ok c=ok ua=- ub=- uc=-"
    );
    // A cancellation and a timeout undo, too.
    let report = World {
        cancel_ms: Some(1500),
        ..World::default()
    }
    .run(&plan);
    assert_eq!(
        ends(&plan, &report),
        "a=ok b=stopped c=stopped ua=ok ub=- uc=-"
    );
    assert_eq!(report.end().error.as_deref(), Some("stopped"));
    let mut from = FlowState::new(&plan);
    from.compensate = false;
    let report = World {
        cancel_ms: Some(1500),
        from: Some(from),
        ..World::default()
    }
    .run(&plan);
    assert_eq!(
        ends(&plan, &report),
        "a=ok b=stopped c=stopped ua=- ub=- uc=-"
    );
    plan.timeout_ms = Some(2500);
    let report = World::default().run(&plan);
    assert_eq!(report.end().error.as_deref(), Some("timeout"));
    assert_eq!(report.end().compensated, ["b", "a"]);
}

#[test]
fn approvals_and_waits_have_their_times() {
    let mut plan = plan(&[("ask", &[]), ("b", &["ask"]), ("pause", &["b"])]);
    job(&mut plan, "ask").work = Work::Approve(Approve {
        question: "Go?".into(),
        ..Approve::default()
    });
    job(&mut plan, "pause").work = Work::Wait(Wait::For(7 * 24 * 3_600_000));
    let report = World::default().run(&plan);
    assert_eq!(
        (ends(&plan, &report).as_str(), report.ended_ms),
        ("ask=ok b=ok pause=ok", 604_802_000)
    );
    assert_eq!(
        ends(&plan, &failing(&["ask"]).run(&plan)),
        "ask=error b=skipped pause=skipped"
    );
    job(&mut plan, "ask").timeout_ms = Some(500);
    let report = World::default().run(&plan);
    assert_eq!(report.end().error.as_deref(), Some("job `ask`: timeout"));
}

#[test]
fn a_nested_flow_gives_its_outputs() {
    let mut inner = plan(&[("x", &[])]);
    inner.inputs.insert("n".to_owned(), Value::Null);
    inner
        .outputs
        .insert("twice".to_owned(), "{{inputs.n * 2}}".into());
    let mut plan = plan(&[("a", &[]), ("b", &["a"])]);
    job(&mut plan, "b").work = Work::Flow("k".to_owned());
    let input = meshwork_model::flow::Input {
        value: json!("{{a.result}}"),
        at: None,
    };
    job(&mut plan, "b").inputs.insert("n".to_owned(), input);
    plan.flows.insert("k".to_owned(), inner);
    let values = BTreeMap::from([("a", json!(21))]);
    let report = World {
        values: values.clone(),
        ..World::default()
    }
    .run(&plan);
    assert_eq!(json!(report.end().result), json!({"b": {"twice": 42}}));
    let report = World {
        values,
        fails: &["x"],
        ..World::default()
    }
    .run(&plan);
    assert_eq!(
        report.end().error.as_deref(),
        Some("job `b`: job `x`: broken")
    );
}
