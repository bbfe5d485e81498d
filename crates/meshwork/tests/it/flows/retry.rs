//! `retry`: what runs again, what is refused, and a retry that is killed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use meshwork::flow::run::RetryFrom;
use meshwork_broker::flow::Flows;
use meshwork_broker::{Deleted, Retried};
use meshwork_model::keys::context::FlowId;

use super::*;

/// Twenty jobs: each script gives its own name, `list` the items.
const TWENTY: &str = "
flow: twenty
jobs:
  list: {script: list, type: osis}
  each: {script: each, type: osis, needs: list, foreach: list.result}
  pay: {script: pay, type: osis, needs: list}
  undo: {script: undo, type: osis, compensates: pay}
  a1: {script: a1, type: osis, needs: [each, pay]}
  a2: {script: a2, type: osis, needs: a1}
  a3: {script: a3, type: osis, needs: a1}
  a4: {script: a4, type: osis, needs: [a2, a3]}
  b1: {script: b1, type: osis}
  b2: {script: b2, type: osis, needs: b1}
  b3: {script: b3, type: osis, needs: [b2, list]}
  b4: {script: b4, type: osis, needs: b3, if: 'true'}
  c1: {script: c1, type: osis, needs: [b4, a4]}
  c2: {script: c2, type: osis, needs: c1}
  c3: {script: c3, type: osis, needs: c1}
  c4: {script: c4, type: osis, needs: [c2, c3]}
  d1: {script: d1, type: osis, needs: b4}
  d2: {script: d2, type: osis, needs: d1}
  d3: {script: d3, type: osis, needs: [d2, c4]}
  last: {script: last, type: osis, needs: d3}
outputs: {last: '{{last.result}}', each: '{{each.result}}'}
";

/// A flow, with a clock that the test moves.
struct Run {
    broker: Broker,
    flows: FlowClient,
    stepper: Stepper,
    plan: Plan,
    id: FlowId,
    hand: Arc<AtomicU64>,
}

impl Run {
    async fn new(yaml: &str) -> Self {
        let (clock, hand) = Clock::manual(1_700_000_000_000);
        let node = Broker::new(Conn::embedded(&Handle::in_memory()), JobKeys::default());
        let broker = context_of(node.with_clock(clock)).await;
        let (flows, plan) = (FlowClient::new(&broker).unwrap(), plan(yaml));
        let id = flows.submit(&plan, ActorId(12)).await.unwrap();
        let stepper = Stepper::new(&broker).unwrap();
        Self {
            broker,
            flows,
            stepper,
            plan,
            id,
            hand,
        }
    }

    /// Runs the jobs until none waits, and returns the scripts that ran, an item's with its input. Those of `fails` fail.
    async fn drive(&self, fails: &[&str]) -> Vec<String> {
        let mut ran = Vec::new();
        loop {
            while self.stepper.step().await.unwrap().is_none() {}
            let Some(claimed) = next_job(&self.broker).await else {
                ran.sort();
                return ran;
            };
            let mut name = String::from_utf8(claimed.job.script.clone()).unwrap();
            if let Some(input) = &claimed.job.input {
                name.push_str(&String::from_utf8_lossy(input));
            }
            if fails.contains(&name.as_str()) {
                let failure = Failure::new(FailureKind::Permanent, "x");
                let failed = self
                    .broker
                    .fail(&claimed, &failure, b"", b"", Duration::ZERO);
                assert_eq!(failed.await.unwrap(), Failed::Failed);
            } else {
                let output = match name.as_str() {
                    "list" => json!([0, 1, 2]),
                    name => json!(name),
                };
                let output = output.to_string();
                let finished = self.broker.complete(&claimed, output.as_bytes(), b"", b"");
                assert_eq!(finished.await.unwrap(), Completed::Finished);
            }
            ran.push(name);
        }
    }

    async fn view(&self) -> FlowView {
        self.flows.status(self.id).await.unwrap()
    }

    async fn retry(&self, from: RetryFrom) -> Result<(), String> {
        let retried = self.flows.retry(self.id, ActorId(12), &[from]).await;
        retried.map_err(|error| error.to_string())
    }

    /// The scripts that a retry at this job runs again; `items` of the foreach.
    fn depends_on(&self, start: &str, items: &[&str]) -> Vec<String> {
        let mut again: BTreeSet<&str> = BTreeSet::from([start]);
        loop {
            let before = again.len();
            for job in &self.plan.jobs {
                if job.needs.iter().any(|name| again.contains(name.as_str())) {
                    again.insert(job.name.as_str());
                }
            }
            if again.len() == before {
                break;
            }
        }
        let had_each = again.remove("each");
        let mut again: Vec<String> = again.into_iter().map(str::to_owned).collect();
        if had_each {
            again.extend(items.iter().map(|item| (*item).to_owned()));
        }
        again.sort();
        again
    }
}

const ITEMS: [&str; 3] = ["each0", "each1", "each2"];

