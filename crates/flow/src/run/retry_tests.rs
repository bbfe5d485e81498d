//! `retry --from`: what runs again, and what is refused.

use serde_json::json;

use super::tests::{World, ends, failing, job, plan};
use super::*;

#[test]
fn a_retry_repeats_the_job_and_what_depends_on_it() {
    let plan = plan(&[("a", &[]), ("b", &["a"]), ("c", &["b"]), ("d", &["a"])]);
    let first = failing(&["b@0"]).run(&plan);
    let decider = Decider::new(&plan).unwrap();
    let mut state = first.state;
    retry(&decider, &mut state, &[RetryFrom::Job("b".to_owned())]).unwrap();
    let generations: Vec<u32> = state.jobs.iter().map(|run| run.generation).collect();
    // `d` was stopped with the flow.
    assert_eq!(generations, [0, 1, 1, 1]);
    let late = state.clone().ended(1, None, 0, End::Finished(json!(0)));
    assert_eq!(
        late,
        Err(Refused::Generation {
            reported: 0,
            current: 1
        })
    );
    let second = World {
        fails: &["b@0"],
        from: Some(state),
        ..World::default()
    }
    .run(&plan);
    assert_eq!(ends(&plan, &second), "a=ok b=ok c=ok d=ok");
    let mut started: Vec<usize> = second.starts().map(|(_, job, _)| job).collect();
    started.sort_unstable();
    assert_eq!(started, [1, 2, 3]);
    let mut running = FlowState::new(&plan);
    let refused = retry(&decider, &mut running, &[RetryFrom::Job("b".to_owned())]);
    assert_eq!(refused, Err(RetryError::NotEnded));
    let mut ended = second.state;
    let refused = retry(&decider, &mut ended, &[RetryFrom::Job("x".to_owned())]);
    assert_eq!(refused, Err(RetryError::Unknown("x".to_owned())));
}

#[test]
fn a_retry_of_a_group_repeats_its_failed_items() {
    let mut plan = plan(&[("g", &[]), ("after", &["g"])]);
    job(&mut plan, "g").foreach = Some("4".into());
    plan.fail_fast = false;
    let first = failing(&["g[1]@0", "g[3]@0"]).run(&plan);
    let decider = Decider::new(&plan).unwrap();
    let again_at = |from: &[RetryFrom]| {
        let mut state = first.state.clone();
        retry(&decider, &mut state, from).unwrap();
        let world = World {
            fails: &["g[1]@0", "g[3]@0"],
            from: Some(state),
            ..World::default()
        };
        let report = world.run(&plan);
        let items: Vec<usize> = report.starts().filter_map(|(_, _, item)| item).collect();
        (items, ends(&plan, &report))
    };
    let again = |from: RetryFrom| again_at(&[from]);
    let item = |item| RetryFrom::Item("g".to_owned(), item);
    assert_eq!(
        again_at(&[item(3), item(1)]),
        (vec![1, 3], "g=ok after=ok".to_owned())
    );
    // Each place counts: an item that finished, and the items that did not.
    assert_eq!(
        again_at(&[item(0), RetryFrom::Job("g".to_owned())]),
        (vec![0, 1, 3], "g=ok after=ok".to_owned())
    );
    assert_eq!(
        again_at(&[item(0), RetryFrom::All("g".to_owned())]),
        (vec![0, 1, 2, 3], "g=ok after=ok".to_owned())
    );
    assert_eq!(
        again(RetryFrom::Job("g".to_owned())),
        (vec![1, 3], "g=ok after=ok".to_owned())
    );
    assert_eq!(
        again(RetryFrom::Item("g".to_owned(), 1)),
        (vec![1], "g=error after=skipped".to_owned())
    );
    assert_eq!(
        again(RetryFrom::All("g".to_owned())),
        (vec![0, 1, 2, 3], "g=ok after=ok".to_owned())
    );
    let refused = retry(
        &decider,
        &mut first.state.clone(),
        &[RetryFrom::Item("g".to_owned(), 4)],
    );
    assert_eq!(refused, Err(RetryError::NoItem("g".to_owned(), 4)));
}

#[test]
fn a_retry_starts_at_what_was_undone_or_before() {
    let mut plan = plan(&[("a", &[]), ("b", &["a"]), ("c", &["b"]), ("undo", &[])]);
    job(&mut plan, "undo").compensates = Some("b".parse().unwrap());
    let first = failing(&["c@0"]).run(&plan);
    let decider = Decider::new(&plan).unwrap();
    let mut state = first.state;
    let refused = retry(&decider, &mut state, &[RetryFrom::Job("c".to_owned())]);
    assert_eq!(refused, Err(RetryError::Undone("b".to_owned())));
    retry(&decider, &mut state, &[RetryFrom::Job("b".to_owned())]).unwrap();
    let report = World {
        fails: &["c@0"],
        from: Some(state),
        ..World::default()
    }
    .run(&plan);
    assert_eq!(ends(&plan, &report), "a=ok b=ok c=ok undo=-");
}

/// A cleanup ran while the jobs before it were skipped: it depends on them, so it runs again behind them.
#[test]
fn a_retry_repeats_what_depends_on_a_job_that_the_failure_skipped() {
    let mut plan = plan(&[
        ("a", &[]),
        ("no", &[]),
        ("b", &["a"]),
        ("clean", &["b"]),
        ("other", &["no", "a0"]),
        ("a0", &[]),
    ]);
    job(&mut plan, "clean").condition = Some("always()".into());
    job(&mut plan, "no").condition = Some("false".into());
    let first = failing(&["a@0"]).run(&plan);
    assert_eq!(
        ends(&plan, &first),
        "a=error no=skipped b=skipped clean=ok other=skipped a0=stopped"
    );
    let decider = Decider::new(&plan).unwrap();
    let mut state = first.state;
    let all = |name: &str| RetryFrom::All(name.to_owned());
    let from = retry(&decider, &mut state, &[RetryFrom::Job("a".to_owned())]).unwrap();
    assert_eq!(
        from,
        [
            RetryFrom::Job("a".to_owned()),
            all("b"),
            all("other"),
            all("a0")
        ]
    );
    let generations: Vec<u32> = state.jobs.iter().map(|run| run.generation).collect();
    assert_eq!(generations, [1, 0, 1, 1, 1, 1], "the answer of `no` stays");
    let world = World {
        fails: &["a@0"],
        from: Some(state),
        ..World::default()
    };
    let report = world.run(&plan);
    assert_eq!(
        ends(&plan, &report),
        "a=ok no=skipped b=ok clean=ok other=ok a0=ok"
    );
    let started: Vec<usize> = report.starts().map(|(_, job, _)| job).collect();
    assert_eq!(started, [0, 5, 2, 4, 3]);
}
