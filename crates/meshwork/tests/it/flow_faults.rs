//! All graphs of up to four jobs, over a connection that breaks once: before or after each command of a flow's life. The
//! flow ends as in memory, and so does each copy that a repeated submission has left.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use meshwork::flow::run::{
    Attempt, End, FlowState, JobReport, Phase, Report, Simulation, interpret,
};
use meshwork::flow::{FlowClient, FlowView, Plan, Stepper};
use meshwork_broker::conn::Conn;
use meshwork_broker::flow::{Answered, Approval, Flows};
use meshwork_broker::{Broker, Claim, Clock, Completed, Failed, PrefetchLists};
use meshwork_conformance::faulty::{Faulty, Moment, Plan as Fault};
use meshwork_embedded::Handle;
use meshwork_model::flow::Work;
use meshwork_model::keys::context::{ActorId, ContextId, ContextKeys, ContextLayout, FlowId};
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::outcome::{Failure, FailureKind};
use meshwork_model::route::Route;
use serde_json::{Value, json};

/// Longer than the lease of a flow.
const LEASE: Duration = Duration::from_secs(11);
/// The most steps, runs and answers of a life.
const MOST: usize = 1_000;
/// Each graph of this number of jobs has a life for one in so many commands. Those of the next graph are others.
const STRIDES: [usize; 5] = [1, 1, 1, 3, 12];
/// Lives in which the connection broke, at least.
const FEWEST: usize = 120;

/// The edges of all graphs with this number of jobs that differ in more than the names.
fn graphs(jobs: usize) -> Vec<Vec<(usize, usize)>> {
    let pairs: Vec<_> = (0..jobs)
        .flat_map(|to| (0..to).map(move |from| (from, to)))
        .collect();
    let orders = orders(jobs);
    let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
    for mask in 0_u32..1 << pairs.len() {
        let edges = pairs.iter().enumerate();
        let edges = edges.filter(|(bit, _)| mask >> bit & 1 == 1);
        let edges: Vec<(usize, usize)> = edges.map(|(_, edge)| *edge).collect();
        let renamed = orders.iter().map(|order| {
            let edges = edges.iter().map(|(from, to)| (order[*from], order[*to]));
            edges.collect::<BTreeSet<_>>()
        });
        if seen.insert(renamed.min()) {
            found.push(edges);
        }
    }
    found
}

fn orders(jobs: usize) -> Vec<Vec<usize>> {
    if jobs == 0 {
        return vec![Vec::new()];
    }
    let shorter = orders(jobs - 1).into_iter();
    let longer = shorter.flat_map(|order| {
        (0..jobs).map(move |at| {
            let mut order = order.clone();
            order.insert(at, jobs - 1);
            order
        })
    });
    longer.collect()
}

