//! Flows whose jobs run in other contexts and on other nodes, and those that wait for a message.

use std::collections::BTreeMap;

use meshwork::context::{ContextHandle, Coordinator, Identity};
use meshwork::flow::{FlowSession, FlowView, Stepper, parse};
use meshwork_model::access::{Object, Operation};
use meshwork_model::keys::context::FlowId;
use serde_json::json;

use super::two_nodes::{Pair, arrives};
use super::world::World;

/// The flows of a context, and a worker of it without jobs of its own.
struct Flows {
    session: FlowSession,
    stepper: Stepper,
}

impl Flows {
    async fn of(context: &ContextHandle, me: &Identity) -> Self {
        let client = context.client(me, Object::Flow, Operation::Read).await;
        let stepper = Stepper::new(client.unwrap().broker()).unwrap();
        Self {
            session: context.flows(me).await.unwrap(),
            stepper: stepper.signing(context, me),
        }
    }

    async fn submit(&self, text: &str) -> FlowId {
        let plan = parse("f.yaml", text, &BTreeMap::new()).unwrap();
        self.session.submit(&plan).await.unwrap()
    }

    /// Runs all steps that are due.
    async fn step(&self) {
        while self.stepper.step().await.unwrap().is_none() {}
    }

    async fn status(&self, id: FlowId) -> FlowView {
        self.session.client().status(id).await.unwrap()
    }
}

/// Time between two rounds, in milliseconds.
const ROUND: u64 = 500;

/// Works until a flow of context 7 has ended; a plain runner runs the jobs of context 8.
async fn until_ended(world: &World, flows: &Flows, id: FlowId) -> FlowView {
    let coordinator = Coordinator::new(&world.node).await.unwrap();
    for _ in 0..100 {
        world.pass(ROUND);
        flows.step().await;
        world.settle(&coordinator).await;
        if !world.list(8, "queue:v").await.is_empty() {
            world.run_job().await;
        }
        let view = flows.status(id).await;
        if ["finished", "error"].contains(&view.status.as_str()) {
            return view;
        }
    }
    panic!("no end: {:?}", flows.status(id).await);
}

