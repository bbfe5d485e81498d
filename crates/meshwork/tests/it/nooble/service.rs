//! The service: actions run, fail, run again, are released and taken over.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use meshwork::protocol::nooble::{ActionContext, ActionError, Ids, Service};
use meshwork_model::keys::nooble::Dialect;
use meshwork_model::nooble::{ActionOutcome, Data};
use meshwork_test_servers::eventually;
use serde_json::{Value, json};
use tokio::sync::{Notify, Semaphore};

use super::support::{BOUND, Ground, LEASE, PAUSE, request};

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_answered() {
    for ground in Ground::both().await {
        let service = ground.started().await;
        let data = json!({ "n": 1, "texts": ["ñ", null] });
        let answer: Value = ground
            .tester
            .ask(request("demo.echo", data.clone()), BOUND)
            .await
            .unwrap();
        assert_eq!(answer["echo"], data);
        let own = request("demo.echo", data.clone()).private_list();
        let answer: Value = ground.tester.ask(own, BOUND).await.unwrap();
        assert_eq!(answer["echo"], data);
        ground.goes_on(service).await;
        assert!(ground.dead().await.is_empty());
    }
}

/// A caller gets the error at once, and decides.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_fails_is_answered_and_no_dead_letter() {
    for ground in Ground::both().await {
        let service = ground.started().await;
        let response = ground
            .tester
            .call(request("demo.fail", json!({})), BOUND)
            .await
            .unwrap();
        let error = response.error.unwrap();
        assert_eq!(error.error_type, "ProcessingError");
        assert_eq!(error.error_code.as_deref(), Some("HANDLER_EXECUTION_ERROR"));
        assert_eq!(error.message, "boom");
        let unknown = ground
            .tester
            .ask::<Value>(request("demo.none", json!({})), BOUND)
            .await;
        let said = unknown.unwrap_err().to_string();
        assert_eq!(said, "demo.none failed: No handler for demo.none");
        ground.goes_on(service).await;
        assert!(ground.dead().await.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_action_that_nobody_waits_for_runs_again_and_is_a_dead_letter() {
    for ground in Ground::both().await {
        let runs = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&runs);
        let fail = move |_: Value, _: ActionContext| {
            let run = counted.fetch_add(1, Ordering::SeqCst) + 1;
            async move { Err::<(), _>(format!("run {run}")) }
        };
        let service = ground
            .service()
            .handle("demo.sad", fail)
            .max_attempts(3)
            .start()
            .await
            .unwrap();
        ground
            .tester
            .send(request("demo.sad", json!({ "a": 1 })))
            .await
            .unwrap();
        let dead = ground.buried(1).await;
        assert_eq!(dead[0].0, "run 3");
        assert!(String::from_utf8_lossy(&dead[0].1).contains("\"data\":{\"a\":1}"));
        assert_eq!(runs.load(Ordering::SeqCst), 3);
        ground.goes_on(service).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_says_what_its_error_is_and_that_no_run_would_help() {
    for ground in Ground::both().await {
        let refuse = async |_: Value, _: ActionContext| {
            let details = Data::of(&json!({ "max": 5 })).unwrap();
            let error =
                ActionError::new("TierLimitExceededError", "TIER_LIMIT_EXCEEDED", "too many");
            Err::<(), _>(error.details(details).permanent())
        };
        let service = ground
            .service()
            .handle("demo.refuse", refuse)
            .max_attempts(9)
            .start()
            .await
            .unwrap();
        let response = ground
            .tester
            .call(request("demo.refuse", json!({})), BOUND)
            .await
            .unwrap();
        let error = response.error.unwrap();
        assert_eq!(error.error_type, "TierLimitExceededError");
        assert_eq!(error.details.unwrap().text(), "{\"max\":5}");
        ground
            .tester
            .send(request("demo.refuse", json!({})))
            .await
            .unwrap();
        assert_eq!(ground.buried(1).await[0].0, "too many");
        ground.goes_on(service).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_takes_too_long_fails() {
    for ground in Ground::both().await {
        let ended = Arc::new(Notify::new());
        let stopped = Arc::clone(&ended);
        let slow = move |_: Value, context: ActionContext| {
            let stopped = Arc::clone(&stopped);
            async move {
                context.stop.cancelled().await;
                stopped.notify_one();
                std::future::pending::<Result<(), String>>().await
            }
        };
        let service = ground
            .service()
            .handle("demo.slow", slow)
            .timeout(PAUSE)
            .start()
            .await
            .unwrap();
        let response = ground
            .tester
            .call(request("demo.slow", json!({})), BOUND)
            .await
            .unwrap();
        assert_eq!(
            response.error.unwrap().error_code.as_deref(),
            Some("HANDLER_TIMEOUT")
        );
        tokio::time::timeout(BOUND, ended.notified()).await.unwrap();
        ground.goes_on(service).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_is_an_error() {
    for ground in Ground::both().await {
        let panics = async |_: Value, _: ActionContext| {
            assert_eq!(1, 2, "on purpose");
            Ok::<(), String>(())
        };
        let service = ground
            .service()
            .handle("demo.panic", panics)
            .start()
            .await
            .unwrap();
        let response = ground
            .tester
            .call(request("demo.panic", json!({})), BOUND)
            .await
            .unwrap();
        assert!(response.error.unwrap().message.contains("panicked"));
        ground.goes_on(service).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn data_of_another_type_is_refused_at_once() {
    for ground in Ground::both().await {
        let typed = async |_: Vec<u8>, _: ActionContext| Ok::<(), String>(());
        let list = async |_: Value, _: ActionContext| Ok::<_, String>([1, 2]);
        let service = ground
            .service()
            .handle("demo.typed", typed)
            .handle("demo.list", list);
        let service = service.start().await.unwrap();
        let response = ground
            .tester
            .call(request("demo.typed", json!({})), BOUND)
            .await
            .unwrap();
        assert_eq!(
            response.error.unwrap().error_code.as_deref(),
            Some("INVALID_DATA")
        );
        let response = ground
            .tester
            .call(request("demo.list", json!({})), BOUND)
            .await
            .unwrap();
        assert!(response.error.unwrap().message.contains("not a list"));
        ground.goes_on(service).await;
    }
}

/// A handler that calls on cannot forget an id, and the trace tells who called whom.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_handler_sends_belongs_to_the_same_task() {
    for ground in Ground::both().await {
        let relay = async |data: Value, context: ActionContext| {
            let answer = context.call("demo.echo", &data, BOUND).await?;
            let action = context.action.action_id.clone();
            let inner = answer.data.map(|data| data.text().to_owned());
            Ok::<_, meshwork::protocol::nooble::Error>(json!({ "inner": inner, "outer": action }))
        };
        let service = ground
            .service()
            .handle("demo.relay", relay)
            .start()
            .await
            .unwrap();
        let ids = Ids::default();
        let outer = request("demo.relay", json!({ "x": 1 })).ids(ids.clone());
        let outer_id = outer.action_id().to_owned();
        let response = ground.tester.call(outer, BOUND).await.unwrap();
        assert_eq!(response.trace_id, ids.trace_id);
        if ground.is_stream() {
            assert_eq!(response.task_id.as_deref(), Some(ids.task_id.as_str()));
            assert_eq!(
                response.session_id.as_deref(),
                Some(ids.session_id.as_str())
            );
        }
        let mut ended: [_; 2] = ground.traced().await;
        ended.sort_by(|one, other| other.action_type.cmp(&one.action_type));
        let [relay, echo] = ended;
        assert_eq!(
            (&*relay.action_type, &*echo.action_type),
            ("demo.relay", "demo.echo")
        );
        let span: String = outer_id.replace('-', "").chars().take(16).collect();
        assert_eq!((&*echo.parent, &*relay.span), (&*span, &*span));
        assert_eq!((&*relay.parent, &*echo.from), ("", "demo"));
        let task = if ground.is_stream() {
            &ids.task_id
        } else {
            &ids.trace_id
        };
        assert_eq!((&*relay.task, &*echo.task), (&**task, &**task));
        assert_eq!(relay.how, ActionOutcome::Done);
        ground.goes_on(service).await;
    }
}

/// The trace entry is written after the reply, but before the service has stopped.
#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_stops_has_told_the_trace() {
    for ground in Ground::both().await {
        let service = ground.started().await;
        let asks = request("demo.echo", json!({}));
        ground.tester.call(asks, BOUND).await.unwrap();
        service.stop().await;
        let ended = ground.broker.traced(None, 2).await.unwrap();
        assert_eq!(ended.len(), 1, "{ended:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_that_cannot_be_told_holds_up_nothing() {
    for ground in Ground::both().await {
        let trace = ground.broker.names().trace();
        ground.say::<()>(&["SET", &trace, "x"]).await;
        let service = ground.started().await;
        for _ in 0..2 {
            let asks = request("demo.echo", json!({}));
            let answer = ground.tester.call(asks, BOUND).await.unwrap();
            assert!(answer.success());
        }
        service.stop().await;
        assert_eq!(ground.say::<String>(&["GET", &trace]).await, "x");
    }
}

/// The process that had it is gone; and what it says afterwards counts for nothing.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_service_that_is_gone_had_is_taken_over() {
    for ground in Ground::both().await {
        let (began, go_on) = (Arc::new(Semaphore::new(0)), Arc::new(Notify::new()));
        let first = Arc::clone(&began);
        let hang = move |_: Value, _: ActionContext| {
            first.add_permits(1);
            async { std::future::pending::<Result<(), String>>().await }
        };
        let gone = Service::new(&ground.demo)
            .handle("demo.once", hang)
            .lease(LEASE);
        let gone = gone.start().await.unwrap();
        let tester = ground.tester.clone();
        let call =
            tokio::spawn(async move { tester.call(request("demo.once", json!({})), BOUND).await });
        tokio::time::timeout(BOUND, began.acquire())
            .await
            .unwrap()
            .unwrap()
            .forget();
        // As kill -9: its renewals end with its thread.
        drop(gone);
        let second = Arc::clone(&go_on);
        let once = move |_: Value, _: ActionContext| {
            second.notify_one();
            async { Ok::<_, String>(json!({ "by": 2 })) }
        };
        let service = ground
            .service()
            .handle("demo.once", once)
            .start()
            .await
            .unwrap();
        tokio::time::timeout(BOUND, go_on.notified()).await.unwrap();
        let response = call.await.unwrap().unwrap();
        assert_eq!(response.data.unwrap().text(), "{\"by\":2}");
        ground.goes_on(service).await;
    }
}

/// A queue that cannot be kept takes nothing from the others.
#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_cannot_be_kept_stops_no_other() {
    for ground in Ground::both().await {
        let broken = ground.broker.actions("demo", None);
        let workers = &broken.keys().workers;
        ground.say::<()>(&["SET", workers, "x"]).await;
        let service = ground.service().context("tenant").concurrency(1);
        let service = service.start().await.unwrap();
        for n in 0..3 {
            let echo = request("demo.echo", json!({ "n": n })).context("tenant");
            let answer: Value = ground.tester.ask(echo, BOUND).await.unwrap();
            assert_eq!(answer, json!({ "echo": { "n": n } }));
        }
        ground.say::<u8>(&["DEL", workers]).await;
        service.registered().await;
        ground.goes_on(service).await;
    }
}

/// One of many tenants does not hold up the others, however many actions it sends.
#[tokio::test(flavor = "multi_thread")]
async fn queues_of_contexts_get_slots_in_turn() {
    for ground in Ground::both().await {
        let order = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&order);
        let note = move |data: Value, _: ActionContext| {
            seen.lock()
                .unwrap()
                .push(data["of"].as_str().unwrap().to_owned());
            async { Ok::<(), String>(()) }
        };
        for n in 0..50 {
            ground
                .tester
                .send(request("demo.note", json!({ "of": "a", "n": n })).context("a"))
                .await
                .unwrap();
        }
        for n in 0..5 {
            ground
                .tester
                .send(request("demo.note", json!({ "of": "b", "n": n })).context("b"))
                .await
                .unwrap();
        }
        let service = ground
            .service()
            .handle("demo.note", note)
            .context("a")
            .context("b");
        let service = service.concurrency(1).start().await.unwrap();
        eventually("all have run", BOUND, async || {
            (order.lock().unwrap().len() == 55).then_some(())
        })
        .await;
        let order = order.lock().unwrap().clone();
        let last = order.iter().rposition(|of| of == "b").unwrap();
        assert!(last < 30, "the last of b came after {last} others");
        ground.goes_on(service).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_deleted_under_a_service_is_made_again() {
    for ground in Ground::both().await {
        let service = ground.started().await;
        ground.say::<()>(&["DEL", &ground.queue()]).await;
        ground.goes_on(service).await;
        if ground.is_stream() {
            let service = ground.started().await;
            ground
                .say::<()>(&["XGROUP", "DESTROY", &ground.queue(), "demo-group"])
                .await;
            ground.goes_on(service).await;
        }
    }
}

/// The server gave it away, and nobody heard. (Of a stream, nobody renews it, and it is taken over.)
#[tokio::test(flavor = "multi_thread")]
async fn what_comes_when_the_connection_breaks_is_found() {
    let Some(ground) = Ground::open(Dialect::Lists).await else {
        return;
    };
    let service = ground.started().await;
    let list = ground
        .broker
        .names()
        .response("tester", "demo.echo", "1", None);
    let message = json!({
        "action_type": "demo.echo", "correlation_id": Ids::default().task_id, "callback_queue_name": list,
        "data": {},
    });
    let hand = format!("{}:mw:processing:{}", ground.queue(), service.name());
    ground
        .say::<()>(&["LPUSH", &hand, &message.to_string()])
        .await;
    let id = eventually("it waits for messages", BOUND, async || {
        ground.waiting().await.into_iter().next()
    })
    .await;
    ground.say::<()>(&["CLIENT", "KILL", "ID", &id]).await;
    let answer = ground.popped(&list).await;
    assert!(answer.contains("\"success\":true"), "{answer}");
    ground.goes_on(service).await;
}
