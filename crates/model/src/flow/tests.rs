//! The checks of a plan, its levels, and what `flow.dag` shows.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

fn name(text: &str) -> NodeName {
    text.parse().unwrap()
}

/// A plan of jobs that run the script `1`, each with the names of its needs.
fn plan(jobs: &[(&str, &[&str])]) -> Plan {
    let mut plan = Plan::new("test");
    plan.scripts.insert("x".to_owned(), "1".to_owned());
    for (job, needs) in jobs {
        let mut node = Node::new(name(job), run());
        node.needs = needs.iter().map(|need| name(need)).collect();
        plan.jobs.push(node);
    }
    plan
}

fn run() -> Work {
    Work::Run(Run {
        script: "x".to_owned(),
        script_type: "osis".to_owned(),
        ..Run::default()
    })
}

/// The faults of a plan, as text.
fn faults(plan: &Plan) -> Vec<String> {
    check(plan).iter().map(ToString::to_string).collect()
}

/// The one fault of a plan of one job, changed by `change`.
fn fault(change: impl Fn(&mut Node)) -> String {
    let mut plan = plan(&[("a", &[]), ("b", &["a"])]);
    change(&mut plan.jobs[1]);
    let mut faults = faults(&plan);
    assert_eq!(faults.len(), 1, "{faults:?}");
    faults.remove(0)
}

#[test]
fn a_good_plan_has_no_fault_and_comes_back_from_json() {
    let mut plan = plan(&[("a", &[]), ("b", &["a"]), ("undo", &[])]);
    plan.jobs[2].compensates = Some(name("a"));
    plan.jobs[1].foreach = Some("a.result".into());
    plan.jobs[1].concurrency = Some(3);
    assert_eq!(faults(&plan), Vec::<String>::new());
    let json = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
    let more = json.replacen("\"name\"", "\"more\":1,\"name\"", 1);
    assert!(serde_json::from_str::<Plan>(&more).is_err());
}

#[test]
fn a_cycle_is_printed() {
    let cycle = plan(&[
        ("z", &[]),
        ("a", &["z", "c"]),
        ("b", &["a"]),
        ("c", &["b"]),
        ("d", &["c"]),
    ]);
    let says = "these jobs wait for each other: a → c → b → a; remove one of these needs";
    assert_eq!(faults(&cycle), [says]);
    let itself = plan(&[("a", &["a"])]);
    assert!(faults(&itself)[0].contains("a → a"));
}

#[test]
fn names_that_are_not_there_are_named() {
    let unknown = fault(|job| job.needs = vec![name("aa")]);
    assert_eq!(
        unknown,
        "job `b`: `needs` names `aa`, but no job has this name; did you mean `a`?"
    );
    assert!(fault(|job| job.needs.push(name("a"))).contains("twice"));
    let twice = plan(&[("a", &[]), ("a", &[])]);
    assert!(faults(&twice)[0].contains("two jobs are named `a`"));
}

#[test]
fn a_compensation_is_no_part_of_the_graph() {
    let undo = |job: &mut Node| {
        job.needs.clear();
        job.compensates = Some(name("a"));
    };
    let with = |change: fn(&mut Node)| {
        fault(|job| {
            undo(job);
            change(job);
        })
    };
    assert!(with(|job| job.needs = vec![name("a")]).contains("`needs` does not go with"));
    assert!(with(|job| job.condition = Some("true".into())).contains("`if` does not go with"));
    assert!(with(|job| job.continue_on_failure = true).contains("`continue` does not go with"));
    assert!(with(|job| job.compensates = Some(name("c"))).contains("no job has this name"));
    assert!(with(|job| job.compensates = Some(name("b"))).contains("is a compensation itself"));
    let mut three = plan(&[("a", &[]), ("b", &[]), ("c", &[]), ("d", &["b"])]);
    three.jobs[1].compensates = Some(name("a"));
    three.jobs[2].compensates = Some(name("a"));
    let said = faults(&three);
    assert!(
        said[0].contains("`a` is compensated by `b` already"),
        "{said:?}"
    );
    assert!(
        said[1].contains("needs `b`, which compensates another job"),
        "{said:?}"
    );
}

