//! Captured messages of Nooble4: its clients' actions are answered as its workers did, and this client sends the same
//! bytes as theirs, except ids and times.

use meshwork::protocol::nooble::{Client, Ids, Request};
use meshwork_model::keys::nooble::Dialect;
use meshwork_model::nooble::{Action, Fresh};
use meshwork_test_servers::eventually;
use serde::Deserialize;
use serde_json::Value;
use std::time::Duration;

use super::handlers;
use super::support::{BOUND, Ground, LEASE, masked};

/// A line each: the dialect, the scenario, who sent it, where to, and the message.
const CAPTURED: &str = include_str!("../../../../model/tests/nooble/captured.jsonl");

#[derive(Deserialize)]
struct Captured {
    dialect: String,
    scenario: String,
    by: String,
    key: String,
    message: String,
}

fn captured(dialect: Dialect, by: &str) -> Vec<Captured> {
    let lines = CAPTURED
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let wanted = |one: &Captured| one.dialect == dialect.as_str() && one.by == by;
    lines.filter(wanted).collect()
}

/// An action that says all itself.
pub(crate) fn action(message: &str, dialect: Dialect) -> Action {
    let fresh = || Fresh {
        action_id: String::new(),
        trace_id: String::new(),
        now: String::new(),
    };
    Action::read(message.as_bytes(), dialect, fresh).unwrap()
}

/// Answers of the captured workers, by scenario and in order. Those of lists are as those of streams, without some
/// ids.
fn answers(dialect: Dialect) -> Vec<Captured> {
    let mut all = captured(Dialect::Streams, "worker");
    for one in &mut all {
        one.dialect = dialect.to_string();
    }
    all
}

fn data(message: &str) -> Value {
    let message: Value = serde_json::from_str(message).unwrap();
    let mut data = message["data"].clone();
    if data.get("task_id").is_some() {
        data["task_id"] = Value::Null;
        data["correlation_id"] = Value::Null;
    }
    data
}

#[tokio::test(flavor = "multi_thread")]
async fn captured_actions_are_answered_as_theirs_were() {
    for ground in Ground::both().await {
        let service = handlers::service(&ground.demo, &ground.url()).unwrap();
        let service = service.lease(LEASE).start().await.unwrap();
        let expected = answers(ground.dialect);
        for scenario in captured(ground.dialect, "client") {
            if scenario.scenario == "timeout" {
                continue;
            }
            ground.put(scenario.message.as_bytes()).await;
            let sent = action(&scenario.message, ground.dialect);
            let Some(list) = &sent.callback_queue_name else {
                let request = sent.data.read::<Value>().unwrap();
                let key = request["effect_key"].as_str().unwrap();
                let written = eventually("the effect is there", BOUND, async || {
                    ground.say::<Option<String>>(&["GET", key]).await
                })
                .await;
                assert_eq!(written, request["value"].to_string().trim_matches('"'));
                continue;
            };
            let came = ground.popped(list).await;
            let theirs: Vec<_> = expected
                .iter()
                .filter(|one| one.scenario == scenario.scenario)
                .collect();
            assert!(!theirs.is_empty(), "{}", scenario.scenario);
            let same = theirs.iter().any(|one| match ground.is_stream() {
                true => masked(&one.message) == masked(&came) && one.key == *list,
                false => data(&one.message) == data(&came),
            });
            assert!(same, "{} {}: {came}", ground.dialect, scenario.scenario);
            if ground.is_stream() {
                let of = |text: &str| {
                    serde_json::from_str::<Value>(text).unwrap()["correlation_id"].clone()
                };
                assert_eq!(of(&came), of(&scenario.message));
            }
        }
        service.stop().await;
        ground.quiet().await;
    }
}

/// Sends the requests that Nooble4's client sent, with Meshwork's client.
async fn ask(client: &Client, scenario: &str, sent: &Action) {
    let ids = Ids::of(sent);
    let mut request = Request::with_data(&sent.action_type, sent.data.clone()).ids(ids);
    if let Some(config) = &sent.rag_config {
        request = request.rag_config(config.clone());
    }
    // Nobody answers: it is what was sent that counts.
    let soon = Duration::from_millis(1);
    match (&sent.callback_queue_name, &sent.callback_action_type) {
        (None, _) => {
            client.send(request).await.unwrap();
        }
        (Some(_), None) => {
            let refused = client.call(request, soon).await.unwrap_err();
            assert!(
                refused.to_string().contains(&sent.action_type),
                "{scenario}: {refused}"
            );
        }
        (Some(list), Some(event)) => {
            // Nooble4's client was configured to put the call's id into the list's name, which the lists dialect does
            // not do.
            if !list.contains(":callbacks:tester_") {
                request = request.private_list();
            }
            client
                .send_with_callback(request, event, &())
                .await
                .unwrap();
        }
    }
}

/// With default settings, shared lists and callback lists have an id of the process in place of Nooble4's.
#[tokio::test(flavor = "multi_thread")]
async fn our_client_sends_what_theirs_did() {
    for ground in Ground::both().await {
        let mut seen = 0;
        for theirs in captured(ground.dialect, "client") {
            let sent = action(&theirs.message, ground.dialect);
            ask(&ground.tester, &theirs.scenario, &sent).await;
            let queue = &theirs.key;
            let ours = ground.standing(queue).await.pop().unwrap();
            assert_eq!(
                masked(&ours),
                masked(&theirs.message),
                "{} {}",
                ground.dialect,
                theirs.scenario
            );
            seen += 1;
        }
        assert!(seen > 12, "{seen}");
    }
}
