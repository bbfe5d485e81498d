//! Callbacks: each is handled once with its request, also after a restart, and may request callbacks itself.

use std::sync::{Arc, Mutex};

use meshwork::protocol::nooble::{ActionContext, Client, Request, Service};
use meshwork_model::keys::nooble::Dialect;
use meshwork_model::nooble::ErrorDetail;
use meshwork_test_servers::eventually;
use serde_json::{Value, json};

use super::support::{BOUND, Ground, LEASE, PAUSE};

/// Received callbacks: the data or the error, and the remembered data.
type Heard = Arc<Mutex<Vec<(Result<Value, String>, Value)>>>;

/// The service `tester`, which listens for `tester.done`.
fn listener(client: &Client, heard: &Heard) -> Service {
    let heard = Arc::clone(heard);
    let done = move |outcome: Result<Value, ErrorDetail>, context: ActionContext| {
        let outcome = outcome.map_err(|error| error.message);
        let remembers = context.callback_of.map(|pending| pending.remembers);
        heard
            .lock()
            .unwrap()
            .push((outcome, remembers.unwrap_or_default()));
        async { Ok::<(), String>(()) }
    };
    Service::new(client)
        .on_callback("tester.done", done)
        .lease(LEASE)
        .backoff(PAUSE, PAUSE)
}

async fn heard(heard: &Heard, many: usize) -> Vec<(Result<Value, String>, Value)> {
    eventually("the callbacks come", BOUND, async || {
        Some(heard.lock().unwrap().clone()).filter(|all| all.len() >= many)
    })
    .await
}