#[test]
fn options_have_their_ranges_and_their_work() {
    let approve = || Work::Approve(Approve::default());
    for (said, change) in [
        (
            "`retries` is 101",
            (|job| job.retries = 101) as fn(&mut Node),
        ),
        ("`concurrency` goes with `foreach` only", |job| {
            job.concurrency = Some(1);
        }),
        ("`concurrency` is 0", |job| {
            job.foreach = Some("3".into());
            job.concurrency = Some(0);
        }),
        ("`backoff` goes with `retries` only", |job| {
            job.backoff_ms = Some(1);
        }),
        ("`timeout` is 999 ms: give 1s to 7d", |job| {
            job.timeout_ms = Some(999);
        }),
        ("set by Meshwork", |job| {
            job.env.insert("FLOW_ID".to_owned(), "x".into());
        }),
        ("no name of an environment variable", |job| {
            job.env.insert("A=B".to_owned(), "x".into());
        }),
        ("the environment takes", |job| {
            let value = "x".repeat(crate::job::limits::MAX_ENV);
            job.env.insert("A".to_owned(), value.as_str().into());
        }),
        ("at most 65536 are allowed", |job| {
            job.condition = Some("x".repeat(limits::MAX_EXPRESSION + 1).as_str().into());
        }),
        ("is no priority", |job| {
            if let Work::Run(run) = &mut job.work {
                run.priority = Some("urgent".to_owned());
            }
        }),
        ("the plan has no script", |job| {
            if let Work::Run(run) = &mut job.work {
                run.script.clear();
            }
        }),
        ("no nested flow `x`", |job| {
            job.work = Work::Flow("x".to_owned());
        }),
    ] {
        let fault = fault(change);
        assert!(fault.contains(said), "{said}: {fault}");
    }
    let gate = |change: fn(&mut Node)| {
        fault(|job| {
            job.work = approve();
            change(job);
        })
    };
    assert!(gate(|job| job.foreach = Some("3".into())).contains("`foreach` goes with"));
    assert!(gate(|job| job.retries = 1).contains("`retries` goes with"));
    assert!(gate(|job| job.timeout_ms = Some(0)).contains("`timeout` is 0 s"));
}

#[test]
fn flows_have_bounds() {
    assert!(faults(&Plan::new("test"))[0].contains("no jobs"));
    assert!(faults(&Plan::new("a b"))[0].contains("no name of a flow"));
    let names: Vec<String> = (0..=limits::MAX_JOBS).map(|n| format!("j{n}")).collect();
    let jobs: Vec<(&str, &[&str])> = names.iter().map(|n| (n.as_str(), &[][..])).collect();
    assert_eq!(faults(&plan(&jobs[1..])), Vec::<String>::new());
    assert!(faults(&plan(&jobs))[0].contains("10001 jobs"));
    let needs: Vec<&str> = names.iter().skip(1).map(String::as_str).collect();
    let mut wide = jobs[1..1002].to_vec();
    wide.push(("sink", &needs[..1001]));
    assert!(faults(&plan(&wide))[0].contains("it needs 1001 jobs"));
    wide.pop();
    wide.push(("sink", &needs[..1000]));
    assert_eq!(faults(&plan(&wide)), Vec::<String>::new());
}

#[test]
fn nested_flows_count_and_have_a_depth() {
    let mut inner = plan(&[("a", &[])]);
    for depth in 1..=limits::MAX_DEPTH {
        assert_eq!((inner.depth(), inner.total_jobs()), (depth, depth));
        assert_eq!(faults(&inner), Vec::<String>::new());
        let mut outer = Plan::new("outer");
        outer
            .jobs
            .push(Node::new(name("a"), Work::Flow("x".to_owned())));
        outer.flows.insert("x".to_owned(), inner);
        inner = outer;
    }
    assert!(faults(&inner)[0].contains("nested 9 levels deep"));
}

