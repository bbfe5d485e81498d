//! Stalls: a service in the midst of taking a message that another one has handled, and a server with a waiting call.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use meshwork::protocol::nooble::{ActionContext, Client, Service, ServiceHandle};
use meshwork::{Target, TlsFiles};
use meshwork_broker::nooble::Nooble;
use meshwork_model::keys::nooble::{Dialect, NoobleKeys};
use meshwork_model::name::Namespace;
use meshwork_test_servers::eventually;
use meshwork_test_servers::servers::RealServer;
use meshwork_test_servers::stalling::Stalling;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::support::{BOUND, Ground, LEASE, request};

/// The service `demo` over a connection of this client, and how often its handler ran.
async fn counted(client: &Client) -> (ServiceHandle, Arc<AtomicUsize>) {
    let runs = Arc::new(AtomicUsize::new(0));
    let service = counting(client, &runs);
    let service = service.lease(LEASE).start().await.unwrap();
    service.registered().await;
    (service, runs)
}

fn counting(client: &Client, runs: &Arc<AtomicUsize>) -> Service {
    let count = Arc::clone(runs);
    let handler = move |data: Value, _: ActionContext| {
        count.fetch_add(1, Ordering::SeqCst);
        async move { Ok::<_, String>(data) }
    };
    Service::new(client).handle("demo.count", handler)
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

/// Long enough for a service that stops meanwhile.
const LONG_LEASE: Duration = Duration::from_secs(60);

/// A stopped service runs nothing more, and releases what arrives later.
#[tokio::test(flavor = "multi_thread")]
async fn what_comes_when_a_service_has_stopped_is_handed_back() {
    for ground in Ground::both().await {
        let message = request("demo.count", json!({ "say": "held up" }));
        ground.tester.send(message).await.unwrap();
        let way = Stalling::at("held up", &ground.url()).await.unwrap();
        let target = Target::parse(way.url(), TlsFiles::default()).unwrap();
        let names = ground.broker.names().clone();
        let there = Nooble::connect(&target, names).await.unwrap();
        let runs = Arc::new(AtomicUsize::new(0));
        let service = counting(&Client::new(there, "demo"), &runs).lease(LONG_LEASE);
        let service = service.start().await.unwrap();
        way.stands_still().await;
        service.stop().await;
        way.goes_on();
        let queue = ground.queue();
        eventually("it stands in its queue, in no hand", BOUND, async || {
            let waits = match ground.is_stream() {
                true => ground.standing(&queue).await.len() == 1 && in_flight(&ground).await == 0,
                false => ground.standing(&queue).await.len() == 1,
            };
            waits.then_some(())
        })
        .await;
        assert_eq!(runs.load(Ordering::SeqCst), 0, "{:?}", ground.dialect);
    }
}

/// Number of messages in flight of a stream.
async fn in_flight(ground: &Ground) -> usize {
    let queue = ground.queue();
    let group = NoobleKeys::group("demo");
    let words = ["XPENDING", &queue, &group, "-", "+", "10"];
    ground.say::<Vec<redis::Value>>(&words).await.len()
}

/// So long that a client does something about a server that says nothing, and that it gives up to ask it for that.
const STANDS_STILL: Duration = Duration::from_secs(16);

/// A command sent before the stall and executed after it takes no answer away.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_a_server_that_stood_still() {
    tokio::join!(stands_still(Dialect::Streams), stands_still(Dialect::Lists));
}

async fn stands_still(dialect: Dialect) {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let target = Target::parse(&server.url(), TlsFiles::default()).unwrap();
    let names = NoobleKeys::new(Namespace::nooble(), None, dialect);
    let broker = Nooble::connect(&target, names).await.unwrap();
    let (began, go) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (begins, goes) = (Arc::clone(&began), Arc::clone(&go));
    let handler = move |data: Value, _: ActionContext| {
        begins.add_permits(1);
        let goes = Arc::clone(&goes);
        async move {
            goes.acquire().await.unwrap().forget();
            Ok::<_, String>(data)
        }
    };
    let service = Service::new(&Client::new(broker.clone(), "demo")).handle("demo.wait", handler);
    let service = service.start().await.unwrap();
    let caller = Client::new(broker, "caller");
    let stalls = async {
        began.acquire().await.unwrap().forget();
        server.pause();
        go.add_permits(1);
        let since = Instant::now();
        while since.elapsed() < STANDS_STILL {
            let nobody = request("nobody.there", json!({}));
            let answer = caller.ask::<Value>(nobody, STANDS_STILL).await;
            assert!(answer.is_err(), "{answer:?}");
        }
        server.resume();
    };
    let message = request("demo.wait", json!({ "n": 7 }));
    let (answer, ()) = tokio::join!(caller.ask::<Value>(message, BOUND), stalls);
    assert_eq!(answer.unwrap(), json!({ "n": 7 }), "{dialect:?}");
    service.stop().await;
}
