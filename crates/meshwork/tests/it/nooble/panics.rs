//! Panics: in a handler before its first step, and in the reader of a message.

use serde_json::{Value, json};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::set_default;
use tracing::{Event, Metadata, Subscriber};

use meshwork::protocol::nooble::ActionContext;

use super::support::{BOUND, Ground, request};

/// A function may panic before there is a future, as what reads its data may.
#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_panics_at_once_is_answered_for() {
    for ground in Ground::both().await {
        let panics = |data: Value, _: ActionContext| {
            assert!(data["n"].is_number(), "it is no number");
            async { Ok::<_, String>(()) }
        };
        let service = ground.service().handle("demo.panic", panics);
        let service = service.start().await.unwrap();
        let call = request("demo.panic", json!({}));
        let answer = ground.tester.call(call, BOUND).await.unwrap();
        let error = answer.error.unwrap();
        assert_eq!(error.error_code.as_deref(), Some("HANDLER_EXECUTION_ERROR"));
        assert!(error.message.contains("panicked"), "{}", error.message);
        assert!(ground.dead().await.is_empty());
        ground.goes_on(service).await;
    }
}

/// Panics at the span of one type of action: a fault in what deals with a message.
struct Faulty;

impl Subscriber for Faulty {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        attributes.record(&mut Finds("\"demo.none\""));
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

struct Finds(&'static str);

impl Visit for Finds {
    fn record_debug(&mut self, _: &Field, value: &dyn std::fmt::Debug) {
        assert_ne!(format!("{value:?}"), self.0);
    }
}

/// The message is not pending for ever, and panics on no other service. (With one thread, since that is where the fault
/// is.)
#[tokio::test]
async fn a_message_that_makes_a_service_panic_is_a_dead_letter() {
    for ground in Ground::both().await {
        let _fault = set_default(Faulty);
        let service = ground.started().await;
        // The first test that reaches a span decides for all whether it is on. So an action reaches it here, before the
        // decision is made anew: no other test can make it later.
        let echo = request("demo.echo", json!({ "n": 7 }));
        ground.tester.call(echo, BOUND).await.unwrap();
        tracing::callsite::rebuild_interest_cache();
        let unhandled = request("demo.none", json!({}));
        ground.tester.send(unhandled).await.unwrap();
        let dead = ground.buried(1).await;
        assert!(dead[0].0.contains("panicked"), "{}", dead[0].0);
        ground.goes_on(service).await;
    }
}
