//! A service that is stopped in the midst of taking a message, and wakes when another one has dealt with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use meshwork::source::nooble::{ActionContext, Client, Service, ServiceHandle};
use meshwork::{Target, TlsFiles};
use meshwork_broker::nooble::Nooble;
use meshwork_testkit::eventually;
use meshwork_testkit::stalling::Stalling;
use serde_json::{Value, json};

use crate::support::{BOUND, Ground, LEASE, request};

/// The service `demo` over a connection of this client, and how often its handler ran.
async fn counted(client: &Client) -> (ServiceHandle, Arc<AtomicUsize>) {
    let runs = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&runs);
    let handler = move |data: Value, _: ActionContext| {
        count.fetch_add(1, Ordering::SeqCst);
        async move { Ok::<_, String>(data) }
    };
    let service = Service::new(client).handle("demo.count", handler);
    let service = service.lease(LEASE).start().await.unwrap();
    service.registered().await;
    (service, runs)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_after_its_lease_is_not_begun() {
    for ground in Ground::both().await {
        let way = Stalling::at("held up", &ground.url()).await.unwrap();
        let target = Target::parse(way.url(), TlsFiles::default()).unwrap();
        let names = ground.broker.names().clone();
        let there = Nooble::connect(&target, names).await.unwrap();
        let (first, late) = counted(&Client::new(there, "demo")).await;
        let message = request("demo.count", json!({ "say": "held up" }));
        ground.tester.send(message).await.unwrap();
        way.stands_still().await;
        let (second, in_time) = counted(&ground.demo).await;
        eventually("it is taken over", BOUND, async || {
            (in_time.load(Ordering::SeqCst) == 1).then_some(())
        })
        .await;
        ground.quiet().await;
        second.stop().await;
        way.goes_on();
        let message = request("demo.count", json!({ "say": "the next" }));
        let answer: Value = ground.tester.ask(message, BOUND).await.unwrap();
        assert_eq!(answer, json!({ "say": "the next" }));
        let dialect = ground.dialect;
        assert_eq!(late.load(Ordering::SeqCst), 1, "{dialect:?}");
        first.stop().await;
    }
}
