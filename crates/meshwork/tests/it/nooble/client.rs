//! The client: many calls at once over few connections, answers that come too late, and nothing that stays.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use meshwork::protocol::nooble::{ActionContext, Client, Error, Ids, Request};
use meshwork_model::nooble::{Data, Response};
use meshwork_test_servers::eventually;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::support::{BOUND, Ground};

fn request(action_type: &str, data: Value) -> Request {
    Request::new(action_type, &data).unwrap()
}

/// Theirs fails at the eleventh.
#[tokio::test(flavor = "multi_thread")]
async fn two_thousand_calls_are_under_way_on_few_connections() {
    const CALLS: usize = 2_000;
    for ground in Ground::both().await {
        let together = Arc::new(Semaphore::new(0));
        let gate = Arc::clone(&together);
        let wait = move |data: Value, _: ActionContext| {
            let gate = Arc::clone(&gate);
            async move {
                gate.acquire().await.unwrap().forget();
                Ok::<_, String>(data)
            }
        };
        let service = ground.service().handle("demo.wait", wait).concurrency(1000);
        let service = service.start().await.unwrap();
        let client = ground.tester.clone();
        let calls = tokio::spawn(async move {
            let call = |n: usize| {
                let client = client.clone();
                async move {
                    let answer: Value = client
                        .ask(request("demo.wait", json!({ "n": n })), BOUND)
                        .await
                        .unwrap();
                    assert_eq!(answer["n"], n);
                }
            };
            join_all((0..CALLS).map(call)).await
        });
        eventually("they are under way", BOUND, async || {
            let standing = match ground.is_stream() {
                true => ground.say::<usize>(&["XLEN", &ground.queue()]).await,
                false => {
                    let waiting = ground.say::<usize>(&["LLEN", &ground.queue()]).await;
                    let lists: Vec<String> = ground.say(&["KEYS", "*:mw:processing:*"]).await;
                    match lists.first() {
                        Some(hand) => waiting + ground.say::<usize>(&["LLEN", hand]).await,
                        None => waiting,
                    }
                }
            };
            (standing == CALLS).then_some(())
        })
        .await;
        let clients: String = ground.say(&["CLIENT", "LIST"]).await;
        let ours = clients
            .lines()
            .filter(|line| line.contains("name=meshwork"))
            .count();
        assert!(ours < 40, "{ours} connections, of all tests of this binary");
        together.add_permits(CALLS);
        assert_eq!(calls.await.unwrap().len(), CALLS);
        ground.goes_on(service).await;
    }
}

