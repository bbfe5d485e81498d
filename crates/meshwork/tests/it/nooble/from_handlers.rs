//! Scripts of handlers that send actions: `call_action()`, `send_action()`, `notify_action()`, and scripts for callbacks.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use meshwork::protocol::nooble::{ActionContext, Client, Error, Ids, Notice, Service};
use meshwork_test_servers::eventually;
use serde_json::{Value, json};

use super::support::{BOUND, Ground, request};

const PYTHON: &str = "import json, sys\n\
    given = json.load(sys.stdin)\n\
    calls = [call_action('demo.ids', {'n': n}) for n in (1, 2)]\n\
    heard = notify_action('done', {'n': 3})\n\
    sent = send_action('demo.ids', {'n': 4})\n\
    callback = send_action('demo.ids', {'n': 5}, callback='answered', remember={'page': 7})\n\
    try: call_action('demo.fail', {})\n\
    except ActionError as error: failed = [error.kind, str(error)]\n\
    result = dict(given=given, calls=calls, heard=heard, sent=sent, callback=callback, failed=failed)\n";

const RHAI: &str = "let calls = [call_action(\"demo.ids\", #{n: 1}), call_action(\"demo.ids\", #{n: 2})];\n\
    let heard = notify_action(\"done\", #{n: 3});\n\
    let sent = send_action(\"demo.ids\", #{n: 4});\n\
    let callback = send_action(\"demo.ids\", #{n: 5}, #{callback: \"answered\", remember: #{page: 7}});\n\
    let failed = ();\n\
    try { call_action(\"demo.fail\", #{}) } catch (e) { failed = [e.kind, e.message] }\n\
    #{given: parse_json(INPUT), calls: calls, heard: heard, sent: sent, callback: callback, failed: failed}";

const CALLBACK_PYTHON: &str = "import json, sys\n\
    request = inputs['request']\n\
    call_action('demo.ids', dict(n=6, came=json.load(sys.stdin)['n'], remembers=request['remembers'], of=request['action_type']))\n";

const CALLBACK_RHAI: &str = "let request = INPUTS.request;\n\
    call_action(\"demo.ids\", #{n: 6, came: parse_json(INPUT).n, remembers: request.remembers, of: request.action_type});\n\
    #{}";

/// An action as its service saw it: its data, message id, and ids with its sender.
type Seen = (Value, String, Value);

/// The service `demo`, whose action `demo.ids` returns its data and ids, and all that it saw.
fn demo(ground: &Ground) -> (Service, Arc<Mutex<Vec<Seen>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&seen);
    let handler = move |data: Value, context: ActionContext| {
        let action = &context.action;
        let ids = json!({
            "tenant": action.tenant_id, "session": action.session_id, "task": action.task_id,
            "trace": action.trace_id, "from": action.origin_service,
        });
        let call = action.correlation_id.clone().unwrap_or_default();
        let seen = (data.clone(), action.action_id.clone(), ids.clone());
        notes.lock().unwrap().push(seen);
        async move { Ok::<_, String>(json!({ "n": data["n"], "call": call, "ids": ids })) }
    };
    (ground.service().handle("demo.ids", handler), seen)
}