/// The flow of a graph; the kinds of its jobs differ from graph to graph.
fn flow(number: usize, jobs: usize, edges: &[(usize, usize)]) -> Plan {
    let mut all = serde_json::Map::new();
    for job in 0..jobs {
        let needs = edges.iter().filter(|(_, to)| *to == job);
        let needs: Vec<_> = needs.map(|(from, _)| format!("j{from}")).collect();
        let mut node = match (number + 2 * job) % 6 {
            0 => json!({"script": "[1, 2, 3]", "type": "osis"}),
            1 => json!({"script": "INPUT * 2", "type": "osis", "foreach": "2", "concurrency": 1}),
            2 => json!({"script": "throw", "type": "osis", "continue": true}),
            3 => json!({"script": "[1, 2, 3]", "type": "osis", "if": "false"}),
            4 => json!({"script": "throw", "type": "osis"}),
            _ => json!({"approve": "Go on?"}),
        };
        node["needs"] = json!(needs);
        all.insert(format!("j{job}"), node);
        if (number + job).is_multiple_of(5) {
            let undo =
                json!({"script": "[1, 2, 3]", "type": "osis", "compensates": format!("j{job}")});
            all.insert(format!("undo{job}"), undo);
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("flow.yaml");
    // JSON is YAML.
    let flow = json!({"flow": "f", "fail_fast": false, "jobs": all});
    std::fs::write(&file, flow.to_string()).unwrap();
    meshwork::flow::load(&file).unwrap()
}

/// The result of a script, or its error. An item is its own input.
fn outcome(script: &str, item: Option<u64>) -> Result<Value, String> {
    match (script, item) {
        ("[1, 2, 3]", _) => Ok(json!([1, 2, 3])),
        ("INPUT * 2", Some(item)) => Ok(json!(item * 2)),
        _ => Err("x".to_owned()),
    }
}

/// Runs the job that is next. False if none waits.
async fn work(broker: &Broker) -> bool {
    let queues = [Route::to("osis".parse().unwrap()).queue(broker.keys())];
    let claim = Claim {
        queues: &queues,
        old: &[],
        reverse: false,
        prefetch: PrefetchLists::All,
        want: 1,
        ahead: 0,
        lease: LEASE,
        worker: "w-1",
        token: &uuid::Uuid::new_v4().to_string(),
    };
    let Some(claimed) = broker.claim(claim).await.unwrap().jobs.pop() else {
        return false;
    };
    let script = std::str::from_utf8(&claimed.job.script).unwrap();
    let input = claimed.job.input.as_ref();
    let item = input.and_then(|input| serde_json::from_slice(input).ok());
    match outcome(script, item) {
        Ok(output) => {
            let output = output.to_string();
            let finished = broker.complete(&claimed, output.as_bytes(), b"", b"").await;
            assert_eq!(finished.unwrap(), Completed::Finished);
        }
        Err(error) => {
            let failure = Failure::new(FailureKind::Permanent, error);
            let failed = broker.fail(&claimed, &failure, b"", b"", Duration::ZERO);
            assert_eq!(failed.await.unwrap(), Failed::Failed);
        }
    }
    true
}

/// The outcome in memory.
fn expected(plan: &Plan) -> Report {
    let attempt = |report: &JobReport<'_>| {
        let result = match &report.job.work {
            Work::Run(run) => outcome(
                &plan.scripts[&run.script],
                report.item.map(|item| item as u64),
            ),
            _ => Ok(Value::Null),
        };
        Attempt { ms: 1, result }
    };
    let mut simulation = Simulation {
        attempt: &attempt,
        pick: &mut |_| 0,
        slots: 1,
        cancel_ms: None,
        stop_ms: &|_| 0,
    };
    interpret(plan, FlowState::new(plan), &mut simulation).unwrap()
}

fn word(phase: &Phase) -> &'static str {
    match phase {
        Phase::Ended(End::Finished(_)) => "finished",
        Phase::Ended(End::Failed(_)) => "error",
        Phase::Ended(End::Cancelled) => "stopped",
        Phase::Ended(End::Skipped) => "skipped",
        _ => "waiting",
    }
}

fn compare(plan: &Plan, expected: &Report, view: &FlowView) {
    for ((run, job), node) in expected.state.jobs.iter().zip(&view.jobs).zip(&plan.jobs) {
        assert_eq!(word(&run.phase), job.status, "{view:#?}");
        if let (Phase::Ended(End::Finished(result)), Work::Run(_)) = (&run.phase, &node.work) {
            assert_eq!(*result, job.result, "{view:#?}");
        }
        let items = run.items.iter().flatten().map(|item| word(&item.phase));
        assert!(
            items.eq(job.items.iter().map(|item| item.status)),
            "{view:#?}"
        );
    }
    assert_eq!(expected.end().status, view.status, "{view:#?}");
}

/// A context on an engine of its own, over a connection that breaks and over one that does not.
struct Life {
    faulty: Faulty,
    good: Broker,
    bad: Broker,
    /// Over the connection that breaks.
    flows: FlowClient,
    stepper: Stepper,
    reader: FlowClient,
    hand: std::sync::Arc<std::sync::atomic::AtomicU64>,
}

impl Life {
    async fn new(fault: Option<Fault>) -> Self {
        let (clock, hand) = Clock::manual(1_700_000_000_000);
        let conn = Conn::embedded(&Handle::in_memory());
        let keys = ContextKeys::new(ContextId::new(7).unwrap(), ContextLayout::Prefix);
        let faulty = Faulty::new(conn.clone(), fault);
        let of = async |conn| {
            let broker = Broker::new(conn, JobKeys::default()).with_clock(clock.clone());
            broker.of_context(keys.clone()).await.unwrap()
        };
        let (good, bad) = (of(conn).await, of(Conn::new(faulty.clone())).await);
        Self {
            flows: FlowClient::new(&bad).unwrap(),
            stepper: Stepper::new(&bad).unwrap(),
            reader: FlowClient::new(&good).unwrap(),
            faulty,
            good,
            bad,
            hand,
        }
    }

    fn pass(&self, time: Duration) {
        self.hand
            .fetch_add(time.as_millis() as u64, Ordering::SeqCst);
    }

    /// Submits the flow, again if the call fails.
    async fn submit(&self, plan: &Plan) {
        for _ in 0..2 {
            if self.flows.submit(plan, ActorId(12)).await.is_ok() {
                return;
            }
        }
        panic!("two calls have failed, and the connection broke once");
    }

