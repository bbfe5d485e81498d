//! Shutdown and the runs of a service.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use meshwork::protocol::nooble::{ActionContext, Client, Service};
use meshwork_test_servers::servers::RealServer;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::support::{BOUND, Ground, request};

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_stops_hands_back_what_takes_too_long() {
    for ground in Ground::both().await {
        let began = Arc::new(Semaphore::new(0));
        let first = Arc::clone(&began);
        let hang = move |_: Value, _: ActionContext| {
            first.add_permits(1);
            async { std::future::pending::<Result<(), String>>().await }
        };
        let stops = Service::new(&ground.demo).handle("demo.once", hang);
        let stops = stops
            .shutdown_timeout(Duration::ZERO)
            .start()
            .await
            .unwrap();
        ground
            .tester
            .send(request("demo.once", json!({ "a": 1 })))
            .await
            .unwrap();
        tokio::time::timeout(BOUND, began.acquire())
            .await
            .unwrap()
            .unwrap()
            .forget();
        assert_eq!(stops.stop().await, 1);
        let standing = ground.standing(&ground.queue()).await;
        assert_eq!(standing.len(), 1, "{standing:?}");
        let left: Vec<String> = ground.say(&["KEYS", "*:mw:*"]).await;
        assert!(left.is_empty(), "{left:?}");
    }
}

/// Says when a run ends, however it does.
struct Ends(Arc<Mutex<Vec<&'static str>>>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.lock().unwrap().push("ended");
    }
}

/// It ignores the signal, and is aborted before another one may begin.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_handed_back_runs_no_more() {
    for ground in Ground::both().await {
        let (order, began) = (
            Arc::new(Mutex::new(Vec::new())),
            Arc::new(Semaphore::new(0)),
        );
        let start = async || {
            let (order, began) = (Arc::clone(&order), Arc::clone(&began));
            let hang = move |_: Value, _: ActionContext| {
                order.lock().unwrap().push("began");
                let ends = Ends(Arc::clone(&order));
                began.add_permits(1);
                async move {
                    let _ends = ends;
                    std::future::pending::<Result<(), String>>().await
                }
            };
            let service = Service::new(&ground.demo).handle("demo.once", hang);
            let service = service
                .shutdown_timeout(Duration::ZERO)
                .start()
                .await
                .unwrap();
            service.registered().await;
            service
        };
        let begins = async || {
            let begins = tokio::time::timeout(BOUND, began.acquire()).await;
            begins.unwrap().unwrap().forget();
        };
        let first = start().await;
        let once = request("demo.once", json!({}));
        ground.tester.send(once).await.unwrap();
        begins().await;
        let second = start().await;
        assert_eq!(first.stop().await, 1);
        begins().await;
        assert_eq!(*order.lock().unwrap(), ["began", "ended", "began"]);
        second.stop().await;
    }
}

/// Actions in flight are released in one call: separate calls would each wait for the server.
#[tokio::test(flavor = "multi_thread")]
async fn a_service_stops_soon_although_the_server_is_gone() {
    const IN_FLIGHT: u32 = 20;
    let Some(mut server) = RealServer::redis().start() else {
        return;
    };
    let client = Client::open(&server.url(), "demo").await.unwrap();
    let began = Arc::new(Semaphore::new(0));
    let first = Arc::clone(&began);
    let hang = move |_: Value, _: ActionContext| {
        first.add_permits(1);
        async { std::future::pending::<Result<(), String>>().await }
    };
    let service = Service::new(&client).handle("demo.once", hang);
    let service = service
        .concurrency(IN_FLIGHT as usize)
        .shutdown_timeout(Duration::ZERO);
    let service = service.start().await.unwrap();
    for _ in 0..IN_FLIGHT {
        client.send(request("demo.once", json!({}))).await.unwrap();
    }
    let all = began.acquire_many(IN_FLIGHT);
    tokio::time::timeout(BOUND, all)
        .await
        .unwrap()
        .unwrap()
        .forget();
    server.kill9();
    tokio::time::timeout(BOUND, service.stop()).await.unwrap();
}

/// Long enough for what can be cut off.
const CUT_OFF: Duration = Duration::from_millis(1_500);

/// It cannot be cut off. The others' messages are released, and its own, and whoever stops the service goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_holds_its_thread_holds_up_no_stop() {
    for ground in Ground::both().await {
        let began = Arc::new(Semaphore::new(0));
        let (first, second) = (Arc::clone(&began), Arc::clone(&began));
        let hang = move |_: Value, _: ActionContext| {
            first.add_permits(1);
            async { std::future::pending::<Result<(), String>>().await }
        };
        let (go, held) = std::sync::mpsc::channel::<()>();
        let held = Arc::new(Mutex::new(held));
        let hold = move |_: Value, _: ActionContext| {
            let (held, second) = (Arc::clone(&held), Arc::clone(&second));
            async move {
                second.add_permits(1);
                // Until the test lets it go. What else waits for this thread goes to another one.
                let _ = tokio::task::block_in_place(|| held.lock().unwrap().recv());
                Ok::<(), String>(())
            }
        };
        let service = Service::new(&ground.demo)
            .handle("demo.hang", hang)
            .handle("demo.hold", hold)
            .shutdown_timeout(Duration::ZERO);
        let service = service.start().await.unwrap();
        // One after the other, so that each has begun before the service stops.
        for action_type in ["demo.hang", "demo.hold"] {
            let message = request(action_type, json!({}));
            ground.tester.send(message).await.unwrap();
            let begins = tokio::time::timeout(BOUND, began.acquire()).await;
            begins.unwrap().unwrap().forget();
        }
        let stopped = tokio::time::timeout(BOUND, service.stop_by(CUT_OFF)).await;
        let standing = ground.standing(&ground.queue()).await;
        drop(go);
        assert_eq!(stopped.ok(), Some(2), "{:?}", ground.dialect);
        assert_eq!(standing.len(), 2, "{standing:?}");
    }
}
