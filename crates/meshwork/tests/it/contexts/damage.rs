//! Damaged keys and records: each delays no other message, and a message that cannot be handled ends with a reason.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use meshwork::context::{Coordinator, Serves};
use meshwork_model::keys::context::MessageKey;
use meshwork_test_servers::eventually;
use tokio_util::sync::CancellationToken;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::set_default;
use tracing::{Event, Level, Metadata, Subscriber};

use super::world::World;

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Status and last log text of a message at its sender.
async fn end(world: &World, context: u32, key: &str) -> (String, String) {
    let logs = world.of(context, key, "logs").await;
    let logs: Vec<serde_json::Value> = serde_json::from_str(&logs).unwrap_or_default();
    let text = logs.last().and_then(|log| log["text"].as_str());
    let status = world.of(context, key, "status").await;
    (status, text.unwrap_or_default().to_owned())
}

/// Runs the next job of context 8 as a plain runner.
async fn run_job(world: &World) -> String {
    let job: String = world.ask(8, &["RPOP", "@queue:v"]).await;
    let ended = ["HSET", &job, "status", "finished", "result", "1"];
    world.ask::<i64>(8, &ended).await;
    job
}

/// Sends a job from 7 to 8, and waits for its result.
async fn trip(world: &World, coordinator: &Coordinator) {
    let key = world.send_job().await.to_string();
    world.settle(coordinator).await;
    run_job(world).await;
    world.pass(6_000);
    world.settle(coordinator).await;
    assert_eq!(world.of(7, &key, "status").await, "processed");
}

#[tokio::test]
async fn no_damaged_key_of_a_context_delays_others() {
    let keys = [
        "msg_out",
        "msg_out_coordinator",
        "mw:outbound",
        "mw:sent",
        "msg_in",
        "msg_in:9",
        "mw:open",
        "mw:audit",
        "mw:id:message",
        "mw:id:job",
        "context:9",
        "queue:v",
        "message:1:1",
        "job:1:1",
    ];
    for world in World::everywhere().await {
        world.add_context(9).await;
        let coordinator = Coordinator::new(&world.node).await.unwrap();
        for key in keys {
            let place = format!("@{key}");
            // As a list is damaged, so is a set.
            for wrong in [&["SET", &*place, "x"][..], &["SADD", &*place, "x"]] {
                let message = world.send_jobs(9, 1).await.to_string();
                world.ask::<i64>(9, &["DEL", &place]).await;
                world.ask::<redis::Value>(9, wrong).await;
                for name in ["msg_out", "msg_in", "msg_in:9"] {
                    let list = format!("@{name}");
                    let words = ["TYPE", &*list];
                    let found: String = world.ask(9, &words).await;
                    if ["none", "list"].contains(&&*found) {
                        world.ask::<i64>(9, &["LPUSH", &list, "@message:1:1"]).await;
                    }
                }
                trip(&world, &coordinator).await;
                let status = world.of(7, &message, "status").await;
                assert!(
                    ["error", "acknowledged"].contains(&&*status),
                    "{key}: {status}"
                );
                world.ask::<i64>(9, &["DEL", &place]).await;
                if key == "context:9" {
                    let record = ["HSET", "@context:9", "admins", "[1]"];
                    world.ask::<i64>(9, &record).await;
                }
            }
        }
    }
}

#[tokio::test]
async fn garbage_in_the_record_of_a_target_ends_its_messages_only() {
    for world in World::everywhere().await {
        world.add_context(9).await;
        let coordinator = Coordinator::new(&world.node).await.unwrap();
        let mut ended = Vec::new();
        for _ in 0..6 {
            ended.push(world.send_jobs(9, 1).await.to_string());
        }
        world
            .ask::<i64>(9, &["HSET", "@context:9", "admins", "garbage"])
            .await;
        let other = world.send_jobs(8, 1).await.to_string();
        world.settle(&coordinator).await;
        assert_eq!(world.of(7, &other, "status").await, "acknowledged");
        for key in ended {
            let (status, why) = end(&world, 7, &key).await;
            assert_eq!(status, "error");
            assert!(why.contains("`admins`"), "{why}");
        }
    }
}