#[test]
fn jobs_that_change_nothing_are_found() {
    let mut plan = plan(&[
        ("a", &[]),
        ("b", &["a"]),
        ("c", &[]),
        ("d", &[]),
        ("ask", &["a"]),
    ]);
    plan.jobs[3].compensates = Some(name("a"));
    plan.jobs[4].work = Work::Approve(Approve::default());
    assert_eq!(unused(&plan, &HashSet::new()), [name("c"), name("ask")]);
    assert_eq!(unused(&plan, &HashSet::from([name("c")])), [name("ask")]);
}

#[test]
fn the_graph_as_flow_dag_shows_it() {
    let mut plan = plan(&[
        ("a", &[]),
        ("b", &["a"]),
        ("c", &["a", "b"]),
        ("d", &["a"]),
        ("u", &[]),
    ]);
    plan.jobs[4].compensates = Some(name("d"));
    let of = |n: usize| plan.jobs[n].name.to_string();
    let status = [
        "finished",
        "error",
        "waiting_for_prerequisites",
        "started",
        "dispatched",
    ];
    let dag = Dag::new(&plan, of, |n| JobState {
        status: Some(status[n].to_owned()),
        error: (n == 1).then(|| "broken".to_owned()),
        started_ms: (n == 1).then_some(1_500),
        finished_ms: (n == 1).then_some(2_999),
    });
    let dag = serde_json::to_value(dag.unwrap()).unwrap();
    assert_eq!(dag["levels"], serde_json::json!([["a"], ["b", "d"], ["c"]]));
    let edges = [["a", "b"], ["a", "c"], ["b", "c"], ["a", "d"]];
    assert_eq!(dag["edges"], serde_json::json!(edges));
    let node = serde_json::json!({
        "id": "b", "script_type": "osis", "status": "error", "depends": ["a"], "level": 2, "error": "broken",
        "started_at": 1, "finished_at": 2, "started_ms": 1_500, "finished_ms": 2_999,
    });
    assert_eq!(dag["nodes"][1], node);
    assert_eq!(dag["nodes"][4]["level"], 0);
    assert_eq!(dag["nodes"][4]["compensates"], "d");
    let lists = ["ready", "started", "completed", "failed"].map(|key| dag[key].clone());
    let lists = serde_json::json!(lists);
    assert_eq!(lists, serde_json::json!([["c"], ["d"], ["a"], ["b"]]));
    let ahead = Dag::new(&plan, |n| n, |_| JobState::default()).unwrap();
    assert_eq!(ahead.ready, [0]);
}

#[test]
fn a_plan_knows_its_contexts() {
    let mut elsewhere = plan(&[("a", &[])]);
    if let Work::Run(run) = &mut elsewhere.jobs[0].work {
        run.context = "3".parse().ok();
    }
    let json = serde_json::to_value(&elsewhere).unwrap();
    assert_eq!(json["jobs"][0]["work"]["run"]["context"], 3);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Random graphs, in any order of their jobs: each level is one above its needs, and ancestors are what a walk finds.
    #[test]
    fn levels_and_ancestors(edges in proptest::collection::vec((0usize..40, 0usize..40), 0..120), turn in 0usize..40) {
        let of = |n: usize| format!("j{}", (n + turn) % 40);
        let mut jobs = plan(&[]);
        for number in 0..40 {
            let mut node = Node::new(name(&format!("j{number}")), run());
            let needs = edges.iter().filter(|(from, to)| from < to && of(*to) == node.name.as_str());
            node.needs = needs.map(|(from, _)| name(&of(*from))).collect();
            jobs.jobs.push(node);
        }
        let graph = Graph::new(&jobs).unwrap();
        let ancestors = graph.ancestors();
        for number in 0..40 {
            let above = graph.needs(number).iter().map(|n| graph.level_of(*n).unwrap()).max();
            prop_assert_eq!(graph.level_of(number), Some(above.unwrap_or(0) + 1));
            for other in 0..40 {
                let below = other != number && graph.with_descendants(other).contains(&number);
                prop_assert_eq!(ancestors.contains(number, other), below);
            }
        }
        let order: Vec<usize> = graph.order().collect();
        prop_assert_eq!(order.len(), 40);
        for (place, number) in order.iter().enumerate() {
            prop_assert!(graph.needs(*number).iter().all(|n| order[..place].contains(n)));
        }
    }
}
