//! The table of bad input in docs/actions.md: a test per row. After each, the service goes on.

use meshwork::protocol::nooble::{Ids, ServiceHandle};
use meshwork_test_servers::eventually;
use serde_json::{Value, json};

use super::support::{BOUND, Ground};

/// An action as a client of Nooble4 writes it, without a reply address.
fn action() -> Value {
    let ids = Ids::default();
    json!({
        "action_id": ids.agent_id, "action_type": "demo.echo", "timestamp": "2026-01-01T00:00:00Z",
        "tenant_id": ids.tenant_id, "session_id": ids.session_id, "task_id": ids.task_id, "user_id": null,
        "agent_id": ids.agent_id, "origin_service": "tester", "correlation_id": ids.session_id,
        "trace_id": ids.trace_id, "callback_queue_name": null, "callback_action_type": null,
        "data": { "n": 1 }, "metadata": {},
    })
}

fn with(field: &str, value: Value) -> Value {
    let mut action = action();
    action[field] = value;
    action
}

/// The message becomes a dead letter unchanged, with this error; and the service continues.
async fn is_dead(ground: &Ground, service: ServiceHandle, message: &[u8], error: &str) {
    ground.put(message).await;
    let dead = ground.buried(1).await;
    assert!(
        dead[0].0.contains(error),
        "{}: {}",
        ground.dialect,
        dead[0].0
    );
    assert_eq!(dead[0].1, message);
    ground.goes_on(service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_json() {
    for message in ["this is not json", "", "{\"action_id\":", "\u{feff}{}"] {
        for ground in Ground::both().await {
            let service = ground.started().await;
            is_dead(&ground, service, message.as_bytes(), "json_invalid").await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_object() {
    for message in ["[]", "null"] {
        for ground in Ground::both().await {
            let service = ground.started().await;
            is_dead(&ground, service, message.as_bytes(), "model_type").await;
        }
    }
}

/// Theirs stops at it, and every worker after it.
#[tokio::test(flavor = "multi_thread")]
async fn no_utf8() {
    for ground in Ground::both().await {
        let service = ground.started().await;
        is_dead(&ground, service, b"{\"data\":\"\xff\xfe\"}", "not_utf8").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_message() {
    let Some(ground) = Ground::open(meshwork_model::keys::nooble::Dialect::Streams).await else {
        return;
    };
    let service = ground.started().await;
    ground
        .say::<()>(&["XADD", &ground.queue(), "*", "other", "x"])
        .await;
    // What came is not lost.
    let said = &ground.buried(1).await[0].0;
    assert_eq!(said, "it has no field `data`, but other=x");
    ground.goes_on(service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_field() {
    for ground in Ground::both().await {
        let service = ground.started().await;
        let mut message = action();
        message.as_object_mut().unwrap().remove("data");
        is_dead(
            &ground,
            service,
            message.to_string().as_bytes(),
            "data: missing",
        )
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_of_the_wrong_type() {
    for ground in Ground::both().await {
        let service = ground.started().await;
        let message = with("action_id", json!("not-a-uuid")).to_string();
        is_dead(
            &ground,
            service,
            message.as_bytes(),
            "action_id: uuid_parsing",
        )
        .await;
    }
}

/// Once the service ended at it, and the next one too.
#[tokio::test(flavor = "multi_thread")]
async fn a_time_beyond_all_times() {
    for ground in Ground::both().await {
        let service = ground.started().await;
        let message = with("timestamp", json!(-1e300)).to_string();
        let error = "timestamp: datetime_from_date_parsing";
        is_dead(&ground, service, message.as_bytes(), error).await;
    }
}

/// The caller gets an error if the message names one. Nooble4's workers send nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_not_valid_is_answered() {
    for ground in Ground::both().await {
        let service = ground.started().await;
        let mut message = with(
            "callback_queue_name",
            json!("nooble4:dev:tester:responses:x:1"),
        );
        message["data"] = Value::Null;
        ground.put(message.to_string().as_bytes()).await;
        let answer: Value =
            serde_json::from_str(&ground.popped("nooble4:dev:tester:responses:x:1").await).unwrap();
        assert_eq!(answer["success"], false);
        assert_eq!(answer["correlation_id"], message["correlation_id"]);
        assert_eq!(answer["error"]["error_code"], "INVALID_ACTION");
        assert_eq!(ground.buried(1).await.len(), 1);
        ground.goes_on(service).await;
    }
}

/// Whatever is wrong in it, as long as it says what an answer must have in its dialect.
#[tokio::test(flavor = "multi_thread")]
async fn what_an_answer_does_not_need_may_be_wrong_in_a_call() {
    const LIST: &str = "nooble4:dev:tester:responses:x:1";
    for ground in Ground::both().await {
        let service = ground.started().await;
        let call = with("callback_queue_name", json!(LIST));
        let mut wrong = vec![
            ("agent_id", json!(17)),
            ("correlation_id", json!("")),
            ("correlation_id", json!(17)),
            ("trace_id", json!([1])),
            ("trace_id", json!("")),
        ];
        if !ground.is_stream() {
            wrong.extend([("tenant_id", json!(17)), ("session_id", json!([1]))]);
        }
        let mut messages = Vec::new();
        for (field, value) in wrong {
            let mut message = call.clone();
            message["data"] = Value::Null;
            message[field] = value;
            messages.push((field, message.to_string().into_bytes()));
        }
        let text = call.to_string();
        let twice = text
            .replacen('{', "{\"trace_id\":1,", 1)
            .replace("\"data\":{", "\"data\":7,\"x\":{");
        messages.push(("twice", twice.into_bytes()));
        let no_utf8 = text.replace("\"data\":{", "\"metadata\":{\"x\":\"?\"},\"data\":{");
        let at = no_utf8.find('?').unwrap();
        let mut no_utf8 = no_utf8.into_bytes();
        no_utf8[at] = 0xff;
        messages.push(("no UTF-8", no_utf8));
        for (which, message) in &messages {
            ground.put(message).await;
            let answer: Value = serde_json::from_str(&ground.popped(LIST).await).unwrap();
            let known_by = match *which {
                "correlation_id" => &call["action_id"],
                _ => &call["correlation_id"],
            };
            assert_eq!(answer["correlation_id"], *known_by, "{which}");
            assert_eq!(answer["error"]["error_code"], "INVALID_ACTION", "{which}");
        }
        assert_eq!(ground.buried(messages.len()).await.len(), messages.len());
        ground.goes_on(service).await;
    }
}

/// The same, where the answer is to come as a callback.
#[tokio::test(flavor = "multi_thread")]
async fn an_action_with_a_callback_that_is_not_valid_is_answered() {
    for ground in Ground::both().await {
        let service = ground.started().await;
        let mut message = with(
            "callback_queue_name",
            json!("nooble4:dev:tester:callbacks:x:1"),
        );
        message["callback_action_type"] = json!("tester.done");
        message["data"] = Value::Null;
        ground.put(message.to_string().as_bytes()).await;
        let callback = ground.popped("nooble4:dev:tester:callbacks:x:1").await;
        let read = super::captured::action(&callback, ground.dialect);
        assert_eq!(read.action_type, "tester.done");
        assert_eq!(json!(read.correlation_id), message["correlation_id"]);
        assert_eq!(json!(read.tenant_id), message["tenant_id"]);
        let callback_data: Value = read.data.read().unwrap();
        assert_eq!(callback_data["status"], "failure");
        assert_eq!(callback_data["error"]["error_code"], "INVALID_ACTION");
        assert_eq!(ground.buried(1).await.len(), 1);
        ground.goes_on(service).await;
    }
}

/// Theirs answers nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_without_a_correlation_id_or_a_trace_is_answered() {
    for ground in Ground::both().await {
        let service = ground.started().await;
        for field in ["correlation_id", "trace_id"] {
            let mut message = with(
                "callback_queue_name",
                json!("nooble4:dev:tester:responses:x:1"),
            );
            message[field] = Value::Null;
            ground.put(message.to_string().as_bytes()).await;
            let answer = ground.popped("nooble4:dev:tester:responses:x:1").await;
            let answer: Value = serde_json::from_str(&answer).unwrap();
            assert_eq!(answer["success"], true);
            assert_eq!(answer[field], message["action_id"]);
        }
        ground.goes_on(service).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_action_with_a_callback_is_answered() {
    for ground in Ground::both().await {
        let service = ground.started().await;
        let mut message = with(
            "callback_queue_name",
            json!("nooble4:dev:tester:callbacks:x:1"),
        );
        message["callback_action_type"] = json!("tester.done");
        message["action_type"] = json!("demo.fail");
        ground.put(message.to_string().as_bytes()).await;
        let callback = ground.popped("nooble4:dev:tester:callbacks:x:1").await;
        let callback: Value = serde_json::from_str(&callback).unwrap();
        assert_eq!(callback["action_type"], "tester.done");
        assert_eq!(callback["data"]["status"], "failure");
        assert_eq!(callback["data"]["error"]["message"], "boom");
        ground.goes_on(service).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_action_that_nobody_waits_for_is_a_dead_letter() {
    for ground in Ground::both().await {
        let service = ground.started().await;
        let message = with("action_type", json!("demo.fail")).to_string();
        is_dead(&ground, service, message.as_bytes(), "boom").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_type() {
    for ground in Ground::both().await {
        let service = ground.started().await;
        let message = with("action_type", json!("demo.other")).to_string();
        is_dead(
            &ground,
            service,
            message.as_bytes(),
            "No handler for demo.other",
        )
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_no_list_takes() {
    for ground in Ground::both().await {
        let service = ground.started().await;
        ground.say::<()>(&["SET", "other", "x"]).await;
        let message = with("callback_queue_name", json!("other")).to_string();
        ground.put(message.as_bytes()).await;
        ground.quiet().await;
        assert_eq!(ground.say::<String>(&["GET", "other"]).await, "x");
        ground.goes_on(service).await;
    }
}

/// It is kept until it can be one.
#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_that_no_stream_takes() {
    for ground in Ground::both().await {
        let service = ground.started().await;
        let dead = ground.broker.names().dead_letter("demo", None);
        ground.say::<()>(&["SET", &dead, "x"]).await;
        ground.put(b"this is not json").await;
        eventually("it was tried", BOUND, async || {
            let tries: Vec<String> = ground.say(&["KEYS", "*:mw:tries:*"]).await;
            (!tries.is_empty()).then_some(())
        })
        .await;
        assert_eq!(ground.say::<String>(&["GET", &dead]).await, "x");
        ground.say::<()>(&["DEL", &dead]).await;
        assert_eq!(ground.buried(1).await[0].1, b"this is not json");
        ground.goes_on(service).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn five_megabytes() {
    for ground in Ground::both().await {
        let service = ground.started().await;
        let data = json!({ "text": "ñ".repeat(2_500_000) });
        let request = meshwork::protocol::nooble::Request::new("demo.echo", &data).unwrap();
        let answer: Value = ground.tester.ask(request, BOUND).await.unwrap();
        assert_eq!(answer["echo"], data);
        ground.goes_on(service).await;
    }
}
