//! A flow that waits for a week while everything is restarted each day: its approval and its timers stay, take no slot,
//! and retention deletes none of its jobs.

use std::sync::atomic::Ordering;
use std::time::Duration;

use meshwork::context::Identity;
use meshwork::flow::{FlowClient, FlowView};
use meshwork::{Client, JobRequest, Worker};
use meshwork_broker::conn::{Conn, Target, TlsFiles};
use meshwork_broker::{Broker, Clock, Retention};
use meshwork_model::keys::context::{ActorId, ContextId, ContextKeys, ContextLayout, FlowId};
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::state::Status;
use meshwork_test_servers::eventually;
use meshwork_test_servers::servers::RealServer;
use serde_json::json;

use crate::flow_actors::{found, session as session_of};

const DAY: Duration = Duration::from_secs(24 * 3600);
/// Longest wait for anything.
const BOUND: Duration = Duration::from_secs(60);
const START_MS: u64 = 1_700_000_000_000;

/// The week ends on 2023-11-21, at the same time.
const WEEK: &str = "
flow: week
jobs:
  first: {script: '41', type: osis}
  ask: {approve: 'Add {{first.result}}?', needs: first, timeout: 14d}
  pause: {wait: {for: 7d}, needs: first}
  until: {wait: {until: 2023-11-21T22:13:20Z}, needs: first}
  short: {approve: 'In six days?', needs: first, timeout: 6d, continue: true}
  last: {script: 'INPUTS.first + 1', type: osis, needs: [first, ask, pause, until, short]}
outputs: {last: '{{last.result}}', short: '{{short.error}}'}
";

/// A session, and its worker with one slot.
struct Day {
    node: Broker,
    client: Client,
    flows: FlowClient,
    worker: meshwork::WorkerHandle,
}

impl Day {
    async fn begin(target: &Target, clock: Clock, admin: &mut Option<Identity>) -> Self {
        let conn = Conn::open(target, JobKeys::default().namespace())
            .await
            .unwrap();
        let node = Broker::new(conn, JobKeys::default()).with_clock(clock);
        if admin.is_none() {
            *admin = Some(found(&node, ContextLayout::Db).await.0);
        }
        let keys = ContextKeys::new(ContextId::new(7).unwrap(), ContextLayout::Db);
        let client = Client::new(node.clone())
            .in_context(keys, ActorId(12))
            .await
            .unwrap();
        let worker = Worker::new(&client)
            .script_type(&"osis".parse().unwrap())
            .unwrap();
        let worker = worker.concurrency(1).start().await.unwrap();
        let flows = FlowClient::new(client.broker()).unwrap();
        Self {
            node,
            client,
            flows,
            worker,
        }
    }

    /// Waits until the jobs of the flow have these statuses.
    async fn stands(&self, id: FlowId, expected: &str) -> FlowView {
        eventually(expected, BOUND, async || {
            let view = self.flows.status(id).await.unwrap();
            let statuses = view.jobs.iter().map(|job| job.status);
            let statuses: Vec<_> = statuses.collect();
            (statuses.join(" ") == expected).then_some(view)
        })
        .await
    }

    /// Runs another job in the only slot, and deletes all that retention may delete: that job.
    async fn works(&self) {
        let job = JobRequest::new("osis".parse().unwrap(), "1");
        let job = tokio::time::timeout(BOUND, self.client.run(job))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(job.status(), Some(Status::Finished));
        let nothing = Retention {
            age: Duration::ZERO,
            count: 0,
        };
        while self.client.broker().prune(nothing).await.unwrap().1 {}
        let id = meshwork_model::name::JobId::foreign(job.id);
        assert_eq!(self.client.broker().inspect(&id).await.unwrap(), None);
    }
}

async fn week(target: &Target, mut restart: impl FnMut()) {
    let (clock, hand) = Clock::manual(START_MS);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("week.yaml");
    std::fs::write(&file, WEEK).unwrap();
    let plan = meshwork::flow::load(&file).unwrap();
    let (mut id, mut admin) = (None, None);
    for day in 0..7 {
        let session = Day::begin(target, clock.clone(), &mut admin).await;
        let id = match id {
            Some(id) => id,
            None => *id.insert(session.flows.submit(&plan, ActorId(12)).await.unwrap()),
        };
        let short = if day < 6 { "started" } else { "error" };
        let expected = format!("finished started started started {short} waiting");
        let view = session.stands(id, &expected).await;
        assert_eq!(
            view.job("ask").unwrap().question.as_deref(),
            Some("Add 41?")
        );
        session.works().await;
        assert_eq!(session.stands(id, &expected).await, view);
        session.worker.stop().await;
        restart();
        hand.fetch_add(DAY.as_millis() as u64, Ordering::SeqCst);
    }
    let session = Day::begin(target, clock, &mut admin).await;
    let id = id.unwrap();
    session
        .stands(id, "finished started finished finished error waiting")
        .await;
    let answers = session_of(&session.node, &admin.unwrap()).await;
    answers.answer(id, "ask", true).await.unwrap();
    let view = tokio::time::timeout(BOUND, session.flows.wait(id, |_| {}))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(json!(view.outputs), json!({"last": 42, "short": "timeout"}));
    // From now on retention counts.
    eventually("the jobs are deleted", BOUND, async || {
        let nothing = Retention {
            age: Duration::ZERO,
            count: 0,
        };
        session.client.broker().prune(nothing).await.unwrap();
        let first = session.flows.job_id(&view.jobs[0].id)?;
        let first = session.client.broker().inspect(&first).await.unwrap();
        first.is_none().then_some(())
    })
    .await;
    session.worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flow_waits_for_a_week_on_the_embedded_engine() {
    let dir = tempfile::tempdir().unwrap();
    // Each session opens the directory anew.
    week(&Target::Directory(dir.path().to_owned()), || {}).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flow_waits_for_a_week_on_a_server() {
    let options = RealServer::redis()
        .append_only()
        .args(&["--appendfsync", "always"]);
    let Some(mut server) = options.start() else {
        return;
    };
    let target = Target::parse(&server.url(), TlsFiles::default()).unwrap();
    week(&target, || {
        server.kill9();
        server.start_again();
    })
    .await;
}
