//! Ends of calls: answered although all connections are in use, refused, dropped by the caller, or with the client.
//! Late answers expire too.

use futures_util::future::join_all;
use meshwork::protocol::nooble::{Client, Error, Request};
use meshwork::{Target, TlsFiles};
use meshwork_broker::nooble::Nooble;
use meshwork_model::keys::nooble::{Dialect, NoobleKeys};
use meshwork_model::name::Namespace;
use meshwork_model::nooble::Response;
use meshwork_test_servers::eventually;
use meshwork_test_servers::servers::RealServer;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::support::{BOUND, Ground, request};

/// Far more than there are connections for calls with lists of their own.
const CROWD: usize = 40;

type Called = JoinHandle<Result<Response, Error>>;

fn called(client: &Client, asks: Request) -> Called {
    let client = client.clone();
    tokio::spawn(async move { client.call(asks, BOUND).await })
}

fn of_kind(asks: Request, private_list: bool) -> Request {
    if private_list {
        asks.private_list()
    } else {
        asks
    }
}

/// Returns when so many messages stand in the queue of a service that is not there; gives the last one.
async fn stand(ground: &Ground, service: &str, many: usize) -> Value {
    let queue = ground.broker.names().actions(service, None);
    let standing = eventually("the actions arrive", BOUND, async || {
        Some(ground.standing(&queue).await).filter(|standing| standing.len() == many)
    });
    let standing = standing.await;
    serde_json::from_str(standing.last().unwrap()).unwrap()
}

/// A call that nobody answers, and the list that its answer would come to.
async fn hangs(ground: &Ground, client: &Client, private_list: bool) -> (Called, String) {
    ground.say::<()>(&["DEL", &ground.queue()]).await;
    let call = called(
        client,
        of_kind(request("demo.echo", json!({})), private_list),
    );
    let action = stand(ground, "demo", 1).await;
    let list = action["callback_queue_name"].as_str().unwrap();
    (call, list.to_owned())
}

