//! Flows on an engine in memory, with a worker of Rhai scripts.

use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use meshwork::flow::{FlowClient, FlowView, Plan, Stepper};
use meshwork::{Client, Worker};
use meshwork_broker::conn::Conn;
use meshwork_broker::{Broker, Claim, Claimed, Clock, Completed, Failed, PrefetchLists};
use meshwork_embedded::Handle;
use meshwork_model::keys::context::{ActorId, ContextId, ContextKeys, ContextLayout};
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::outcome::{Failure, FailureKind};
use serde_json::{Value, json};

mod damage;
mod options;
mod order;
mod plain;
mod retry;
mod schedules;
mod time;

use crate::flow_actors::{found, session};

/// The longest that a test waits.
const PATIENCE: Duration = Duration::from_secs(60);

/// The session of a context on an engine of its own.
async fn context() -> Broker {
    context_of(Broker::new(
        Conn::embedded(&Handle::in_memory()),
        JobKeys::default(),
    ))
    .await
}

async fn context_of(node: Broker) -> Broker {
    let keys = ContextKeys::new(ContextId::new(7).unwrap(), ContextLayout::Db);
    node.of_context(keys).await.unwrap()
}

fn plan(yaml: &str) -> Plan {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("flow.yaml");
    std::fs::write(&file, yaml).unwrap();
    meshwork::flow::load(&file).unwrap()
}

/// Runs a flow to its end with one worker and one stepper.
async fn run(yaml: &str) -> FlowView {
    let broker = context().await;
    let flows = FlowClient::new(&broker).unwrap();
    let id = flows.submit(&plan(yaml), ActorId(12)).await.unwrap();
    let worker = Worker::new(&Client::new(broker.clone()));
    let worker = worker
        .script_type(&"osis".parse().unwrap())
        .unwrap()
        .concurrency(4);
    let worker = worker.start().await.unwrap();
    let stepper = Stepper::new(&broker).unwrap().start();
    let ended = tokio::time::timeout(PATIENCE, flows.wait(id, |_| {})).await;
    let ended = match ended {
        Ok(ended) => ended.unwrap(),
        Err(_) => panic!("{:#?}", flows.status(id).await),
    };
    worker.stop().await;
    stepper.stop().await;
    ended
}

fn ends(view: &FlowView) -> String {
    let words: Vec<_> = view
        .jobs
        .iter()
        .map(|job| format!("{}={}", job.name, job.status))
        .collect();
    words.join(" ")
}

