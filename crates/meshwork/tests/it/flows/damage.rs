//! Flows whose plan, or whose entry among those that are due, was lost.

use meshwork::flow::FlowError;

use super::time::Timed;
use super::*;

const TWO: &str = "
flow: two
jobs:
  a: {script: '1', type: osis}
  b: {script: '2', type: osis}
  c: {script: '3', type: osis, needs: [a, b]}
";

#[tokio::test]
async fn a_flow_without_its_plan_is_listed_cancelled_and_deleted() {
    for layout in ContextLayout::ALL {
        let flow = Timed::new(TWO, layout).await;
        flow.pass(Duration::from_secs(1)).await;
        flow.take().await.unwrap();
        let keys = meshwork_broker::flow::Flows::of(&flow.broker)
            .unwrap()
            .keys()
            .clone();
        let plan = keys.flow_part(flow.id, "plan");
        flow.raw::<()>(&["DEL", &plan]).await;
        let view = flow.flows.status(flow.id).await.unwrap();
        assert_eq!((&*view.name, &*view.status), ("two", "dispatched"));
        assert!(view.error.unwrap().contains("the plan of the flow"));
        let refused = flow.flows.plan(flow.id).await.unwrap_err();
        assert!(matches!(refused, FlowError::NoPlan(_)), "{refused}");
        let refused = flow.flows.delete(flow.id).await.unwrap_err();
        assert!(matches!(refused, FlowError::NotEnded(_)), "{refused}");
        assert!(flow.flows.cancel(flow.id, true).await.unwrap());
        let view = flow.pass(Duration::ZERO).await;
        assert_eq!(view.status, "error");
        let listed = flow.flows.list().await.unwrap();
        assert_eq!((listed.len(), &*listed[0].status), (1, "error"));
        // The one that no runner has begun ends at once.
        assert_eq!(flow.take().await, None);
        flow.flows.delete(flow.id).await.unwrap();
        assert!(flow.flows.list().await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_flow_that_is_lost_among_those_that_are_due_is_found_by_a_worker() {
    let broker = context().await;
    let flows = FlowClient::new(&broker).unwrap();
    let id = flows.submit(&plan(TWO), ActorId(12)).await.unwrap();
    let client = Client::new(broker.clone());
    let due = meshwork_broker::flow::Flows::of(&broker)
        .unwrap()
        .keys()
        .flows_due();
    crate::worker_support::raw::<()>(&client, &["DEL", &due]).await;
    let worker = Worker::new(&client)
        .script_type(&"osis".parse().unwrap())
        .unwrap();
    let worker = worker.start().await.unwrap();
    let stepper = Stepper::new(&broker).unwrap().start();
    let ended = tokio::time::timeout(PATIENCE, flows.wait(id, |_| {})).await;
    assert!(ended.expect("it is found").unwrap().is_finished());
    worker.stop().await;
    stepper.stop().await;
}