/// More than there are lists for, and than there are connections for lists of single calls.
#[tokio::test(flavor = "multi_thread")]
async fn calls_of_many_types_are_answered() {
    const TYPES: usize = 100;
    for ground in Ground::both().await {
        let echo = async |data: Value, _: ActionContext| Ok::<_, String>(data);
        let name = |n: usize| format!("demo.echo.number_{n}");
        let mut service = ground.service();
        for n in 0..TYPES {
            service = service.handle(&name(n), echo);
        }
        let service = service.start().await.unwrap();
        for private_list in [false, true] {
            let client = Client::new(ground.broker.clone(), "tester");
            let call = |n: usize| {
                let client = &client;
                let mut asks = request(&name(n), json!({ "n": n }));
                if private_list {
                    asks = asks.private_list();
                }
                async move {
                    let answer: Value = client.ask(asks, BOUND).await.unwrap();
                    assert_eq!(answer["n"], n);
                }
            };
            assert_eq!(join_all((0..TYPES).map(call)).await.len(), TYPES);
            // And again, when all lists are known.
            assert_eq!(join_all((0..TYPES).map(call)).await.len(), TYPES);
        }
        ground.goes_on(service).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_comes_too_late_is_dropped() {
    for ground in Ground::both().await {
        let go_on = Arc::new(Semaphore::new(0));
        let gate = Arc::clone(&go_on);
        let late = move |data: Value, _: ActionContext| {
            let gate = Arc::clone(&gate);
            async move {
                gate.acquire().await.unwrap().forget();
                Ok::<_, String>(data)
            }
        };
        let service = ground
            .service()
            .handle("demo.late", late)
            .start()
            .await
            .unwrap();
        let soon = Duration::from_millis(20);
        for private_list in [false, true] {
            let mut asks = request("demo.late", json!({ "n": 1 }));
            if private_list {
                asks = asks.private_list();
            }
            let refused = ground.tester.call(asks, soon).await.unwrap_err();
            assert!(matches!(refused, Error::NoAnswer { .. }), "{refused}");
        }
        go_on.add_permits(2);
        // The client still hears what it waits for.
        ground.goes_on(service).await;
        // What is left has an end: the answer to the list of one call.
        let left: Vec<String> = ground.say(&["KEYS", "*:responses:*"]).await;
        assert_eq!(left.len(), 1, "{left:?}");
        let ends: i64 = ground.say(&["PTTL", &left[0]]).await;
        assert!(ends > 0);
    }
}

/// A worker of Nooble4 gives its answers no end.
#[tokio::test(flavor = "multi_thread")]
async fn what_comes_when_nobody_reads_any_more_ends() {
    for ground in Ground::both().await {
        for private_list in [false, true] {
            let client = Client::new(ground.broker.clone(), "tester");
            let mut asks = request("demo.none", json!({}));
            if private_list {
                asks = asks.private_list();
            }
            let soon = Duration::from_millis(20);
            client.call(asks, soon).await.unwrap_err();
            client.close().await;
            let standing = ground.standing(&ground.queue()).await;
            let action: Value = serde_json::from_str(standing.last().unwrap()).unwrap();
            let list = action["callback_queue_name"].as_str().unwrap();
            ground.say::<()>(&["LPUSH", list, "late"]).await;
            let ends: i64 = ground.say(&["PTTL", list]).await;
            assert!(ends > 0, "{list}: {ends}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_without_an_end_is_left_behind() {
    for ground in Ground::both().await {
        let client = Client::new(ground.broker.clone(), "tester");
        let service = ground.started().await;
        for action in ["demo.echo", "demo.fail", "demo.none"] {
            client
                .call(request(action, json!({})), BOUND)
                .await
                .unwrap();
            client.send(request(action, json!({}))).await.unwrap();
        }
        ground.buried(2).await;
        ground.quiet().await;
        service.stop().await;
        drop(client);
        eventually("all that is left has an end", BOUND, async || {
            let mut left: Vec<String> = ground.say(&["KEYS", "*"]).await;
            left.retain(|key| *key != ground.queue() && !key.ends_with(":dead_letter"));
            for key in &left {
                if ground.say::<i64>(&["PTTL", key]).await == -1 {
                    return None;
                }
            }
            Some(())
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_not_there_does_not_answer() {
    for ground in Ground::both().await {
        let asks = request("nobody.echo", json!({}));
        let refused = ground
            .tester
            .call(asks, Duration::from_millis(20))
            .await
            .unwrap_err();
        let said = refused.to_string();
        assert!(
            said.contains("nobody.echo") && said.contains("is a service there"),
            "{said}"
        );
    }
}

#[test]
fn data_is_an_object() {
    assert!(Request::new("demo.echo", &[1]).is_err());
}

/// A call for which no service is there, and its message as it stands in the queue.
async fn received_call(
    ground: &Ground,
    mut asks: Request,
    private_list: bool,
) -> (JoinHandle<Result<Response, Error>>, Value) {
    if private_list {
        asks = asks.private_list();
    }
    let client = ground.tester.clone();
    let call = tokio::spawn(async move { client.call(asks, BOUND).await });
    let action = eventually("the action arrives", BOUND, async || {
        let standing = ground.standing(&ground.queue()).await;
        Some(serde_json::from_str(standing.first()?).unwrap())
    })
    .await;
    (call, action)
}

/// The caller gets an error at once, and the reader continues. (Such a time once ended the reader.)
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_cannot_be_read_ends_its_call() {
    for ground in Ground::both().await {
        for private_list in [false, true] {
            let (call, action) =
                received_call(&ground, request("demo.none", json!({})), private_list).await;
            let list = action["callback_queue_name"].as_str().unwrap();
            let bad = json!({ "correlation_id": action["correlation_id"], "timestamp": -1e300 });
            ground.say::<()>(&["LPUSH", list, &bad.to_string()]).await;
            let said = call.await.unwrap().unwrap_err().to_string();
            assert!(
                said.contains("demo.none") && said.contains("cannot be read"),
                "{said}"
            );
            ground.say::<()>(&["DEL", &ground.queue()]).await;
            let service = ground.started().await;
            ground.goes_on(service).await;
        }
    }
}

/// A program that writes to a list of answers what is none, or that answers twice, takes nobody's answer away.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_answer_does_not_end_a_call() {
    for ground in Ground::both().await {
        for private_list in [false, true] {
            let asks = request("demo.echo", json!({ "n": 1 }));
            let (call, action) = received_call(&ground, asks, private_list).await;
            let list = action["callback_queue_name"].as_str().unwrap();
            ground.say::<()>(&["LPUSH", list, "no answer"]).await;
            eventually("it is read", BOUND, async || {
                let left: usize = ground.say(&["EXISTS", list]).await;
                (left == 0).then_some(())
            })
            .await;
            let service = ground.started().await;
            let answer = call.await.unwrap().unwrap();
            assert!(answer.success(), "{answer:?}");
            service.stop().await;
        }
    }
}

/// However the caller writes the id, it is one in the end.
#[tokio::test(flavor = "multi_thread")]
async fn a_correlation_id_may_be_written_in_any_form() {
    const ID: &str = "ABCDEF00123440008000000000000";
    for ground in Ground::both().await {
        let service = ground.started().await;
        for (private_list, last) in [(false, "0aa"), (true, "0AB")] {
            let asks = request("demo.echo", json!({})).correlation_id(&format!("{ID}{last}"));
            let asks = if private_list {
                asks.private_list()
            } else {
                asks
            };
            let answer = ground.tester.call(asks, BOUND / 4).await.unwrap();
            let id = format!(
                "abcdef00-1234-4000-8000-0000000000{}",
                last[1..].to_lowercase()
            );
            assert_eq!(answer.correlation_id, id);
        }
        ground.goes_on(service).await;
    }
}

/// No service could read it: its caller would wait for nothing.
#[tokio::test(flavor = "multi_thread")]
async fn an_action_that_no_service_could_read_is_not_sent() {
    for ground in Ground::both().await {
        let of_tenant = |tenant: &str| {
            let mut ids = Ids::default();
            tenant.clone_into(&mut ids.tenant_id);
            request("demo.echo", json!({})).ids(ids)
        };
        let bad = request("demo.echo", json!({})).correlation_id("page-3");
        let error = ground
            .tester
            .call(bad, BOUND)
            .await
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("correlation_id") && error.contains("UUID"),
            "{error}"
        );
        let sent = ground.tester.send(of_tenant("tenant_123")).await;
        match ground.is_stream() {
            true => {
                let none = Data::of(&json!({ "collection_ids": [] })).unwrap();
                let asks = request("demo.echo", json!({})).rag_config(none);
                let error = ground.tester.send(asks).await.unwrap_err().to_string();
                assert!(error.contains("rag_config.collection_ids"), "{error}");
                let error = sent.unwrap_err().to_string();
                assert!(
                    error.contains("tenant_id") && error.contains("UUID"),
                    "{error}"
                );
                assert!(ground.standing(&ground.queue()).await.is_empty());
            }
            // These may be any text there.
            false => drop(sent.unwrap()),
        }
        let service = ground.started().await;
        ground.goes_on(service).await;
        assert!(ground.dead().await.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_is_something_else_is_named() {
    for ground in Ground::both().await {
        let queue = ground.queue();
        ground.say::<()>(&["SET", &queue, "x"]).await;
        let sent = ground.tester.send(request("demo.echo", json!({}))).await;
        let error = sent.unwrap_err().to_string();
        assert!(
            error.contains(&queue) && error.contains("rename"),
            "{error}"
        );
        assert_eq!(ground.say::<String>(&["GET", &queue]).await, "x");
    }
}
