//! Handlers that are scripts.

use std::time::Duration;

use futures_util::future::join_all;
use meshwork::protocol::nooble::{ActionContext, Cycle, Error, Ids};
use meshwork_model::nooble::Data;
use serde_json::{Value, json};

use super::support::{BOUND, Ground, request};

/// A Python handler answers as one in Rust.
#[tokio::test(flavor = "multi_thread")]
async fn a_script_may_be_the_handler() {
    for ground in Ground::both().await {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("embed.py");
        let code = "import json, sys\ndata = json.load(sys.stdin)\n\
                    print(json.dumps({'lengths': [len(t) for t in data['texts']]}))\n";
        std::fs::write(&path, code).unwrap();
        let service = ground.service().script("demo.embed", &path).unwrap();
        let service = service.start().await.unwrap();
        let texts = json!({ "texts": ["hola", "ñ"] });
        let answer: Value = ground
            .tester
            .ask(request("demo.embed", texts), BOUND)
            .await
            .unwrap();
        assert_eq!(answer, json!({ "lengths": [4, 1] }));
        ground.goes_on(service).await;
    }
}

/// It belongs to the action's trace, and knows its ids.
#[tokio::test(flavor = "multi_thread")]
async fn a_script_knows_its_action() {
    let python = "import json, os\nnames = ('TRACEPARENT', 'JOB_ID', 'TENANT_ID', 'SESSION_ID', 'CORRELATION_ID', 'ACTION_TYPE')\n\
                  print(json.dumps({'seen': [os.environ.get(name) for name in names]}))\n";
    let rhai = "#{seen: [TRACEPARENT, JOB_ID, ENV.TENANT_ID, ENV.SESSION_ID, ENV.CORRELATION_ID, ENV.ACTION_TYPE]}";
    for ground in Ground::both().await {
        let dir = tempfile::tempdir().unwrap();
        let mut service = ground.service();
        for (name, file, code) in [
            ("demo.python", "who.py", python),
            ("demo.rhai", "who.rhai", rhai),
        ] {
            let path = dir.path().join(file);
            std::fs::write(&path, code).unwrap();
            service = service.script(name, &path).unwrap();
        }
        let service = service.start().await.unwrap();
        for name in ["demo.python", "demo.rhai"] {
            let ids = Ids::default();
            let asks = request(name, json!({})).ids(ids.clone());
            let asks = asks.correlation_id(&ids.trace_id);
            let trace = asks.traceparent().unwrap();
            let action = asks.action_id().to_owned();
            let answer: Value = ground.tester.ask(asks, BOUND).await.unwrap();
            let Ids {
                tenant_id,
                session_id,
                trace_id,
                ..
            } = ids;
            let seen = json!([trace, action, tenant_id, session_id, trace_id, name]);
            assert_eq!(answer["seen"], seen);
        }
        ground.goes_on(service).await;
    }
}

/// The trace that a caller is in goes on from hop to hop as it says it, whatever its `trace_id` is.
#[tokio::test(flavor = "multi_thread")]
async fn a_trace_goes_on_through_every_hop() {
    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    let who = "import json, os\nprint(json.dumps({'seen': os.environ['TRACEPARENT']}))\n";
    for ground in Ground::both().await {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("who.py");
        std::fs::write(&path, who).unwrap();
        let relay = async |data: Value, context: ActionContext| {
            let answer = context.call("demo.who", &data, BOUND).await?;
            Ok::<_, Error>(answer.data)
        };
        let service = ground.service().script("demo.who", &path).unwrap();
        let service = service.handle("demo.relay", relay).start().await.unwrap();
        for (said, trace, flags) in [
            (format!("00-{TRACE}-b7ad6b7169203331-00"), Some(TRACE), "00"),
            (format!("00-{TRACE}-b7ad6b7169203331-01"), Some(TRACE), "01"),
            (format!("00-{TRACE}-none"), None, "01"),
        ] {
            let ids = Ids::default();
            let own = ids.trace_id.replace('-', "");
            let metadata = Data::of(&json!({ "traceparent": said, "page": 3 })).unwrap();
            let asks = request("demo.relay", json!({})).ids(ids).metadata(metadata);
            let answer: Value = ground.tester.ask(asks, BOUND).await.unwrap();
            let seen = answer["seen"].as_str().unwrap();
            let begins = format!("00-{}-", trace.unwrap_or(&own));
            assert!(
                seen.starts_with(&begins) && seen.ends_with(flags),
                "{said}: {seen}"
            );
        }
        ground.goes_on(service).await;
    }
}