#[tokio::test]
async fn a_key_of_another_type_is_left_out_of_lists() {
    for world in World::everywhere().await {
        world.ask::<()>(7, &["SET", "@message:1:900", "x"]).await;
        world.ask::<()>(7, &["SET", "@runner:900", "x"]).await;
        let key = world.send_job().await;
        let seven = world.context(7).await;
        let messages = seven.messages(&world.me).await.unwrap();
        let keys: Vec<_> = messages.iter().map(|view| view.message.key()).collect();
        assert_eq!(keys, [key]);
        assert!(seven.runners(&world.me).await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn garbage_in_the_registry_hides_one_context() {
    for world in World::everywhere().await {
        let coordinator = Coordinator::new(&world.node).await.unwrap();
        let garbage = ["HSET", "mw:contexts", "56", "garbage"];
        world.plain::<i64>(0, &garbage).await;
        trip(&world, &coordinator).await;
    }
}

#[tokio::test]
async fn a_job_of_another_type_ends_its_message_only() {
    for world in World::everywhere().await {
        let coordinator = Coordinator::new(&world.node).await.unwrap();
        let damaged = world.send_job().await.to_string();
        let other = world.send_job().await.to_string();
        world.settle(&coordinator).await;
        let job = run_job(&world).await;
        world.ask::<()>(8, &["SET", &job, "x"]).await;
        run_job(&world).await;
        world.pass(6_000);
        world.settle(&coordinator).await;
        assert_eq!(world.of(7, &other, "status").await, "processed");
        assert_eq!(world.of(7, &damaged, "status").await, "error");
    }
}

#[tokio::test]
async fn a_message_that_cannot_be_read_ends_with_a_reason() {
    for world in World::everywhere().await {
        let (seven, eight) = (world.context(7).await, world.context(8).await);
        let coordinator = Coordinator::new(&world.node).await.unwrap();
        let key = |key: MessageKey| (key.to_string(), format!("@{key}"));
        // Before it is sent.
        let (unsent, record) = key(world.send_job().await);
        world
            .ask::<i64>(7, &["HSET", &record, "timeout", "soon"])
            .await;
        let (long, record) = key(world.send_job().await);
        let text = "x".repeat(600_000);
        world
            .ask::<i64>(7, &["HSET", &record, "message", &text])
            .await;
        world.settle(&coordinator).await;
        let (status, why) = end(&world, 7, &unsent).await;
        assert_eq!(status, "error");
        assert!(why.contains("`timeout`"), "{why}");
        let (status, why) = end(&world, 7, &long).await;
        assert_eq!(status, "error");
        assert!(why.contains("600000 bytes"), "{why}");
        // While it waits to be taken up, and while its jobs run.
        let (waits, _) = key(world.send_job().await);
        coordinator.step(&seven).await.unwrap();
        let came: String = world.ask(8, &["LINDEX", "@msg_in:8", "0"]).await;
        world.ask::<i64>(8, &["HSET", &came, "job", "{"]).await;
        let (runs, _) = key(world.send_job().await);
        world.settle(&coordinator).await;
        let (status, why) = end(&world, 7, &waits).await;
        assert_eq!(status, "error");
        assert!(why.contains("`job`"), "{why}");
        let jobs: Vec<String> = world.ask(8, &["ZRANGE", "@mw:open", "0", "-1"]).await;
        let [open] = &jobs[..] else {
            panic!("{jobs:?}")
        };
        world
            .ask::<i64>(8, &["HSET", open, "job", "{", "status", "acknowledged"])
            .await;
        run_job(&world).await;
        world.pass(6_000);
        coordinator.step(&eight).await.unwrap();
        let (status, why) = end(&world, 7, &runs).await;
        assert_eq!(status, "error");
        assert!(why.contains("`job`"), "{why}");
        assert_eq!(world.ask::<usize>(8, &["ZCARD", "@mw:open"]).await, 0);
        // While its sender waits for it.
        let (sent, record) = key(world.send_job().await);
        coordinator.step(&seven).await.unwrap();
        world
            .ask::<i64>(7, &["HSET", &record, "timeout", "soon"])
            .await;
        world.pass(90_000_000);
        coordinator.step(&seven).await.unwrap();
        assert_eq!(end(&world, 7, &sent).await.0, "error");
        let trail = seven.audit(&world.me, None, 50).await.unwrap();
        let ended = trail.iter().filter(|entry| entry.what == "end damaged");
        assert_eq!(ended.count(), 3);
    }
}

#[tokio::test]
async fn a_damaged_context_does_not_slow_the_trips_of_others() {
    for world in World::everywhere().await {
        if !world.has_server() {
            continue;
        }
        world.add_context(9).await;
        world.ask::<()>(9, &["SET", "@msg_out", "x"]).await;
        world.ask::<()>(9, &["SET", "@mw:open", "x"]).await;
        let coordinator = Coordinator::new(&world.node).await.unwrap();
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let serving = tokio::spawn(async move { coordinator.run(&Serves::All, &stopped).await });
        let mut shortest = PATIENCE;
        for _ in 0..8 {
            let began = Instant::now();
            let key = world.send_job().await.to_string();
            eventually("the job is there", PATIENCE, async || {
                (world.ask::<usize>(8, &["LLEN", "@queue:v"]).await == 1).then_some(())
            })
            .await;
            run_job(&world).await;
            world.pass(1_000);
            eventually("the result is back", PATIENCE, async || {
                (world.of(7, &key, "status").await == "processed").then_some(())
            })
            .await;
            shortest = shortest.min(began.elapsed());
        }
        stop.cancel();
        serving.await.unwrap();
        // Such a context added a pause of 1 s to the round trip of each message.
        assert!(shortest < Duration::from_millis(800), "{shortest:?}");
    }
}

/// Counts the failures of messages, and the warnings about them.
#[derive(Clone, Default)]
struct Failures(Arc<[AtomicUsize; 2]>);

impl Failures {
    fn count(&self, is_warning: bool) -> usize {
        self.0[usize::from(is_warning)].load(Ordering::Relaxed)
    }
}

impl Subscriber for Failures {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut seen = IsFailure(false);
        event.record(&mut seen);
        if seen.0 {
            let is_warning = *event.metadata().level() == Level::WARN;
            self.0[usize::from(is_warning)].fetch_add(1, Ordering::Relaxed);
        }
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

struct IsFailure(bool);

impl Visit for IsFailure {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let text = format!("{value:?}");
        self.0 |= field.name() == "message" && text.starts_with("message not handled");
    }
}

#[tokio::test]
async fn a_message_that_a_damaged_key_holds_up_is_tried_rarely_and_logged_once() {
    let world = World::over(None).await;
    let coordinator = Coordinator::new(&world.node).await.unwrap();
    let key = world.send_job().await.to_string();
    world.settle(&coordinator).await;
    run_job(&world).await;
    let counter = ["SET", "@mw:id:message", "x"];
    world.ask::<()>(8, &counter).await;
    let failures = Failures::default();
    let _counts = set_default(failures.clone());
    tracing::callsite::rebuild_interest_cache();
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    let serving = tokio::spawn(async move { coordinator.run(&Serves::All, &stopped).await });
    let began = Instant::now();
    eventually("the answer has failed eight times", PATIENCE, async || {
        world.pass(6_000);
        (failures.count(false) >= 8).then_some(())
    })
    .await;
    // Pauses of 0.1 s to 1 s.
    assert!(began.elapsed() > Duration::from_secs(4));
    assert_eq!(failures.count(true), 1);
    world.ask::<i64>(8, &["DEL", "@mw:id:message"]).await;
    eventually("the result is back", PATIENCE, async || {
        world.pass(6_000);
        (world.of(7, &key, "status").await == "processed").then_some(())
    })
    .await;
    stop.cancel();
    serving.await.unwrap();
}