#[tokio::test]
async fn a_job_runs_in_another_context_and_its_end_is_that_of_its_message() {
    for world in World::everywhere().await {
        let flows = Flows::of(&world.context(7).await, &world.me).await;
        let id = flows.submit(
            "{flow: f, jobs: {far: {script: '1', type: v, context: 8, env: {DAY: x}, retries: 2, timeout: 9}}}",
        );
        let id = id.await;
        let view = until_ended(&world, &flows, id).await;
        assert_eq!(view.status, "finished", "{view:?}");
        assert_eq!(view.jobs[0].result, json!({"rows": "5"}), "{view:?}");
        // One message, with what the flow says, and the result of it.
        assert_eq!(
            world.of(7, "job:1:1", "mw_sent").await,
            world.key(7, "message:1:1")
        );
        assert_eq!(world.of(7, "message:1:1", "status").await, "processed");
        let exists = async |key| world.ask::<i64>(7, &["EXISTS", key]).await;
        let messages = [exists("@message:1:2").await, exists("@message:1:3").await];
        assert_eq!(messages, [1, 0]);
        let job = world.of(8, "job:1:2", "env_vars").await;
        assert!(
            job.contains(r#""DAY":"x""#) && job.contains("FLOW_ID"),
            "{job}"
        );
        assert_eq!(world.of(8, "job:1:2", "retries").await, "2");
        assert_eq!(world.of(8, "job:1:2", "timeout").await, "9");
        assert!(world.list(7, "queue:v").await.is_empty());
    }
}

#[tokio::test]
async fn a_message_that_is_refused_fails_its_job() {
    let world = World::over(None).await;
    let flows = Flows::of(&world.context(7).await, &world.me).await;
    let id = flows.submit(
        "{flow: f, jobs: {far: {script: '1', type: v, context: 9, continue: true}, \
         away: {script: '1', type: v, context: bob/8, needs: far}}}",
    );
    let view = until_ended(&world, &flows, id.await).await;
    let error = |at: usize| view.jobs[at].error.clone().unwrap_or_default();
    assert_eq!(view.status, "error");
    assert!(error(0).contains("context 9"), "{view:?}");
    assert!(error(1).contains("no node is known as \"bob\""), "{view:?}");
}

#[tokio::test]
async fn a_worker_without_the_key_of_an_actor_leaves_the_job_to_others() {
    let world = World::over(None).await;
    let seven = world.context(7).await;
    let flows = Flows::of(&seven, &world.me).await;
    let id = flows.submit("{flow: f, jobs: {far: {script: '1', type: v, context: 8}}}");
    let id = id.await;
    let client = seven.client(&world.me, Object::Flow, Operation::Read).await;
    let unsigned = Stepper::new(client.unwrap().broker()).unwrap();
    for _ in 0..20 {
        world.pass(ROUND);
        while unsigned.step().await.unwrap().is_none() {}
    }
    assert_eq!(world.list(7, "msg_out").await.len(), 0);
    let view = until_ended(&world, &flows, id).await;
    assert_eq!(view.status, "finished");
}

#[tokio::test]
async fn a_cancelled_flow_sends_nothing_more_and_cancels_what_it_sent() {
    let world = World::over(None).await;
    let coordinator = Coordinator::new(&world.node).await.unwrap();
    let flows = Flows::of(&world.context(7).await, &world.me).await;
    let text = "{flow: f, jobs: {far: {script: '1', type: v, context: 8}}}";
    for steps in [0, 3] {
        let id = flows.submit(text).await;
        for _ in 0..steps {
            world.pass(ROUND);
            flows.step().await;
        }
        let sent = world.list(7, "msg_out").await.len();
        assert_eq!(sent, usize::from(steps > 0));
        flows.session.cancel(id, false).await.unwrap();
        world.pass(ROUND);
        flows.step().await;
        let view = flows.status(id).await;
        assert_eq!(
            (view.status.as_str(), view.jobs[0].status),
            ("error", "stopped")
        );
        for _ in 0..5 {
            world.pass(ROUND);
            flows.step().await;
        }
        // The message again: its target gets the request.
        assert_eq!(world.list(7, "msg_out").await.len(), 2 * sent);
        world.settle(&coordinator).await;
        assert!(world.list(8, "queue:v").await.is_empty());
    }
    assert_eq!(
        world.field(7, "message:1:1", "mw_reason").await,
        "cancelled"
    );
}

#[tokio::test]
async fn a_job_of_a_flow_runs_on_another_node() {
    let mut pair = Pair::new().await;
    let here = &pair.here.world;
    let flows = Flows::of(&here.context(7).await, &here.me).await;
    let text = "{flow: f, jobs: {far: {script: '1', type: v, context: bob/8}}}";
    let id = flows.submit(text).await;
    for _ in 0..300 {
        flows.step().await;
        pair.step(arrives).await;
        if !pair.there.world.list(8, "queue:v").await.is_empty() {
            pair.there.world.run_job().await;
        }
        if flows.status(id).await.status == "finished" {
            break;
        }
    }
    let view = flows.status(id).await;
    assert_eq!(view.status, "finished", "{view:?}");
    assert_eq!(view.jobs[0].result, json!({"rows": "5"}));
    let jobs: Vec<String> = pair.there.world.plain(8, &["KEYS", "job:*"]).await;
    assert_eq!(jobs.len(), 1);
}

#[tokio::test]
async fn a_wait_ends_with_the_first_message_after_it_has_begun() {
    for world in World::everywhere().await {
        let coordinator = Coordinator::new(&world.node).await.unwrap();
        let flows = Flows::of(&world.context(8).await, &world.me).await;
        world.send_text("early").await;
        world.settle(&coordinator).await;
        world.pass(ROUND);
        let id = flows.submit(
            "{flow: f, jobs: {go: {wait: {message: chat, from: 1}}, \
             never: {wait: {message: mail, from: 1}, timeout: 60, continue: true}}}",
        );
        let id = id.await;
        let go = async |flows: &Flows| flows.status(id).await.jobs[0].status;
        for _ in 0..10 {
            world.pass(ROUND);
            flows.step().await;
        }
        assert_eq!(go(&flows).await, "started");
        world.send_text("now").await;
        world.settle(&coordinator).await;
        world.send_text("late").await;
        world.settle(&coordinator).await;
        world.pass(10 * ROUND);
        flows.step().await;
        let view = flows.status(id).await;
        assert_eq!(
            (view.jobs[0].status, &view.jobs[0].result),
            ("finished", &json!("now"))
        );
        world.pass(60_000);
        flows.step().await;
        let view = flows.status(id).await;
        assert_eq!(view.jobs[1].error.as_deref(), Some("timeout"), "{view:?}");
        assert_eq!(view.status, "finished");
    }
}
