//! Runs whose queue is deleted: each is answered at most once, and the rest is logged.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use meshwork::protocol::nooble::{ActionContext, Request, Service};
use meshwork_model::keys::nooble::Dialect;
use meshwork_test_servers::eventually;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::support::{BOUND, Ground};

/// Started runs of `demo.gate`, cancelled runs, and permits to continue.
#[derive(Clone)]
struct Gate {
    began: Arc<AtomicUsize>,
    stopped: Arc<AtomicUsize>,
    open: Arc<Semaphore>,
}

impl Gate {
    fn new() -> Self {
        Self {
            began: Arc::default(),
            stopped: Arc::default(),
            open: Arc::new(Semaphore::new(0)),
        }
    }

    fn service(&self, ground: &Ground) -> Service {
        let gate = self.clone();
        let handler = move |data: Value, context: ActionContext| {
            let gate = gate.clone();
            async move {
                gate.began.fetch_add(1, Ordering::SeqCst);
                tokio::select! {
                    opened = gate.open.acquire() => opened.unwrap().forget(),
                    () = context.stop.cancelled() => {
                        gate.stopped.fetch_add(1, Ordering::SeqCst);
                    }
                }
                Ok::<_, String>(data)
            }
        };
        ground.service().handle("demo.gate", handler)
    }

    async fn runs(&self, many: usize) {
        eventually("the runs have begun", BOUND, async || {
            (self.began.load(Ordering::SeqCst) >= many).then_some(())
        })
        .await;
    }
}

/// A message whose answer goes to a list that only the test reads.
async fn pending_list(ground: &Ground) -> String {
    let request = Request::new("demo.gate", &json!({ "n": 1 })).unwrap();
    let list = "nooble4:dev:other:responses:demo_gate:1".to_owned();
    ground.tester.send(request).await.unwrap();
    let mut message: Value =
        serde_json::from_str(&ground.standing(&ground.queue()).await.pop().unwrap()).unwrap();
    ground.say::<u8>(&["DEL", &ground.queue()]).await;
    message["callback_queue_name"] = json!(list);
    message["correlation_id"] = message["action_id"].clone();
    ground.put(message.to_string().as_bytes()).await;
    list
}

/// The service cannot prove its claim any more, so the message gets no reply instead of two. The handler is cancelled.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_deleted_under_a_run() {
    let Some(ground) = Ground::open(Dialect::Streams).await else {
        return;
    };
    let gate = Gate::new();
    let list = pending_list(&ground).await;
    let service = gate.service(&ground).start().await.unwrap();
    gate.runs(1).await;
    ground.say::<u8>(&["DEL", &ground.queue()]).await;
    eventually("the run is cancelled", BOUND, async || {
        (gate.stopped.load(Ordering::SeqCst) == 1).then_some(())
    })
    .await;
    ground.goes_on(service).await;
    assert_eq!(ground.say::<u8>(&["EXISTS", &list]).await, 0);
    assert_eq!(gate.began.load(Ordering::SeqCst), 1);
    assert!(ground.dead().await.is_empty());
}

/// The new group is given the message again: it runs once more, and is answered once.
#[tokio::test(flavor = "multi_thread")]
async fn a_group_that_is_destroyed_under_a_run() {
    let Some(ground) = Ground::open(Dialect::Streams).await else {
        return;
    };
    let gate = Gate::new();
    let list = pending_list(&ground).await;
    let service = gate.service(&ground).start().await.unwrap();
    gate.runs(1).await;
    ground
        .say::<u8>(&["XGROUP", "DESTROY", &ground.queue(), "demo-group"])
        .await;
    gate.runs(2).await;
    gate.open.add_permits(2);
    let answer = ground.popped(&list).await;
    assert!(answer.contains("\"data\":{\"n\":1}"), "{answer}");
    ground.goes_on(service).await;
    assert_eq!(ground.say::<u8>(&["EXISTS", &list]).await, 0);
}

/// The messages in flight of a list have their own list: deleting the queue does not remove them.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_is_deleted_under_a_run() {
    let Some(ground) = Ground::open(Dialect::Lists).await else {
        return;
    };
    let gate = Gate::new();
    let list = pending_list(&ground).await;
    let service = gate.service(&ground).start().await.unwrap();
    gate.runs(1).await;
    ground.say::<u8>(&["DEL", &ground.queue()]).await;
    gate.open.add_permits(1);
    let answer = ground.popped(&list).await;
    assert!(answer.contains("\"data\":{\"n\":1}"), "{answer}");
    ground.goes_on(service).await;
    assert_eq!(ground.say::<u8>(&["EXISTS", &list]).await, 0);
    assert_eq!(gate.began.load(Ordering::SeqCst), 1);
}
