//! Slots: a service takes what it has a slot for, and leaves the rest to others.

use std::sync::Arc;

use meshwork::source::nooble::{ActionContext, Service, ServiceHandle};
use meshwork_testkit::eventually;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};

use crate::support::{BOUND, Ground, LEASE, request};

/// A service whose runs last until `go`, and that says when one begins.
fn holding(ground: &Ground, go: &Arc<Semaphore>, began: mpsc::UnboundedSender<()>) -> Service {
    let go = Arc::clone(go);
    let hold = move |_: Value, _: ActionContext| {
        began.send(()).unwrap();
        let go = Arc::clone(&go);
        async move {
            // It ends when that is closed.
            let _ = go.acquire().await;
            Ok::<_, String>(())
        }
    };
    ground.service().handle("demo.hold", hold)
}

/// The same with so many slots, once it is known.
async fn held(
    ground: &Ground,
    slots: usize,
    go: &Arc<Semaphore>,
    began: mpsc::UnboundedSender<()>,
) -> ServiceHandle {
    let service = holding(ground, go, began).concurrency(slots);
    let service = service.start().await.unwrap();
    service.registered().await;
    service
}

/// Waits are sent before they are needed, but none that would take what there is no slot for.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_full_service_has_no_slot_for_another_one_runs() {
    for ground in Ground::both().await {
        for slots in 1..=4 {
            let go = Arc::new(Semaphore::new(0));
            let (began, mut begins) = mpsc::unbounded_channel();
            let full = held(&ground, slots, &go, began).await;
            for _ in 0..slots {
                ground
                    .tester
                    .send(request("demo.hold", json!({})))
                    .await
                    .unwrap();
                // One after the other, so that each is waited for.
                let begin = tokio::time::timeout(BOUND, begins.recv()).await;
                assert!(begin.is_ok(), "{slots} slots: a run begins");
            }
            let one_more = ground.tester.send(request("demo.hold", json!({}))).await;
            let (began, mut begins_there) = mpsc::unbounded_channel();
            let other = held(&ground, 1, &go, began).await;
            let begin = tokio::time::timeout(BOUND, begins_there.recv()).await;
            assert!(
                begin.is_ok(),
                "{slots} slots: {one_more:?} begins elsewhere"
            );
            assert!(begins.try_recv().is_err(), "{slots} slots: no more runs");
            go.close();
            assert_eq!((full.stop().await, other.stop().await), (0, 0));
        }
    }
}

/// A message of one queue came while the slot was free, and then one of another queue took that.
#[tokio::test(flavor = "multi_thread")]
async fn what_gets_no_slot_goes_to_another_service() {
    for ground in Ground::both().await {
        let go = Arc::new(Semaphore::new(0));
        let start = async |began: mpsc::UnboundedSender<()>| {
            let service = holding(&ground, &go, began).context("tenant");
            let service = service.concurrency(1).lease(LEASE).start().await.unwrap();
            service.registered().await;
            service
        };
        let (began, mut begins) = mpsc::unbounded_channel();
        let full = start(began).await;
        eventually("it waits on both queues", BOUND, async || {
            (ground.waiting().await.len() == 2).then_some(())
        })
        .await;
        let held = async |context: Option<&str>| {
            let request = request("demo.hold", json!({}));
            let request = match context {
                Some(context) => request.context(context),
                None => request,
            };
            ground.tester.send(request).await.unwrap();
        };
        held(None).await;
        tokio::time::timeout(BOUND, begins.recv()).await.unwrap();
        held(Some("tenant")).await;
        let (began, mut begins_there) = mpsc::unbounded_channel();
        let other = start(began).await;
        let begin = tokio::time::timeout(BOUND, begins_there.recv()).await;
        assert!(begin.is_ok(), "{:?}: it begins elsewhere", ground.dialect);
        assert!(begins.try_recv().is_err());
        go.close();
        assert_eq!((full.stop().await, other.stop().await), (0, 0));
    }
}

/// A run that takes longer than a step holds up nothing, also when what was waited for meanwhile did not come.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_goes_on_does_not_hold_up_the_next_wait() {
    for ground in Ground::both().await {
        let go = Arc::new(Semaphore::new(0));
        let (began, mut begins) = mpsc::unbounded_channel();
        let service = held(&ground, 2, &go, began).await;
        for run in ["the first", "the second"] {
            let held = request("demo.hold", json!({}));
            ground.tester.send(held).await.unwrap();
            let begin = tokio::time::timeout(BOUND, begins.recv()).await;
            assert!(begin.is_ok(), "{run} run begins");
            end_a_wait(&ground).await;
        }
        go.close();
        assert_eq!(service.stop().await, 0);
    }
}

/// Ends a wait of the service as its time does, if there is one.
async fn end_a_wait(ground: &Ground) {
    for id in ground.waiting().await {
        let _: bool = ground.say(&["CLIENT", "UNBLOCK", &id]).await;
    }
}