/// An answer of a Nooble4 worker, which sets no TTL, gets one.
async fn what_comes_late_ends(ground: &Ground, list: &str) {
    ground.say::<()>(&["LPUSH", list, "late"]).await;
    let ends: i64 = ground.say(&["PTTL", list]).await;
    assert!(ends > 0, "{list}: {ends}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_found_while_others_wait_on_all_connections() {
    for ground in Ground::both().await {
        let service = ground.started().await;
        let nobody = || request("nobody.there", json!({})).private_list();
        let crowd: Vec<_> = (0..CROWD)
            .map(|_| called(&ground.tester, nobody()))
            .collect();
        stand(&ground, "nobody", CROWD).await;
        let asks = |n: usize| {
            let asks = request("demo.echo", json!({ "n": n })).private_list();
            ground.tester.call(asks, BOUND / 4)
        };
        for answer in join_all((0..CROWD).map(asks)).await {
            assert!(answer.unwrap().success());
        }
        crowd.iter().for_each(JoinHandle::abort);
        ground.goes_on(service).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_with_a_list_of_its_own_outlives_its_connection() {
    for ground in Ground::both().await {
        let (call, _) = hangs(&ground, &ground.tester, true).await;
        let waits = eventually("it waits", BOUND, async || ground.waiting().await.pop());
        let waits = waits.await;
        ground.say::<()>(&["CLIENT", "KILL", "ID", &waits]).await;
        let service = ground.started().await;
        assert!(call.await.unwrap().unwrap().success());
        ground.goes_on(service).await;
    }
}

/// Its time is over soon after it is over, though nothing can be ended there.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_ends_while_the_server_stands_still() {
    for dialect in [Dialect::Streams, Dialect::Lists] {
        let Some(server) = RealServer::redis().start() else {
            return;
        };
        let target = Target::parse(&server.url(), TlsFiles::default()).unwrap();
        let names = NoobleKeys::new(Namespace::nooble(), None, dialect);
        let broker = Nooble::connect(&target, names).await.unwrap();
        let client = Client::new(broker.clone(), "tester");
        let asks = request("demo.echo", json!({})).private_list();
        let call = tokio::spawn(async move { client.call(asks, BOUND / 60).await });
        let queue = broker.names().actions("demo", None);
        eventually("the action arrives", BOUND, async || {
            let stands: usize = server.say(&["EXISTS", &queue]).unwrap();
            (stands == 1).then_some(())
        })
        .await;
        server.pause();
        let call = tokio::time::timeout(BOUND / 4, call).await;
        let ended = call.expect("it ends").unwrap().unwrap_err();
        assert!(matches!(ended, Error::NoAnswer { .. }), "{ended}");
        server.resume();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_calls_of_one_id() {
    const ID: &str = "01900000-0000-7000-8000-000000000001";
    for ground in Ground::both().await {
        for (first, second) in [(false, false), (true, true), (false, true), (true, false)] {
            ground.say::<()>(&["DEL", &ground.queue()]).await;
            let asks = |private_list| {
                let asks = request("demo.echo", json!({})).correlation_id(ID);
                of_kind(asks, private_list)
            };
            let call = called(&ground.tester, asks(first));
            stand(&ground, "demo", 1).await;
            let refused = ground.tester.call(asks(second), BOUND).await.unwrap_err();
            assert!(refused.to_string().contains(ID), "{refused}");
            assert!(matches!(refused, Error::UnderWay { .. }), "{refused}");
            // It was not sent.
            stand(&ground, "demo", 1).await;

            let service = ground.started().await;
            assert!(call.await.unwrap().unwrap().success());
            // The id is free again.
            let again = ground.tester.call(asks(second), BOUND).await;
            assert!(again.unwrap().success());
            ground.goes_on(service).await;
        }
    }
}

/// An answer that its caller has not looked at yet is that of its call, and of no other with its id.
#[tokio::test(flavor = "multi_thread")]
async fn an_id_is_free_when_its_caller_has_the_answer() {
    const ID: &str = "01900000-0000-7000-8000-000000000002";
    for ground in Ground::both().await {
        let asks = || request("demo.echo", json!({})).correlation_id(ID);
        let mut call = Box::pin(ground.tester.call(asks(), BOUND));
        let action = tokio::select! {
            _ = &mut call => panic!("nobody answers"),
            action = stand(&ground, "demo", 1) => action,
        };
        let list = action["callback_queue_name"].as_str().unwrap();
        let service = ground.started().await;
        ground.quiet().await;
        eventually("the answer is taken", BOUND, async || {
            let left: usize = ground.say(&["EXISTS", list]).await;
            (left == 0).then_some(())
        })
        .await;
        let refused = ground.tester.call(asks(), BOUND).await.unwrap_err();
        assert!(matches!(refused, Error::UnderWay { .. }), "{refused}");
        assert!(call.await.unwrap().success());
        assert!(ground.tester.call(asks(), BOUND).await.unwrap().success());
        ground.goes_on(service).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_after_a_call_was_dropped_ends() {
    for ground in Ground::both().await {
        for private_list in [false, true] {
            let client = Client::new(ground.broker.clone(), "tester");
            let (call, list) = hangs(&ground, &client, private_list).await;
            call.abort();
            assert!(call.await.unwrap_err().is_cancelled());
            client.close().await;
            what_comes_late_ends(&ground, &list).await;
        }
    }
}

/// Nobody need close the client for it: the list is nobody else's.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_a_call_that_was_dropped_is_given_up() {
    for ground in Ground::both().await {
        let (call, list) = hangs(&ground, &ground.tester, true).await;
        call.abort();
        eventually("it has an end", BOUND, async || {
            let ends: i64 = ground.say(&["PTTL", &list]).await;
            (ends > 0).then_some(())
        })
        .await;
        what_comes_late_ends(&ground, &list).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_after_its_client_was_closed_ends() {
    for ground in Ground::both().await {
        for private_list in [false, true] {
            let client = Client::new(ground.broker.clone(), "tester");
            ground.say::<()>(&["DEL", &ground.queue()]).await;
            let asks = || of_kind(request("demo.echo", json!({})), private_list);
            // It is not polled while the client is closed.
            let mut call = Box::pin(client.call(asks(), BOUND));
            let action = tokio::select! {
                _ = &mut call => panic!("nobody answers"),
                action = stand(&ground, "demo", 1) => action,
            };
            client.close().await;
            let list = action["callback_queue_name"].as_str().unwrap();
            what_comes_late_ends(&ground, list).await;
            let ended = call.await.unwrap_err();
            assert!(matches!(ended, Error::Closed), "{ended}");

            let refused = client.call(asks(), BOUND).await.unwrap_err();
            assert!(matches!(refused, Error::Closed), "{refused}");
            stand(&ground, "demo", 1).await;
        }
    }
}