fn request(action_type: &str, data: Value) -> Request {
    Request::new(action_type, &data).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callback_finds_what_was_asked_for() {
    for ground in Ground::both().await {
        let service = ground.started().await;
        let asks = request("demo.echo", json!({ "doc": 1 }));
        let id = ground
            .tester
            .send_with_callback(asks, "tester.done", &json!({ "page": 3 }))
            .await
            .unwrap();
        // The caller has ended when the reply comes. The reply waits for the next process of the service.
        let list = ground
            .broker
            .names()
            .callback("tester", "tester.done", None, None);
        eventually("the callback stands there", BOUND, async || {
            (ground.say::<usize>(&["LLEN", &list]).await == 1).then_some(())
        })
        .await;
        let waits: i64 = ground.say(&["PTTL", &list]).await;
        assert!(waits > 0);
        let again = Client::new(ground.broker.clone(), "tester");
        let all = Heard::default();
        let listens = listener(&again, &all).start().await.unwrap();
        let outcome = heard(&all, 1).await;
        assert_eq!(
            outcome,
            [(Ok(json!({ "echo": { "doc": 1 } })), json!({ "page": 3 }))]
        );
        let pending = ground
            .broker
            .names()
            .pending_callback("tester", "tester.done", &id);
        eventually("it is over", BOUND, async || {
            ground
                .broker
                .pending_callback(&pending)
                .await
                .unwrap()
                .is_none()
                .then_some(())
        })
        .await;
        // In the tree of the task, the callback is below the request.
        let mut outcome: [_; 2] = ground.traced().await;
        // Each of the two services tells of its own.
        outcome.sort_by(|a, b| a.began.cmp(&b.began));
        let [pending, callback] = outcome;
        assert_eq!(callback.action_type, "tester.done");
        assert_eq!(callback.parent, pending.span);
        ground.goes_on(service).await;
        listens.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_is_told_by_a_callback_too() {
    for ground in Ground::both().await {
        let service = ground.started().await;
        let all = Heard::default();
        let listens = listener(&ground.tester, &all).start().await.unwrap();
        let asks = request("demo.fail", json!({}));
        ground
            .tester
            .send_with_callback(asks, "tester.done", &7)
            .await
            .unwrap();
        assert_eq!(heard(&all, 1).await, [(Err("boom".to_owned()), json!(7))]);
        assert_eq!(ground.buried(1).await[0].0, "boom");
        ground.goes_on(service).await;
        listens.stop().await;
    }
}

/// The callback is repeated, or nobody requested it.
#[tokio::test(flavor = "multi_thread")]
async fn a_callback_that_comes_twice_is_dropped() {
    for ground in Ground::both().await {
        let service = ground.started().await;
        let list = ground
            .broker
            .names()
            .callback("tester", "tester.done", None, None);
        let asks = request("demo.echo", json!({ "n": 1 }));
        ground
            .tester
            .send_with_callback(asks, "tester.done", &1)
            .await
            .unwrap();
        let callback = ground.popped(&list).await;
        for _ in 0..3 {
            ground.say::<()>(&["LPUSH", &list, &callback]).await;
        }
        let all = Heard::default();
        let listens = listener(&ground.tester, &all);
        let listens = listens.concurrency(1).start().await.unwrap();
        let asks = request("demo.echo", json!({ "n": 2 }));
        ground
            .tester
            .send_with_callback(asks, "tester.done", &2)
            .await
            .unwrap();
        let outcome = heard(&all, 2).await;
        let remembered: Vec<_> = outcome
            .into_iter()
            .map(|(_, remembers)| remembers)
            .collect();
        assert_eq!(remembered, [json!(1), json!(2)]);
        ground.goes_on(service).await;
        listens.stop().await;
    }
}

/// A asks B, B's callback asks A back, and what A says comes to B.
#[tokio::test(flavor = "multi_thread")]
async fn a_callback_may_ask_for_a_callback() {
    for ground in Ground::both().await {
        let all = Heard::default();
        let last = Arc::clone(&all);
        let begin = async |_: Value, context: ActionContext| {
            context
                .answer_expects("demo.confirmed", &json!({ "stage": 2 }))
                .await?;
            Ok::<_, meshwork::protocol::nooble::Error>(json!({ "draft": 1 }))
        };
        let confirmed = move |outcome: Result<Value, ErrorDetail>, context: ActionContext| {
            let outcome = outcome.map_err(|error| error.message);
            let remembers = context.callback_of.map(|pending| pending.remembers);
            last.lock()
                .unwrap()
                .push((outcome, remembers.unwrap_or_default()));
            async { Ok::<(), String>(()) }
        };
        let service = ground.service().handle("demo.begin", begin);
        let service = service
            .on_callback("demo.confirmed", confirmed)
            .start()
            .await
            .unwrap();
        let draft = async |outcome: Result<Value, ErrorDetail>, _: ActionContext| {
            Ok::<_, String>(json!({ "confirms": outcome.ok() }))
        };
        let listens = Service::new(&ground.tester)
            .on_callback("tester.draft", draft)
            .lease(LEASE);
        let listens = listens.start().await.unwrap();
        let asks = request("demo.begin", json!({}));
        ground
            .tester
            .send_with_callback(asks, "tester.draft", &1)
            .await
            .unwrap();
        let expected = (
            Ok(json!({ "confirms": { "draft": 1 } })),
            json!({ "stage": 2 }),
        );
        assert_eq!(heard(&all, 1).await, [expected]);
        ground.goes_on(service).await;
        listens.stop().await;
    }
}

/// Nobody ever comes for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_callback_that_nobody_takes_ends() {
    for ground in Ground::both().await {
        let service = ground.started().await;
        for private_list in [false, true] {
            let mut asks = request("demo.echo", json!({}));
            if private_list {
                asks = asks.private_list();
            }
            ground
                .tester
                .send_with_callback(asks, "tester.done", &1)
                .await
                .unwrap();
        }
        eventually("both callbacks stand there", BOUND, async || {
            let lists: Vec<String> = ground.say(&["KEYS", "*:callbacks:*"]).await;
            (lists.len() == 2).then_some(())
        })
        .await;
        ground.quiet().await;
        service.stop().await;
        let mut left: Vec<String> = ground.say(&["KEYS", "*"]).await;
        left.retain(|key| *key != ground.queue());
        assert!(left.len() >= 4, "{left:?}");
        for key in left {
            assert!(ground.say::<i64>(&["PTTL", &key]).await > 0, "{key}");
        }
    }
}

/// One list for one call, as Nooble4's clients have it; and a listener that takes no actions.
#[tokio::test(flavor = "multi_thread")]
async fn the_callback_of_one_call_comes_to_a_list_of_its_own() {
    for ground in Ground::both().await {
        let service = ground.started().await;
        let ask = async |n: u32| {
            let asks = request("demo.echo", json!({ "n": n })).private_list();
            let sent = ground.tester.send_with_callback(asks, "tester.done", &n);
            sent.await.unwrap()
        };
        let (first, second) = (ask(1).await, ask(2).await);
        let all = Heard::default();
        let of_one = |call: &str| {
            let heard = Arc::clone(&all);
            let done = move |outcome: Result<Value, ErrorDetail>, context: ActionContext| {
                let remembers = context.callback_of.unwrap().remembers;
                let outcome = outcome.map_err(|error| error.message);
                heard.lock().unwrap().push((outcome, remembers));
                async { Ok::<(), String>(()) }
            };
            Service::listener(&ground.tester)
                .on_callback_of("tester.done", call, done)
                .lease(LEASE)
        };
        let listens = of_one(&second).start().await.unwrap();
        let outcome = heard(&all, 1).await;
        assert_eq!(outcome, [(Ok(json!({ "echo": { "n": 2 } })), json!(2))]);
        assert_eq!(listens.queues().len(), 1);
        assert!(
            listens
                .queues()
                .into_iter()
                .all(|queue| queue.contains(&second))
        );
        listens.stop().await;
        let listens = of_one(&first).start().await.unwrap();
        assert_eq!(heard(&all, 2).await[1].1, json!(1));
        listens.stop().await;
        ground.goes_on(service).await;
    }
}

/// In streams, a name of a list has no dots.
#[tokio::test(flavor = "multi_thread")]
async fn events_that_share_a_list_have_each_a_handler() {
    for ground in Ground::both().await {
        let service = ground.started().await;
        let mut listens = Service::listener(&ground.tester).lease(LEASE);
        let all = Heard::default();
        for event in ["tester.all_done", "tester.all.done"] {
            let asks = request("demo.echo", json!({ "of": event }));
            let sent = ground.tester.send_with_callback(asks, event, &event);
            sent.await.unwrap();
            let heard = Arc::clone(&all);
            let done = move |outcome: Result<Value, ErrorDetail>, _: ActionContext| {
                let outcome = outcome.map_err(|error| error.message);
                heard.lock().unwrap().push((outcome, json!(event)));
                async { Ok::<(), String>(()) }
            };
            listens = listens.on_callback(event, done);
        }
        let listens = listens.start().await.unwrap();
        let lists = if ground.is_stream() { 1 } else { 2 };
        assert_eq!(listens.queues().len(), lists);
        for (outcome, event) in heard(&all, 2).await {
            assert_eq!(outcome, Ok(json!({ "echo": { "of": event } })));
        }
        listens.stop().await;
        ground.goes_on(service).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_call_has_a_handler_of_its_own() {
    for ground in Ground::both().await {
        let service = ground.started().await;
        let mut listens = Service::listener(&ground.tester).lease(LEASE);
        let all = Heard::default();
        for n in [1, 2] {
            let asks = request("demo.echo", json!({ "n": n })).private_list();
            let call = ground.tester.send_with_callback(asks, "tester.done", &n);
            let heard = Arc::clone(&all);
            let done = move |outcome: Result<Value, ErrorDetail>, _: ActionContext| {
                let outcome = outcome.map_err(|error| error.message);
                heard.lock().unwrap().push((outcome, json!(n)));
                async { Ok::<(), String>(()) }
            };
            listens = listens.on_callback_of("tester.done", &call.await.unwrap(), done);
        }
        let listens = listens.start().await.unwrap();
        let mut outcome = heard(&all, 2).await;
        outcome.sort_by_key(|(_, n)| n.as_u64());
        let echo = |n: u32| (Ok(json!({ "echo": { "n": n } })), json!(n));
        assert_eq!(outcome, [echo(1), echo(2)]);
        listens.stop().await;
        ground.goes_on(service).await;
    }
}

/// A client of Nooble4 that asks in this service's name keeps no record.
#[tokio::test(flavor = "multi_thread")]
async fn callbacks_that_others_asked_for_are_taken_if_it_is_said() {
    for ground in Ground::both().await {
        let service = ground.started().await;
        let asks = request("demo.echo", json!({ "n": 1 }));
        let sent = ground.tester.send_with_callback(asks, "tester.done", &1);
        let id = sent.await.unwrap();
        let pending = ground
            .broker
            .names()
            .pending_callback("tester", "tester.done", &id);
        ground.say::<u8>(&["DEL", &pending]).await;
        let all = Heard::default();
        let listens = listener(&ground.tester, &all).accept_unsolicited();
        let listens = listens.start().await.unwrap();
        let expected = (Ok(json!({ "echo": { "n": 1 } })), Value::Null);
        assert_eq!(heard(&all, 1).await, [expected]);
        ground.goes_on(service).await;
        listens.stop().await;
    }
}

/// Asks `demo` for an answer that comes among the actions of `tester`, and gives where that is.
async fn asked_for_among_actions(ground: &Ground, action_type: &str) -> String {
    let list = ground.broker.names().actions("tester", None);
    let action = json!({
        "action_type": action_type, "data": { "n": 1 },
        "callback_queue_name": list, "callback_action_type": "tester.done",
    });
    ground.put(action.to_string().as_bytes()).await;
    list
}

/// Failures are reported as callbacks too.
#[tokio::test(flavor = "multi_thread")]
async fn a_callback_among_actions_finds_its_handler() {
    let Some(ground) = Ground::open(Dialect::Lists).await else {
        return;
    };
    let service = ground.started().await;
    let all = Heard::default();
    let listens = listener(&ground.tester, &all).start().await.unwrap();
    let expected = [
        ("demo.echo", Ok(json!({ "echo": { "n": 1 } }))),
        ("demo.fail", Err("boom".to_owned())),
    ];
    for (at, (action_type, outcome)) in expected.into_iter().enumerate() {
        asked_for_among_actions(&ground, action_type).await;
        assert_eq!(heard(&all, at + 1).await[at], (outcome, Value::Null));
    }
    ground.goes_on(service).await;
    listens.stop().await;
}

/// In the lists dialect a service may take its callbacks where it takes its actions: what others sent there stays.
#[tokio::test(flavor = "multi_thread")]
async fn a_callback_among_actions_gives_them_no_end() {
    let Some(ground) = Ground::open(Dialect::Lists).await else {
        return;
    };
    let service = ground.started().await;
    let list = asked_for_among_actions(&ground, "demo.echo").await;
    eventually("the callback stands there", BOUND, async || {
        (ground.say::<usize>(&["LLEN", &list]).await == 1).then_some(())
    })
    .await;
    assert_eq!(ground.say::<i64>(&["PTTL", &list]).await, -1);
    service.stop().await;
}
