//! Log lines about outages, with a manual clock.

use std::io;
use std::sync::Arc;

use tracing::field::{Field, Visit};
use tracing::span;
use tracing::{Event, Level, Metadata, Subscriber};

use super::*;

/// Collects the lines from `warn` on.
#[derive(Debug, Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

#[derive(Default)]
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0 += &format!("{field}={value:?} ");
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut text = Text::default();
        event.record(&mut text);
        self.0.lock().unwrap().push(text.0);
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

fn broken() -> Error {
    Error::connect(io::Error::from(io::ErrorKind::ConnectionRefused).into())
}

fn full() -> Error {
    let answer = redis::parse_redis_value(b"-OOM no memory left\r\n").unwrap();
    let source = answer.extract_error().unwrap_err();
    Error::Call { verb: "x", source }
}

/// Loops with a manual clock.
struct Loops {
    outages: Outages,
    now: Instant,
}

impl Loops {
    fn failed(&self, operation: &'static str, error: &Error) {
        self.outages.failed_at(self.now, operation, error);
    }

    fn succeeded(&self, operation: &'static str) {
        self.outages.succeeded_at(self.now, operation);
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
    }
}

fn logged(what: impl FnOnce(&mut Loops)) -> Vec<String> {
    let lines = Lines::default();
    let mut loops = Loops {
        outages: Outages::default(),
        now: Instant::now(),
    };
    tracing::subscriber::with_default(lines.clone(), || what(&mut loops));
    lines.all()
}

#[test]
fn many_failures_are_one_line_and_the_recovery_another_with_their_count() {
    let lines = logged(|loops| {
        for _ in 0..300 {
            loops.failed("claim", &broken());
            loops.pass(Duration::from_millis(100));
        }
        loops.succeeded("claim");
        loops.pass(SETTLED);
        loops.succeeded("claim");
        loops.succeeded("claim");
    });
    assert_eq!(lines.len(), 2, "{lines:#?}");
    assert!(
        lines[0].contains("server call failed; retrying"),
        "{lines:#?}"
    );
    assert!(lines[0].contains("operation=\"claim\""), "{lines:#?}");
    assert!(lines[1].contains("server calls recovered"), "{lines:#?}");
    assert!(
        lines[1].contains("errors=300 ") && lines[1].contains("seconds=29.9"),
        "{lines:#?}"
    );
}

#[test]
fn another_kind_of_error_is_another_line_and_its_return_is_none() {
    let lines = logged(|loops| {
        for _ in 0..50 {
            loops.failed("claim", &broken());
            loops.failed("claim", &full());
        }
    });
    assert_eq!(lines.len(), 2, "{lines:#?}");
    assert!(lines[1].contains("memory is full"), "{lines:#?}");
}

#[test]
fn loops_that_meet_the_same_share_a_line_and_the_last_of_them_ends_it() {
    let lines = logged(|loops| {
        for operation in ["claim", "renew", "wait"] {
            loops.failed(operation, &broken());
        }
        loops.pass(SETTLED);
        loops.succeeded("claim");
        loops.succeeded("renew");
        loops.succeeded("claim");
        loops.failed("wait", &broken());
        loops.pass(SETTLED);
        loops.succeeded("renew");
    });
    assert_eq!(lines.len(), 1, "{lines:#?}");
}

#[test]
fn an_outage_that_goes_on_is_told_of_once_a_minute() {
    let lines = logged(|loops| {
        for _ in 0..=600 {
            loops.failed("claim", &broken());
            loops.pass(Duration::from_secs(1));
        }
    });
    assert_eq!(lines.len(), 1 + 10, "{lines:#?}");
    assert!(
        lines[1].contains("server calls still failing") && lines[1].contains("errors=61 "),
        "{lines:#?}"
    );
}

#[test]
fn a_server_that_comes_and_goes_is_one_outage() {
    let lines = logged(|loops| {
        for _ in 0..100 {
            loops.failed("claim", &broken());
            loops.pass(SETTLED / 2);
            loops.succeeded("claim");
        }
    });
    assert_eq!(
        lines.len(),
        1 + 1,
        "the first, and a minute later the count: {lines:#?}"
    );
}

#[test]
fn a_loop_that_ended_holds_no_outage_open() {
    let lines = logged(|loops| {
        loops.failed("report", &broken());
        loops.pass(SILENT);
        loops.succeeded("claim");
    });
    assert_eq!(lines.len(), 2, "{lines:#?}");
}

#[test]
fn more_kinds_than_are_told_apart_are_told_of_together() {
    let lines = logged(|loops| {
        for number in 0..1000 {
            let error = Error::WrongType {
                verb: "x",
                key: number.to_string(),
            };
            loops.failed("claim", &error);
        }
    });
    assert_eq!(lines.len(), MOST + 1, "{lines:#?}");
}

#[test]
fn who_never_failed_is_told_nothing() {
    let lines = logged(|loops| {
        loops.succeeded("claim");
    });
    assert!(lines.is_empty(), "{lines:#?}");
}

#[test]
fn a_call_that_fails_beside_others_that_succeed_is_no_end_of_lines() {
    let lines = logged(|loops| {
        for _ in 0..60 {
            loops.failed("trim", &full());
            loops.succeeded("trim");
            for _ in 0..10 {
                loops.pass(Duration::from_secs(1));
                loops.succeeded("claim");
            }
        }
    });
    assert!(lines.len() <= 4 + 10, "ten minutes: {lines:#?}");
}

#[test]
fn the_next_outage_is_told_of_anew() {
    let lines = logged(|loops| {
        for _ in 0..3 {
            loops.failed("claim", &broken());
            loops.pass(SETTLED);
            loops.succeeded("claim");
            loops.pass(AGAIN);
        }
    });
    assert_eq!(lines.len(), 6, "{lines:#?}");
}