/// The service's clock and the script's end at once: whichever is heard first, it is the time that was up.
#[tokio::test(flavor = "multi_thread")]
async fn a_script_out_of_its_time_is_told_as_that() {
    const CALLS: usize = 24;
    for ground in Ground::both().await {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("slow.py");
        std::fs::write(&path, "import time\ntime.sleep(1000)\n").unwrap();
        let service = ground.service().timeout(Duration::from_millis(300));
        let service = service.script("demo.slow", &path).unwrap();
        let service = service.concurrency(CALLS).start().await.unwrap();
        let call = |_| ground.tester.call(request("demo.slow", json!({})), BOUND);
        for answer in join_all((0..CALLS).map(call)).await {
            let error = answer.unwrap().error.unwrap();
            assert_eq!(error.error_code.as_deref(), Some("HANDLER_TIMEOUT"));
        }
        ground.goes_on(service).await;
    }
}

/// A caller may say that there is to be no end, and a service that it takes over at once.
#[tokio::test(flavor = "multi_thread")]
async fn no_time_is_too_long_or_too_short() {
    for ground in Ground::both().await {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("none.py");
        std::fs::write(&path, "").unwrap();
        let service = ground.service().script("demo.none", &path).unwrap();
        let (shortest, longest) = (
            Duration::from_millis(300),
            Duration::from_secs(3650 * 86_400),
        );
        let service = service.lease(shortest).timeout(longest);
        let service = service.start().await.unwrap();
        let answers = async {
            for asks in [
                request("demo.none", json!({})),
                request("demo.none", json!({})).private_list(),
            ] {
                let answer = ground.tester.ask::<Value>(asks, Duration::MAX).await;
                assert_eq!(answer.unwrap(), json!({}));
            }
            let cycle = Cycle::new(&ground.tester, Ids::default());
            let asks = request("demo.none", json!({}));
            cycle.call("step", asks, Duration::MAX).await.unwrap();
        };
        tokio::time::timeout(BOUND, answers).await.unwrap();
        ground.goes_on(service).await;
    }
}

/// A script's error is reported as a function's, and no result is an empty object.
#[tokio::test(flavor = "multi_thread")]
async fn a_script_is_told_of_as_a_function() {
    for ground in Ground::both().await {
        let dir = tempfile::tempdir().unwrap();
        let script = |name: &str, code: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, code).unwrap();
            path
        };
        let call = async |action| {
            let reply = ground.tester.call(request(action, json!({})), BOUND);
            reply.await.unwrap()
        };
        let service = ground
            .service()
            .script("demo.nan", &script("nan.py", "print('{\"a\": NaN}')\n"))
            .unwrap()
            .script("demo.nothing", &script("nothing.py", "print('null')\n"))
            .unwrap();
        let service = service.start().await.unwrap();
        // As Python writes what JSON has not.
        let error = call("demo.nan").await.error.unwrap();
        assert!(
            error
                .message
                .contains("it is no JSON: expected value at line 1"),
            "{}",
            error.message
        );
        let nothing = call("demo.nothing").await;
        assert_eq!(nothing.data.unwrap().text(), "{}");
        ground.goes_on(service).await;

        // Its own service: on a busy machine no other script has ended in so short a time.
        let slow = script("slow.py", "import time\ntime.sleep(1000)\n");
        let service = ground.service().timeout(Duration::from_secs(1));
        let service = service.script("demo.slow", &slow).unwrap();
        let service = service.start().await.unwrap();
        let error = call("demo.slow").await.error.unwrap();
        assert_eq!(error.error_code.as_deref(), Some("HANDLER_TIMEOUT"));
        ground.goes_on(service).await;
    }
}
