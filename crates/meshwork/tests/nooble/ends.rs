//! How a call ends: answered though all connections are in use.

use futures_util::future::join_all;
use meshwork::model::nooble::Response;
use meshwork::source::nooble::{Client, Error, Request};
use meshwork_testkit::eventually;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::support::{BOUND, Ground, request};

/// Far more than there are connections for calls with lists of their own.
const CROWD: usize = 40;

type Called = JoinHandle<Result<Response, Error>>;

fn called(client: &Client, asks: Request) -> Called {
    let client = client.clone();
    tokio::spawn(async move { client.call(asks, BOUND).await })
}

fn of_kind(asks: Request, own_list: bool) -> Request {
    if own_list { asks.own_list() } else { asks }
}

/// Returns when so many messages stand in the queue of a service that is not there; gives the last one.
async fn stand(ground: &Ground, service: &str, many: usize) -> Value {
    let queue = ground.broker.names().actions(service, None);
    let standing = eventually("they are asked", BOUND, async || {
        Some(ground.standing(&queue).await).filter(|standing| standing.len() == many)
    });
    let standing = standing.await;
    serde_json::from_str(standing.last().unwrap()).unwrap()
}

/// A call that nobody answers, and the list that its answer would come to.
async fn hangs(ground: &Ground, client: &Client, own_list: bool) -> (Called, String) {
    ground.say::<()>(&["DEL", &ground.queue()]).await;
    let call = called(client, of_kind(request("demo.echo", json!({})), own_list));
    let action = stand(ground, "demo", 1).await;
    let list = action["callback_queue_name"].as_str().unwrap();
    (call, list.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_found_while_others_wait_on_all_connections() {
    for ground in Ground::both().await {
        let service = ground.started().await;
        let nobody = || request("nobody.there", json!({})).own_list();
        let crowd: Vec<_> = (0..CROWD)
            .map(|_| called(&ground.tester, nobody()))
            .collect();
        stand(&ground, "nobody", CROWD).await;
        let asks = |n: usize| {
            let asks = request("demo.echo", json!({ "n": n })).own_list();
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
