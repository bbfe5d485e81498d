//! Cycles: each step of a task is sent once, whichever process continues.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use meshwork::protocol::nooble::{ActionContext, Cycle, Error, Ids, Request, Service};
use meshwork_test_servers::eventually;
use serde_json::{Value, json};
use tokio::sync::Barrier;

use super::support::{BOUND, Ground, LEASE};

/// Too short for an answer to come by chance.
const SHORT: Duration = Duration::from_millis(30);

fn request(action_type: &str, data: Value) -> Request {
    Request::new(action_type, &data).unwrap()
}

/// Ids of the actions that a handler was called for, and their correlation ids.
type Seen = Arc<Mutex<Vec<(String, String)>>>;

/// The service `demo` with `demo.count`, which gives how often it ran.
fn counting(ground: &Ground, seen: &Seen) -> Service {
    let seen = Arc::clone(seen);
    let count = move |_: Value, context: ActionContext| {
        let action = &context.action;
        let correlation = action.correlation_id.clone().unwrap();
        let mut seen = seen.lock().unwrap();
        seen.push((action.action_id.clone(), correlation));
        let runs = seen.len();
        async move { Ok::<_, String>(json!({ "runs": runs })) }
    };
    ground.service().handle("demo.count", count)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_answered_is_not_asked_again() {
    for ground in Ground::both().await {
        let seen = Seen::default();
        let service = counting(&ground, &seen).start().await.unwrap();
        let ids = Ids::default();
        for _ in 0..2 {
            // As another process, which knows the task.
            let cycle = Cycle::new(&ground.tester, ids.clone());
            for step in ["a", "b"] {
                let count = request("demo.count", json!({}));
                let answer: Value = cycle.ask(step, count, BOUND).await.unwrap();
                let runs = if step == "a" { 1 } else { 2 };
                assert_eq!(answer, json!({ "runs": runs }));
            }
        }
        let other = Cycle::new(&ground.tester, Ids::default());
        let count = request("demo.count", json!({}));
        let answer: Value = other.ask("a", count, BOUND).await.unwrap();
        assert_eq!(answer, json!({ "runs": 3 }));
        let mut ids = seen.lock().unwrap().clone();
        ids.dedup_by(|a, b| a.1 == b.1);
        assert_eq!(ids.len(), 3, "each step has a correlation id of its own");
        ground.goes_on(service).await;
        let for_ever: Vec<String> = ground.say(&["KEYS", "*:mw:cycle:*"]).await;
        for key in for_ever {
            assert!(ground.say::<i64>(&["PTTL", &key]).await > 0, "{key}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_is_an_answer() {
    for ground in Ground::both().await {
        let service = ground.started().await;
        let ids = Ids::default();
        let mut replies = Vec::new();
        for _ in 0..2 {
            let cycle = Cycle::new(&ground.tester, ids.clone());
            let fails = request("demo.fail", json!({}));
            let error = cycle.ask::<Value>("a", fails, BOUND).await.unwrap_err();
            assert!(matches!(error, Error::Failed { .. }), "{error}");
            let fails = request("demo.fail", json!({}));
            replies.push(cycle.call("a", fails, BOUND).await.unwrap());
        }
        assert!(
            replies
                .iter()
                .all(|one| one.action_id == replies[0].action_id)
        );
        ground.goes_on(service).await;
    }
}

/// A call in flight is awaited, and its answer is found, also when it came during an absence.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_under_way_is_not_asked_again() {
    for ground in Ground::both().await {
        let ids = Ids::default();
        let cycle = Cycle::new(&ground.tester, ids.clone());
        let asks = tokio::spawn(async move {
            let count = request("demo.count", json!({}));
            cycle.call("a", count, BOUND).await
        });
        eventually("the action arrives", BOUND, async || {
            (ground.standing(&ground.queue()).await.len() == 1).then_some(())
        })
        .await;
        asks.abort();
        let seen = Seen::default();
        let service = counting(&ground, &seen).start().await.unwrap();
        eventually("the answer stands there", BOUND, async || {
            let lists: Vec<String> = ground.say(&["KEYS", "*:tester:responses:*"]).await;
            (lists.len() == 1).then_some(())
        })
        .await;
        let cycle = Cycle::new(&ground.tester, ids);
        let count = request("demo.count", json!({}));
        // So much time has gone by already.
        let answer = cycle.call("a", count, Duration::ZERO).await.unwrap();
        assert_eq!(answer.data.unwrap().text(), "{\"runs\":1}");
        assert_eq!(seen.lock().unwrap().len(), 1);
        let lists: Vec<String> = ground.say(&["KEYS", "*:tester:responses:*"]).await;
        assert!(lists.is_empty(), "{lists:?}");
        ground.goes_on(service).await;
    }
}

/// Another implementation of the service lost the action, or its stream was deleted.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_lost_is_asked_again_with_the_same_ids() {
    for ground in Ground::both().await {
        let ids = Ids::default();
        let cycle = Cycle::new(&ground.tester, ids.clone());
        let count = request("demo.count", json!({}));
        let (action_id, count) = (
            count.action_id().to_owned(),
            count.correlation_id(&ids.agent_id),
        );
        let error = cycle.call("a", count, SHORT).await.unwrap_err();
        assert!(matches!(error, Error::NoAnswer { .. }), "{error}");
        assert_eq!(ground.standing(&ground.queue()).await.len(), 1);
        ground.say::<()>(&["DEL", &ground.queue()]).await;
        let seen = Seen::default();
        let service = counting(&ground, &seen).start().await.unwrap();
        let again = Cycle::new(&ground.tester, ids.clone());
        // The time is over by the server's clock too, or the step is sent once more at its end.
        let answer = eventually("it is answered", BOUND, async || {
            let count = request("demo.count", json!({}));
            again.call("a", count, SHORT).await.ok()
        })
        .await;
        assert_eq!(answer.correlation_id, ids.agent_id);
        let seen = seen.lock().unwrap().clone();
        assert!(
            seen.iter()
                .all(|one| *one == (action_id.clone(), ids.agent_id.clone()))
        );
        ground.goes_on(service).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_asks_the_same_each_time() {
    for ground in Ground::both().await {
        let service = ground.started().await;
        let cycle = Cycle::new(&ground.tester, Ids::default());
        let echo = |n: u64| request("demo.echo", json!({ "n": n, "x": 1e300 }));
        for _ in 0..2 {
            cycle.call("a", echo(1), BOUND).await.unwrap();
        }
        let fail = request("demo.fail", json!({ "n": 1, "x": 1e300 }));
        for other in [echo(2), fail] {
            let error = cycle.call("a", other, BOUND).await.unwrap_err();
            assert!(matches!(error, Error::OtherStep { .. }), "{error}");
            let said = error.to_string();
            assert!(
                said.contains("\"a\"") && said.contains("demo.echo"),
                "{said}"
            );
        }
        ground.goes_on(service).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cycle_has_room_for_so_much() {
    for ground in Ground::both().await {
        let cycle = Cycle::new(&ground.tester, Ids::default());
        let large = json!({ "x": "x".repeat(17 * 1024 * 1024) });
        let error = cycle.call("a", request("demo.echo", large), BOUND).await;
        let error = error.unwrap_err();
        assert!(matches!(error, Error::FullCycle { .. }), "{error}");
        assert!(ground.standing(&ground.queue()).await.is_empty());
    }
}

/// Far more than there are connections to wait on.
#[tokio::test(flavor = "multi_thread")]
async fn many_steps_may_be_under_way() {
    for ground in Ground::both().await {
        let ran = Arc::new(AtomicUsize::new(0));
        let (all, together) = (Arc::clone(&ran), Arc::new(Barrier::new(40)));
        let last = move |_: Value, _: ActionContext| {
            all.fetch_add(1, Ordering::SeqCst);
            let together = Arc::clone(&together);
            async move {
                together.wait().await;
                Ok::<_, String>(())
            }
        };
        let service = ground.service().handle("demo.last", last).concurrency(40);
        let service = service.start().await.unwrap();
        let cycle = Cycle::new(&ground.tester, Ids::default());
        let steps = (0..40).map(|n| {
            let (cycle, asks) = (cycle.clone(), request("demo.last", json!({})));
            async move { cycle.call(&format!("step-{n}"), asks, BOUND).await }
        });
        for answer in join_all(steps).await {
            assert!(answer.unwrap().success());
        }
        assert_eq!(ran.load(Ordering::SeqCst), 40);
        ground.goes_on(service).await;
    }
}

/// The ids of the task, and the span that the step comes from.
#[tokio::test(flavor = "multi_thread")]
async fn steps_belong_to_the_action_that_they_are_for() {
    for ground in Ground::both().await {
        let agent = async |_: Value, context: ActionContext| {
            let cycle = context.cycle();
            let request = cycle.request("demo.ids", &json!({}))?;
            let seen: Value = cycle.ask("only", request, BOUND).await?;
            cycle.end().await?;
            Ok::<_, Error>(seen)
        };
        let see = async |_: Value, context: ActionContext| {
            let metadata = context
                .action
                .metadata
                .as_ref()
                .map(|it| it.text().to_owned());
            let (task, trace) = (&context.action.task_id, &context.action.trace_id);
            Ok::<_, String>(json!({ "task": task, "trace": trace, "metadata": metadata }))
        };
        let service = ground.service().handle("demo.agent", agent);
        let service = service.handle("demo.ids", see).lease(LEASE);
        let service = service.start().await.unwrap();
        let ids = Ids::default();
        let outer = request("demo.agent", json!({})).ids(ids.clone());
        let span: String = outer
            .action_id()
            .replace('-', "")
            .chars()
            .take(16)
            .collect();
        let seen: Value = ground.tester.ask(outer, BOUND).await.unwrap();
        assert_eq!(seen["trace"], json!(ids.trace_id));
        if ground.is_stream() {
            assert_eq!(seen["task"], json!(ids.task_id));
        }
        assert!(seen["metadata"].as_str().unwrap().contains(&span), "{seen}");
        let cycles: Vec<String> = ground.say(&["KEYS", "*:demo:mw:cycle:*"]).await;
        let stays: i64 = ground.say(&["TTL", &cycles[0]]).await;
        assert!((1..=3_600).contains(&stays), "{stays}");
        ground.goes_on(service).await;
    }
}