#[tokio::test]
async fn a_retry_at_each_job_repeats_exactly_what_it_must() {
    let run = Run::new(TWENTY).await;
    let all = run.drive(&[]).await;
    assert_eq!(all.len(), 21, "{all:?}");
    let first = run.view().await;
    assert_eq!(first.error, None);
    for job in &run.plan.jobs {
        let name = job.name.as_str();
        let refused = run.retry(RetryFrom::Job(name.to_owned())).await;
        if name == "undo" {
            let why = "flow 1: the flow has no job `undo` that could be retried";
            assert_eq!(refused, Err(why.to_owned()));
            continue;
        }
        refused.unwrap();
        assert_eq!(run.view().await.status, "started");
        // All items of `each` finished: none of them runs again if the retry starts there.
        let items = if name == "each" { &[][..] } else { &ITEMS };
        assert_eq!(run.drive(&[]).await, run.depends_on(name, items), "{name}");
        let view = run.view().await;
        assert_eq!(
            (view.status.as_str(), &view.outputs),
            ("finished", &first.outputs)
        );
    }
    for (from, items) in [
        (RetryFrom::Item("each".to_owned(), 1), &ITEMS[1..2]),
        (RetryFrom::All("each".to_owned()), &ITEMS),
    ] {
        run.retry(from).await.unwrap();
        assert_eq!(run.drive(&[]).await, run.depends_on("each", items));
        assert_eq!(run.view().await.outputs, first.outputs);
    }
    let jobs = run.view().await.jobs;
    assert_eq!(jobs[1].items.len(), 3);
    assert_eq!(
        run.retry(RetryFrom::Item("each".to_owned(), 3)).await,
        Err("flow 1: the job `each` has no item 3".to_owned())
    );
}

#[tokio::test]
async fn failed_items_run_again_and_what_was_undone_is_started_at() {
    let run = Run::new(TWENTY).await;
    let ran = run.drive(&["each1"]).await;
    assert!(ran.contains(&"undo".to_owned()), "{ran:?}");
    let view = run.view().await;
    assert_eq!(view.status, "error");
    assert_eq!(view.job("undo").unwrap().status, "finished");
    let why =
        "flow 1: job `pay` was undone by its compensation: retry from it, or from a job before it";
    for job in ["each", "last"] {
        let refused = run.retry(RetryFrom::Job(job.to_owned())).await;
        assert_eq!(refused, Err(why.to_owned()));
    }
    assert_eq!(run.view().await, view, "a refusal changes nothing");
    let starts = [
        RetryFrom::Job("pay".to_owned()),
        RetryFrom::Job("each".to_owned()),
    ];
    run.flows.retry(run.id, ActorId(12), &starts).await.unwrap();
    let again = run.drive(&[]).await;
    for name in ["pay", "each1", "last"] {
        assert!(again.contains(&name.to_owned()), "{name}: {again:?}");
    }
    assert!(!again.contains(&"list".to_owned()), "{again:?}");
    let view = run.view().await;
    assert_eq!(
        (view.status.as_str(), view.error.as_deref()),
        ("finished", None)
    );
    assert_eq!(view.job("undo").unwrap().status, "waiting");
}

#[tokio::test]
async fn a_report_of_an_older_generation_changes_nothing() {
    let run = Run::new(
        "flow: f\njobs:\n  a: {script: a, type: osis}\n  b: {script: b, type: osis, needs: a}\n",
    )
    .await;
    while run.stepper.step().await.unwrap().is_none() {}
    let old = next_job(&run.broker).await.unwrap();
    let refused = run.retry(RetryFrom::Job("a".to_owned())).await;
    let why = "the flow 1 has not ended: cancel it first";
    assert_eq!(refused, Err(why.to_owned()));
    let failure = Failure::new(FailureKind::Permanent, "x");
    let failed = run.broker.fail(&old, &failure, b"", b"", Duration::ZERO);
    assert_eq!(failed.await.unwrap(), Failed::Failed);
    while run.stepper.step().await.unwrap().is_none() {}
    assert_eq!(run.view().await.status, "error");
    run.retry(RetryFrom::Job("a".to_owned())).await.unwrap();
    while run.stepper.step().await.unwrap().is_none() {}
    let before = run.view().await;
    let late = run.broker.complete(&old, b"late", b"", b"").await;
    assert_eq!(late.unwrap(), Completed::Stale);
    assert_eq!(run.view().await, before);
    assert_eq!(run.drive(&[]).await, ["a", "b"]);
    assert_eq!(
        run.view().await.outputs,
        [("b".to_owned(), json!("b"))].into()
    );
}

#[tokio::test]
async fn a_flow_of_which_a_job_is_gone_is_not_retried() {
    let run = Run::new("flow: f\njobs:\n  a: {script: a, type: osis}\n").await;
    run.drive(&[]).await;
    let key = run.view().await.jobs[0].id.clone();
    let id = run.flows.job_id(&key).unwrap();
    let job = run.broker.inspect(&id).await.unwrap().unwrap();
    assert_eq!(run.broker.delete(&job).await.unwrap(), Deleted::OfFlow);
    assert_eq!(run.broker.retry(&job).await.unwrap(), Retried::OfFlow);
    let flows = Flows::of(&run.broker).unwrap();
    assert_eq!(flows.delete_job(&job).await.unwrap(), Deleted::Deleted);
    let why = "the record of job `a` of flow 1 is gone: submit the flow again";
    let refused = run.retry(RetryFrom::Job("a".to_owned())).await;
    assert_eq!(refused, Err(why.to_owned()));
}

/// The step that carries out the retry is killed once, after so many polls.
#[tokio::test]
async fn a_retry_that_is_killed_anywhere_is_gone_on_with() {
    for polls in 1..=30 {
        let mut run = Run::new(TWENTY).await;
        run.stepper = run.stepper.lease(Duration::from_millis(1));
        let all = run.drive(&[]).await;
        run.retry(RetryFrom::Job("list".to_owned())).await.unwrap();
        let _ = killed_after(polls, run.stepper.step()).await;
        run.hand.fetch_add(1, Ordering::SeqCst);
        let expected: Vec<String> = run.depends_on("list", &ITEMS);
        assert_eq!(run.drive(&[]).await, expected, "after {polls} polls");
        let view = run.view().await;
        assert_eq!(view.status, "finished");
        assert_eq!(json!(view.outputs["each"]), json!(ITEMS));
        assert!(all.len() > expected.len());
    }
}