/// Returns what was seen of the action with this number, once it is there.
async fn seen_of(seen: &Mutex<Vec<Seen>>, n: u32) -> Seen {
    eventually(&format!("action {n} is seen"), BOUND, async || {
        let seen = seen.lock().unwrap();
        seen.iter().find(|one| one.0["n"] == n).cloned()
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handlers_actions_belong_to_its_task() {
    for ground in Ground::both().await {
        for (file, script, on_callback) in [
            ("flow.py", PYTHON, CALLBACK_PYTHON),
            ("flow.rhai", RHAI, CALLBACK_RHAI),
        ] {
            orchestrated(&ground, file, (script, on_callback)).await;
        }
    }
}

async fn orchestrated(ground: &Ground, file: &str, (script, on_callback): (&str, &str)) {
    let dir = tempfile::tempdir().unwrap();
    let (main, back) = (
        dir.path().join(file),
        dir.path().join(format!("back_{file}")),
    );
    std::fs::write(&main, script).unwrap();
    std::fs::write(&back, on_callback).unwrap();
    let (demo, seen) = demo(ground);
    let demo = demo.start().await.unwrap();
    // Channels of notifications are shared by all databases of a server.
    let name = format!("flow{}", Ids::default().task_id);
    let client = Client::new(ground.broker.clone(), &name);
    let action_type = format!("{name}.run");
    let flow = Service::new(&client).script(&action_type, &main).unwrap();
    let flow = flow.callback_script("answered", &back).unwrap();
    let flow = flow.start().await.unwrap();
    let mut heard = ground
        .tester
        .subscribe::<Value>(&name, &["done"], None)
        .await
        .unwrap();
    let ids = Ids::default();
    let asks = request(&action_type, json!({ "x": 1 })).ids(ids.clone());
    let answer: Value = ground.tester.ask(asks, BOUND).await.unwrap();
    assert_eq!(
        (&answer["given"], &answer["heard"]),
        (&json!({ "x": 1 }), &json!(1)),
        "{answer}"
    );
    assert_eq!(
        answer["failed"],
        json!(["ProcessingError", "demo.fail failed: boom"])
    );
    let task = ground.is_stream().then_some(&ids.task_id);
    let expected = json!({
        "tenant": ids.tenant_id, "session": ids.session_id, "task": task, "trace": ids.trace_id, "from": name,
    });
    let calls: Vec<_> = answer["calls"].as_array().unwrap().iter().collect();
    for (at, call) in calls.iter().enumerate() {
        assert_eq!(
            (&call["n"], &call["ids"]),
            (&json!(at + 1), &expected),
            "{call}"
        );
    }
    assert_ne!(calls[0]["call"], calls[1]["call"]);
    assert_eq!(seen_of(&seen, 4).await.1, answer["sent"].as_str().unwrap());
    assert_eq!(seen_of(&seen, 5).await.2, expected);
    let (data, _, of_callback) = seen_of(&seen, 6).await;
    let came = json!({ "n": 6, "came": 5, "remembers": { "page": 7 }, "of": "demo.ids" });
    assert_eq!(data, came);
    assert_eq!(
        (&of_callback["trace"], &of_callback["from"]),
        (&json!(ids.trace_id), &json!(name))
    );
    let notice = tokio::time::timeout(BOUND, heard.next()).await.unwrap();
    let Notice::Received(notice) = notice else {
        panic!("{notice:?}")
    };
    assert_eq!(notice.data, json!({ "n": 3 }));
    flow.stop().await;
    client.close().await;
    let keys = format!("*:{name}:responses:*");
    let left: Vec<String> = ground.say(&["KEYS", &keys]).await;
    assert!(left.is_empty(), "{left:?}");
    ground.goes_on(demo).await;
}

/// A handler that runs again sends the same messages.
#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_run_repeats_the_ids_of_its_actions() {
    let script = "call_action('demo.ids', {'n': 1})\nsend_action('demo.ids', {'n': 2})\nraise Retry(after=0)\n";
    for ground in Ground::both().await {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("again.py");
        std::fs::write(&path, script).unwrap();
        let (demo, seen) = demo(&ground);
        let demo = demo
            .script("demo.again", &path)
            .unwrap()
            .start()
            .await
            .unwrap();
        ground
            .tester
            .send(request("demo.again", json!({})))
            .await
            .unwrap();
        ground.buried(1).await;
        let ids = eventually("both runs have sent", BOUND, async || {
            let seen = seen.lock().unwrap();
            let of = |n: u32| {
                seen.iter()
                    .filter(|one| one.0["n"] == n)
                    .map(|one| one.1.clone())
                    .collect()
            };
            let ids: [Vec<String>; 2] = [of(1), of(2)];
            ids.iter().all(|ids| ids.len() == 2).then_some(ids)
        })
        .await;
        assert!(
            ids.iter().all(|ids| ids[0] == ids[1]) && ids[0] != ids[1],
            "{ids:?}"
        );
        demo.stop().await;
    }
}

/// A call ends with the timeout of its handler, whose caller gets that as the error.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_ends_with_its_handler() {
    let script = "call_action(\"nobody.there\", #{}, 3600)";
    for ground in Ground::both().await {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("waits.rhai");
        std::fs::write(&path, script).unwrap();
        let service = ground.service().timeout(Duration::from_secs(1));
        let service = service
            .script("demo.waits", &path)
            .unwrap()
            .start()
            .await
            .unwrap();
        let asks = request("demo.waits", json!({}));
        let error = ground.tester.ask::<Value>(asks, BOUND).await.unwrap_err();
        let Error::Failed { error, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(
            error.error_code.as_deref(),
            Some("HANDLER_TIMEOUT"),
            "{}",
            error.message
        );
        ground.goes_on(service).await;
    }
}
