//! Chained callbacks: each has the latest request, and a failed run keeps the record.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use meshwork::protocol::nooble::{ActionContext, Client, Service, ServiceHandle};
use meshwork_model::nooble::ErrorDetail;
use meshwork_test_servers::eventually;
use serde_json::{Value, json};

use super::support::{BOUND, Ground, LEASE, PAUSE, request};

/// The list of callbacks of a client that is not Meshwork's.
const OLD: &str = "nooble4:dev:old:callbacks:first";

/// Received callbacks in order: the receiver, the data, and the remembered data.
type Heard = Arc<Mutex<Vec<(&'static str, Value, Value)>>>;

/// Starts a service of `client` that answers the callback `hears` with its data, and requests the callback `asks`. With
/// `fails`, the first run of each fails.
fn link(
    client: &Client,
    (hears, asks): (&'static str, Option<&'static str>),
    fails: bool,
    all: &Heard,
) -> Service {
    let (all, runs) = (Arc::clone(all), Arc::new(AtomicU32::new(0)));
    let handler = move |chain: Result<Value, ErrorDetail>, context: ActionContext| {
        let (all, runs) = (Arc::clone(&all), Arc::clone(&runs));
        async move {
            let chain = chain.map_err(|error| error.message)?;
            let remembers = context
                .callback_of
                .as_ref()
                .map(|sent| sent.remembers.clone());
            if let Some(event) = asks {
                let of = json!({ "after": hears });
                context
                    .answer_expects(event, &of)
                    .await
                    .map_err(|error| error.to_string())?;
            }
            if fails && runs.fetch_add(1, Ordering::Relaxed) == 0 {
                return Err("not yet".to_owned());
            }
            all.lock()
                .unwrap()
                .push((hears, chain.clone(), remembers.unwrap_or_default()));
            Ok(json!({ "to": hears, "of": chain }))
        }
    };
    Service::listener(client)
        .on_callback(hears, handler)
        .lease(LEASE)
        .backoff(PAUSE, PAUSE)
}

/// A service whose answer to `demo.begin` asks for a callback, and remembers what it was given.
async fn beginner(ground: &Ground) -> ServiceHandle {
    let begin = async |data: Value, context: ActionContext| {
        context.answer_expects("demo.second", &data).await?;
        Ok::<_, meshwork::protocol::nooble::Error>(data)
    };
    let service = ground.service().handle("demo.begin", begin);
    service.start().await.unwrap()
}

/// A asks B, B's callback asks A back, A's answer to that asks B, and B's ends it: what each heard, and remembered. A hears
/// the last one as `third`.
async fn chain(third: &'static str) {
    for ground in Ground::both().await {
        let all = Heard::default();
        let service = beginner(&ground).await;
        let mut listen = Vec::new();
        for (client, events, fails) in [
            (&ground.tester, ("tester.first", Some(third)), true),
            (&ground.demo, ("demo.second", Some("demo.fourth")), false),
            (&ground.tester, ("tester.third", None), false),
        ] {
            listen.push(link(client, events, fails, &all).start().await.unwrap());
        }
        let asks = request("demo.begin", json!({ "after": "begin" }));
        ground
            .tester
            .send_with_callback(asks, "tester.first", &json!({ "after": "nothing" }))
            .await
            .unwrap();
        let expected = [
            ("tester.first", json!("nothing")),
            ("demo.second", json!("begin")),
            (third, json!("tester.first")),
        ];
        assert_eq!(remembered(&all, 3).await, expected);
        for one in listen {
            one.stop().await;
        }
        ground.goes_on(service).await;
    }
}

/// So many callbacks: who heard them, and after what that was.
async fn remembered(all: &Heard, many: usize) -> Vec<(&'static str, Value)> {
    let replies = eventually("the chain ends", BOUND, async || {
        Some(all.lock().unwrap().clone()).filter(|all| all.len() >= many)
    });
    let replies = replies.await.into_iter();
    replies
        .map(|(event, _, remembers)| (event, remembers["after"].clone()))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_goes_on_as_long_as_each_asks() {
    chain("tester.third").await;
}

/// The record of an answer's callback replaces the one that it answers.
#[tokio::test(flavor = "multi_thread")]
async fn a_chain_goes_on_under_one_name() {
    chain("tester.first").await;
}

/// Both records have the same id, and the same service.
#[tokio::test(flavor = "multi_thread")]
async fn a_service_asks_itself() {
    for ground in Ground::both().await {
        let all = Heard::default();
        let service = beginner(&ground).await;
        let first = link(&ground.demo, ("demo.first", None), false, &all);
        let second = link(&ground.demo, ("demo.second", None), false, &all);
        let listen = [first.start().await.unwrap(), second.start().await.unwrap()];
        let asks = request("demo.begin", json!({ "after": "begin" }));
        ground
            .demo
            .send_with_callback(asks, "demo.first", &json!({ "after": "nothing" }))
            .await
            .unwrap();
        let expected = [
            ("demo.first", json!("nothing")),
            ("demo.second", json!("begin")),
        ];
        assert_eq!(remembered(&all, 2).await, expected);
        for one in listen {
            one.stop().await;
        }
        ground.goes_on(service).await;
    }
}

/// One record exists per name and id.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_cannot_expect_itself() {
    for ground in Ground::both().await {
        let service = beginner(&ground).await;
        let (chain, mut tells) = tokio::sync::mpsc::channel(1);
        let hears = move |answer: Result<Value, ErrorDetail>, _: ActionContext| {
            let chain = chain.clone();
            async move {
                let said = chain.send(answer.unwrap_err().message).await;
                said.map_err(|error| error.to_string())
            }
        };
        let listens = Service::listener(&ground.demo).on_callback("demo.second", hears);
        let listens = listens.lease(LEASE).start().await.unwrap();
        let asks = request("demo.begin", json!({}));
        let sent = ground.demo.send_with_callback(asks, "demo.second", &1);
        sent.await.unwrap();
        let why = tokio::time::timeout(BOUND, tells.recv()).await.unwrap();
        assert!(
            why.unwrap()
                .contains("a callback demo.second of this service")
        );
        listens.stop().await;
        ground.goes_on(service).await;
    }
}

/// A client without an id: chained callbacks are matched all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_callback_without_an_id_may_ask_for_a_callback() {
    for ground in Ground::both().await {
        let all = Heard::default();
        let service = beginner(&ground).await;
        let listens = link(&ground.demo, ("demo.second", None), false, &all)
            .start()
            .await
            .unwrap();
        for n in [1, 2] {
            let asks = meshwork::protocol::nooble::Ids::default();
            let action = json!({
                "action_type": "demo.begin", "data": { "after": n }, "origin_service": "old",
                "tenant_id": asks.tenant_id, "session_id": asks.session_id, "task_id": asks.task_id,
                "agent_id": asks.agent_id, "callback_queue_name": OLD, "callback_action_type": "old.first",
            });
            ground.put(action.to_string().as_bytes()).await;
        }
        for n in [1, 2] {
            let first: Value = serde_json::from_str(&ground.popped(OLD).await).unwrap();
            let mut back = first.clone();
            back["callback_queue_name"] = Value::Null;
            back["callback_action_type"] = Value::Null;
            back["action_type"] = first["callback_action_type"].clone();
            let list = first["callback_queue_name"].as_str().unwrap();
            ground.say::<()>(&["LPUSH", list, &back.to_string()]).await;
            let _ = n;
        }
        let chain = eventually("both come back", BOUND, async || {
            Some(all.lock().unwrap().clone()).filter(|all| all.len() >= 2)
        })
        .await;
        for (_, chain, remembers) in chain {
            assert_eq!(chain["after"], remembers["after"]);
        }
        listens.stop().await;
        ground.goes_on(service).await;
    }
}