#[tokio::test]
async fn a_diamond_runs_to_its_end() {
    let view = run("
flow: diamond
env: {PLACE: here}
jobs:
  a: {script: '#{n: 2, files: [\"x\", \"y\"]}', type: osis}
  b: {script: '3', type: osis, needs: a}
  c: {script: '4', type: osis, needs: a, if: a.result.n == 2}
  d: {script: 'INPUTS.b + INPUTS.c', type: osis, needs: [b, c]}
outputs: {sum: '{{d.result}}', files: '{{a.result.files}}'}
")
    .await;
    assert_eq!(view.error, None);
    assert_eq!(ends(&view), "a=finished b=finished c=finished d=finished");
    assert_eq!(json!(view.outputs), json!({"sum": 7, "files": ["x", "y"]}));
}

#[tokio::test]
async fn a_foreach_gives_its_results_in_order() {
    let view = run("
flow: each
jobs:
  list: {script: '[1, 2, 3, 4, 5]', type: osis}
  twice: {script: 'parse_int(INPUT) * 2', type: osis, needs: list, foreach: list.result, concurrency: 2}
  none: {script: '1', type: osis, foreach: '0'}
  all: {script: 'parse_json(INPUT).of', type: osis, needs: [twice, none], with: {of: '{{twice.result}}'}}
")
    .await;
    assert_eq!(view.error, None);
    assert_eq!(json!(view.outputs), json!({"all": [2, 4, 6, 8, 10]}));
    assert_eq!(view.job("twice").unwrap().items.len(), 5);
    assert_eq!(view.job("none").unwrap().result, json!([]));
}

#[tokio::test]
async fn a_failure_ends_the_flow_and_compensates() {
    let view = run("
flow: bad
jobs:
  a: {script: '1', type: osis}
  undo: {script: '\"undone \" + INPUTS.a', type: osis, compensates: a}
  b: {script: 'throw \"broken\"', type: osis, needs: a}
  c: {script: '1', type: osis, needs: b}
  tell: {script: '1', type: osis, needs: b, if: failed()}
")
    .await;
    assert_eq!(view.status, "error");
    assert_eq!(
        ends(&view),
        "a=finished undo=finished b=error c=skipped tell=finished"
    );
    assert!(view.error.unwrap().starts_with("job `b`: "));
}

/// Polls a future so often, and drops it then: as a process that is killed there.
async fn killed_after<T>(polls: usize, future: impl Future<Output = T>) -> Option<T> {
    let mut future = std::pin::pin!(future);
    let mut left = polls;
    std::future::poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        future.as_mut().poll(context).map(Some)
    })
    .await
}

/// Claims the next job of the type `osis`, if one waits.
async fn next_job(broker: &Broker) -> Option<Claimed> {
    let queues = ["queue:osis".to_owned()];
    let claim = Claim {
        queues: &queues,
        old: &[],
        reverse: false,
        prefetch: PrefetchLists::All,
        want: 1,
        ahead: 0,
        lease: Duration::from_secs(10),
        worker: "w-1",
        token: &uuid::Uuid::new_v4().to_string(),
    };
    broker.claim(claim).await.unwrap().jobs.pop()
}

/// Runs the job that is next as the scripts of [`KILLED`] would. False if none waits.
async fn work(broker: &Broker) -> bool {
    let Some(claimed) = next_job(broker).await else {
        return false;
    };
    let input: Value = match &claimed.job.input {
        Some(input) => serde_json::from_slice(input).unwrap(),
        None => Value::Null,
    };
    let output = match claimed.job.script.as_slice() {
        b"[1, 2, 3]" => json!([1, 2, 3]),
        b"INPUT * 2" => json!(input.as_i64().unwrap() * 2),
        b"INPUT.of" => input["of"].clone(),
        _ => {
            let failure = Failure::new(FailureKind::Permanent, "x");
            let failed = broker.fail(&claimed, &failure, b"", b"", Duration::ZERO);
            assert_eq!(failed.await.unwrap(), Failed::Failed);
            return true;
        }
    };
    let output = output.to_string();
    let finished = broker.complete(&claimed, output.as_bytes(), b"", b"").await;
    assert_eq!(finished.unwrap(), Completed::Finished);
    true
}

const KILLED: &str = "
flow: killed
jobs:
  list: {script: '[1, 2, 3]', type: osis}
  skip: {script: '1', type: osis, needs: list, if: 'false'}
  twice: {script: 'INPUT * 2', type: osis, needs: list, foreach: list.result, concurrency: 2}
  bad: {script: 'throw \"x\"', type: osis, needs: list, continue: true}
  all: {script: 'INPUT.of', type: osis, needs: [twice, skip, bad], with: {of: '{{twice.result}}'}}
outputs: {all: '{{all.result}}', bad: '{{bad.failed}}'}
";

/// Each step is killed once, after so many polls, and gone on with by another after its lease.
#[tokio::test]
async fn a_step_that_is_killed_anywhere_is_gone_on_with() {
    for polls in 1..=40 {
        let (clock, hand) = Clock::manual(1_700_000_000_000);
        let node = Broker::new(Conn::embedded(&Handle::in_memory()), JobKeys::default());
        let broker = context_of(node.with_clock(clock)).await;
        let flows = FlowClient::new(&broker).unwrap();
        let id = flows.submit(&plan(KILLED), ActorId(12)).await.unwrap();
        let stepper = Stepper::new(&broker).unwrap();
        let stepper = stepper.lease(Duration::from_millis(1));
        for _ in 0..1_000 {
            let _ = killed_after(polls, stepper.step()).await;
            hand.fetch_add(1, Ordering::SeqCst);
            while stepper.step().await.unwrap().is_none() {}
            if !work(&broker).await && flows.status(id).await.unwrap().is_ended() {
                break;
            }
        }
        let view = flows.status(id).await.unwrap();
        assert_eq!(view.error, None, "after {polls} polls");
        assert_eq!(
            ends(&view),
            "list=finished skip=skipped twice=finished bad=error all=finished"
        );
        assert_eq!(json!(view.outputs), json!({"all": [2, 4, 6], "bad": 1}));
    }
}

#[tokio::test]
async fn what_cannot_be_run_yet_is_refused_by_name() {
    let flows = FlowClient::new(&context().await).unwrap();
    let waits = plan("{flow: f, jobs: {signal: {wait: {message: done, from: 12}}}}");
    let refused = flows.submit(&waits, ActorId(12)).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "1:18: the job `signal` uses a message of an unknown type (job, chat and mail are known), which cannot be run yet"
    );
    assert!(flows.list().await.unwrap().is_empty());
}

#[tokio::test]
async fn approvals_waits_and_a_cancellation() {
    let node = Broker::new(Conn::embedded(&Handle::in_memory()), JobKeys::default());
    let (admin, reader) = found(&node, ContextLayout::Db).await;
    let broker = context_of(node.clone()).await;
    let flows = FlowClient::new(&broker).unwrap();
    let (admin, reader) = (session(&node, &admin).await, session(&node, &reader).await);
    let asks = plan(
        "
flow: asks
jobs:
  pause: {wait: {for: 1ms}}
  ask: {approve: 'Go on with {{1 + 1}}?', approvers: [7], needs: pause}
  more: {approve: 'Really?', needs: ask}
",
    );
    let id = admin.submit(&asks).await.unwrap();
    let stepper = Stepper::new(&broker).unwrap().start();
    let approval = async |name: &str| loop {
        let view = flows.status(id).await.unwrap();
        if let Some(question) = view.job(name).unwrap().question.clone() {
            return question;
        }
        tokio::task::yield_now().await;
    };
    let question = tokio::time::timeout(PATIENCE, approval("ask"))
        .await
        .unwrap();
    assert_eq!(question, "Go on with 2?");
    let refused = admin.answer(id, "ask", true).await.unwrap_err();
    assert!(
        refused
            .to_string()
            .starts_with("actor 12 may not answer `ask`")
    );
    reader.answer(id, "ask", true).await.unwrap();
    let second = reader.answer(id, "ask", false).await.unwrap_err();
    assert!(second.to_string().ends_with("actor 7 said yes"), "{second}");
    tokio::time::timeout(PATIENCE, approval("more"))
        .await
        .unwrap();
    let refused = reader.cancel(id, true).await.unwrap_err().to_string();
    assert!(refused.starts_with("actor 7 may not cancel"), "{refused}");
    assert!(admin.cancel(id, true).await.unwrap());
    let view = tokio::time::timeout(PATIENCE, flows.wait(id, |_| {}))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (view.status.as_str(), view.error.as_deref()),
        ("error", Some("stopped"))
    );
    assert_eq!(ends(&view), "pause=finished ask=finished more=stopped");
    assert!(!admin.cancel(id, true).await.unwrap());
    stepper.stop().await;
    admin.delete(id).await.unwrap();
    assert!(flows.list().await.unwrap().is_empty());
}