    /// The flows of the context; each was sealed.
    async fn views(&self) -> Vec<FlowView> {
        let mut views = Vec::new();
        for flow in self.reader.list().await.unwrap() {
            views.push(self.reader.status(FlowId(flow.id)).await.unwrap());
        }
        views
    }

    /// Says yes to each open question. True if there was one.
    async fn answer(&self) -> bool {
        let mut found = false;
        for view in self.views().await {
            for job in view.jobs.iter().filter(|job| job.question.is_some()) {
                found = true;
                let place = view.jobs.iter().position(|it| it.name == job.name);
                let approval = Approval {
                    flow: view.id,
                    job: &self.flows.job_id(&job.id).unwrap(),
                    node: &place.unwrap().to_string(),
                    generation: 0,
                    name: &job.name,
                };
                let verbs = Flows::of(&self.bad).unwrap();
                let answered = verbs.answer(approval, ActorId(7), true).await;
                let done = matches!(answered, Ok(Answered::Answered));
                assert!(done || answered.is_err(), "{answered:?}");
            }
        }
        found
    }

    /// Asks all flows to stop, again if the call fails.
    async fn cancel(&self) {
        for id in self.views().await.iter().map(|view| view.id) {
            self.cancel_one(id).await;
        }
    }

    async fn cancel_one(&self, id: FlowId) {
        for _ in 0..2 {
            if self.flows.cancel(id, true).await.is_ok() {
                return;
            }
        }
        panic!("two calls have failed, and the connection broke once");
    }

    /// Runs the flows to their ends. They are cancelled after so many runs of jobs.
    async fn run(&self, cancel_after: Option<usize>) -> Vec<FlowView> {
        let mut runs = 0;
        for _ in 0..MOST {
            let wait = match self.stepper.step().await {
                Ok(None) => continue,
                Ok(Some(wait)) => wait,
                Err(_) => LEASE,
            };
            if cancel_after == Some(runs) {
                runs += 1;
                self.cancel().await;
            } else if work(&self.good).await {
                runs += 1;
            } else if !self.answer().await {
                let views = self.views().await;
                if views.iter().all(FlowView::is_ended) {
                    return views;
                }
                self.pass(wait);
            }
        }
        panic!("{:#?}", self.views().await);
    }
}

/// Lives of all graphs, in each of which the connection breaks at another command.
async fn all_lives(most_jobs: usize, moment: Moment, cancel_after: Option<usize>) {
    let mut lives = 0;
    let sized = (1..=most_jobs).flat_map(|jobs| graphs(jobs).into_iter().map(move |it| (jobs, it)));
    for (number, (jobs, edges)) in sized.enumerate() {
        let plan = flow(number, jobs, &edges);
        let expected = expected(&plan);
        let stride = STRIDES[jobs];
        for first in (number % stride..).step_by(stride) {
            let fault = Fault {
                first,
                times: 1,
                moment,
            };
            let life = Life::new(Some(fault)).await;
            life.submit(&plan).await;
            let views = life.run(cancel_after).await;
            assert!(!views.is_empty());
            for view in &views {
                match cancel_after {
                    None => compare(&plan, &expected, view),
                    Some(_) => is_stopped(&plan, view),
                }
            }
            if life.faulty.broken() == 0 {
                // The whole life was over before.
                break;
            }
            lives += 1;
        }
    }
    assert!(lives > FEWEST, "{lives} lives only");
}

/// A flow that was cancelled: nothing is open, and all that finished and can be undone is undone.
fn is_stopped(plan: &Plan, view: &FlowView) {
    for (job, node) in view.jobs.iter().zip(&plan.jobs) {
        match &node.compensates {
            None => assert!(
                ["finished", "error", "skipped", "stopped"].contains(&job.status),
                "{view:#?}"
            ),
            Some(undone) => {
                let done = view.job(undone.as_str()).unwrap().status == "finished";
                let undo = done && view.status == "error";
                assert_eq!(job.status == "finished", undo, "{view:#?}");
            }
        }
    }
}

#[test]
fn graphs_differ_in_more_than_names() {
    let sizes: Vec<usize> = (1..=4).map(|jobs| graphs(jobs).len()).collect();
    assert_eq!(sizes, [1, 2, 6, 31]);
}

#[tokio::test]
async fn all_small_flows_end_if_the_connection_breaks_before_a_command() {
    all_lives(4, Moment::Before, None).await;
}

#[tokio::test]
async fn all_small_flows_end_if_the_connection_breaks_after_a_command() {
    all_lives(4, Moment::After, None).await;
}

#[tokio::test]
async fn small_flows_are_cancelled_if_the_connection_breaks() {
    for moment in [Moment::Before, Moment::After] {
        all_lives(3, moment, Some(1)).await;
    }
}
