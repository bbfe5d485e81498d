//! Slots: a service takes what it has a slot for, and leaves the rest to others.

use std::sync::{Arc, Mutex};

use futures_util::future::join_all;
use meshwork::protocol::nooble::{ActionContext, Client, Service, ServiceHandle};
use meshwork_broker::conn::Conn;
use meshwork_broker::nooble::Nooble;
use meshwork_conformance::faulty::{Faulty, Moment};
use meshwork_test_servers::eventually;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};

use super::support::{BOUND, Ground, LEASE, request};

/// A service whose runs last until `go`, and that says when one begins.
fn holding(client: &Client, go: &Arc<Semaphore>, began: mpsc::UnboundedSender<()>) -> Service {
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
    Service::new(client).handle("demo.hold", hold).lease(LEASE)
}

/// The same with so many slots, once it is known.
async fn held(
    ground: &Ground,
    slots: usize,
    go: &Arc<Semaphore>,
    began: mpsc::UnboundedSender<()>,
) -> ServiceHandle {
    let service = holding(&ground.demo, go, began).concurrency(slots);
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
            let service = holding(&ground.demo, &go, began).context("tenant");
            let service = service.concurrency(1).start().await.unwrap();
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

/// Stands in messages by which a connection breaks.
const WORD: &str = "orphaned";

/// A client of this service over a connection that breaks once at such a message.
fn over(ground: &Ground, moment: Moment) -> (Faulty, Client) {
    let faulty = Faulty::at_word(ground.broker.conn().clone(), WORD, moment);
    let names = ground.broker.names().clone();
    let broker = Nooble::new(Conn::new(faulty.clone()), names);
    (faulty, Client::new(broker, "demo"))
}

/// No other service reclaims messages of a live one, so a full service repeats a failed release.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_full_service_failed_to_hand_back_another_one_runs() {
    const TENANTS: [&str; 4] = ["a", "b", "c", "d"];
    for ground in Ground::both().await {
        let (faulty, client) = over(&ground, Moment::Before);
        let go = Arc::new(Semaphore::new(0));
        let start = async |client: &Client, slots, began| {
            let service = holding(client, &go, began).concurrency(slots);
            let service = TENANTS.into_iter().fold(service, Service::context);
            service.start().await.unwrap()
        };
        let (began, mut begins) = mpsc::unbounded_channel();
        let full = start(&client, 1, began).await;
        let waits = TENANTS.len() + 1;
        eventually("it waits on all queues", BOUND, async || {
            (ground.waiting().await.len() == waits).then_some(())
        })
        .await;
        // At once: one of them gets the slot, and the others came while it was free.
        let held = || request("demo.hold", json!({ "say": WORD }));
        let of_tenants = TENANTS.map(|tenant| ground.tester.send(held().context(tenant)));
        let sent = join_all(of_tenants.into_iter().chain([ground.tester.send(held())]));
        assert!(sent.await.iter().all(Result::is_ok));
        tokio::time::timeout(BOUND, begins.recv()).await.unwrap();
        eventually("one is not released", BOUND, async || {
            (faulty.broken() == 1).then_some(())
        })
        .await;
        let (began, mut begins_there) = mpsc::unbounded_channel();
        let other = start(&ground.demo, TENANTS.len(), began).await;
        for run in 1..waits {
            let begin = tokio::time::timeout(BOUND, begins_there.recv()).await;
            assert!(begin.is_ok(), "{:?}: run {run} begins", ground.dialect);
        }
        assert!(begins.try_recv().is_err());
        go.close();
        assert_eq!((full.stop().await, other.stop().await), (0, 0));
    }
}

/// It knows nothing of what it was given when its connection broke, and then took another one.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_full_service_never_heard_of_another_one_runs() {
    for ground in Ground::both().await {
        let (faulty, client) = over(&ground, Moment::After);
        let go = Arc::new(Semaphore::new(0));
        let (began, mut begins) = mpsc::unbounded_channel();
        let full = holding(&client, &go, began).concurrency(1);
        let full = full.start().await.unwrap();
        let orphaned = request("demo.hold", json!({ "say": WORD }));
        ground.tester.send(orphaned).await.unwrap();
        eventually("it is given the message", BOUND, async || {
            (faulty.broken() == 1).then_some(())
        })
        .await;
        let next = request("demo.hold", json!({}));
        ground.tester.send(next).await.unwrap();
        tokio::time::timeout(BOUND, begins.recv()).await.unwrap();
        let (began, mut begins_there) = mpsc::unbounded_channel();
        let other = held(&ground, 1, &go, began).await;
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

/// Returns when the only service has said three times more that it is there: no wait lasts for as long.
async fn is_renewed(ground: &Ground) {
    let workers = format!("{}:mw:workers", ground.queue());
    let until = async || {
        ground
            .say::<Vec<String>>(&["ZRANGE", &workers, "0", "-1", "WITHSCORES"])
            .await
    };
    for _ in 0..3 {
        let last = until().await;
        eventually("it says that it is there", BOUND, async || {
            (until().await != last).then_some(())
        })
        .await;
    }
}

/// As one does that reckons without an await: the other slots are free.
#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_holds_its_thread_holds_up_no_other_message() {
    for ground in Ground::both().await {
        let (began, mut begins) = mpsc::unbounded_channel();
        let (go, held) = std::sync::mpsc::channel::<()>();
        let held = Arc::new(Mutex::new(held));
        let hold = move |_: Value, _: ActionContext| {
            let (began, held) = (began.clone(), Arc::clone(&held));
            async move {
                began.send(()).unwrap();
                let _ = tokio::task::block_in_place(|| held.lock().unwrap().recv());
                Ok::<_, String>(())
            }
        };
        let service = ground.service().handle("demo.hold", hold);
        let service = service.start().await.unwrap();
        service.registered().await;
        let message = request("demo.hold", json!({}));
        ground.tester.send(message).await.unwrap();
        let begin = tokio::time::timeout(BOUND, begins.recv()).await;
        is_renewed(&ground).await;
        let call = ground.tester.call(request("demo.echo", json!({})), BOUND);
        let answered = call.await;
        drop(go);
        assert!(begin.is_ok(), "{:?}: a run begins", ground.dialect);
        assert!(answered.is_ok(), "{:?}: {answered:?}", ground.dialect);
        ground.goes_on(service).await;
    }
}
