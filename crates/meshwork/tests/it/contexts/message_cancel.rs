//! Cancelled messages, inside the node and between nodes: the target decides, and nothing runs after its answer.

use meshwork::context::{ContextError, Coordinator, MessageView};
use meshwork_model::context::MessageStatus;
use meshwork_model::keys::context::MessageKey;

use super::two_nodes::{Fate, Pair, Side, arrives};
use super::world::World;

fn key_of(text: &str) -> MessageKey {
    MessageKey::of_numbers(text.strip_prefix("message:").unwrap()).unwrap()
}

async fn cancel(world: &World, key: &str) -> Result<MessageView, ContextError> {
    let seven = world.context(7).await;
    seven.cancel_message(&world.me, key_of(key)).await
}

/// Status and reason of a message of context 7.
async fn end(world: &World, key: &str) -> [String; 2] {
    [
        world.of(7, key, "status").await,
        world.of(7, key, "mw_reason").await,
    ]
}

#[tokio::test]
async fn a_message_is_cancelled_before_it_is_delivered_and_before_its_jobs_begin() {
    for world in World::everywhere().await {
        let coordinator = Coordinator::new(&world.node).await.unwrap();
        for is_taken_up in [false, true] {
            let key = world.send_job().await.to_string();
            if is_taken_up {
                world.settle(&coordinator).await;
                assert_eq!(world.of(7, &key, "status").await, "acknowledged");
            }
            cancel(&world, &key).await.unwrap();
            // A second request changes nothing.
            cancel(&world, &key).await.unwrap();
            world.pass(6_000);
            world.settle(&coordinator).await;
            world.pass(6_000);
            world.settle(&coordinator).await;
            assert_eq!(end(&world, &key).await, ["error", "cancelled"]);
            let queue: Vec<String> = world.ask(8, &["LRANGE", "@queue:v", "0", "-1"]).await;
            assert!(queue.is_empty(), "{queue:?}");
            let lists = ["@msg_out", "@msg_out_coordinator"];
            for list in lists {
                assert_eq!(world.ask::<usize>(7, &["LLEN", list]).await, 0, "{list}");
            }
            assert_eq!(world.ask::<usize>(7, &["ZCARD", "@mw:sent"]).await, 0);
            assert_eq!(world.ask::<usize>(8, &["ZCARD", "@mw:open"]).await, 0);
        }
        // The job of the second one, which was stored, has ended.
        assert_eq!(world.of(8, "job:1:2", "status").await, "error");
        assert_eq!(world.of(8, "job:1:1", "status").await, "");
        // A letter that nobody has read is gone from the inbox.
        let letter = world.send_text("a mistake").await.to_string();
        world.settle(&coordinator).await;
        cancel(&world, &letter).await.unwrap();
        world.settle(&coordinator).await;
        assert_eq!(end(&world, &letter).await, ["error", "cancelled"]);
        assert_eq!(world.ask::<usize>(8, &["LLEN", "@msg_in"]).await, 0);
    }
}

#[tokio::test]
async fn a_request_loses_against_an_end() {
    let world = World::over(None).await;
    let coordinator = Coordinator::new(&world.node).await.unwrap();
    // A plain runner ignores it, and ends the job.
    let key = world.send_job().await.to_string();
    world.settle(&coordinator).await;
    let job: String = world.plain(8, &["RPOP", "queue:v"]).await;
    let started = ["HSET", &job, "status", "started"];
    world.plain::<i64>(8, &started).await;
    cancel(&world, &key).await.unwrap();
    world.settle(&coordinator).await;
    assert_eq!(end(&world, &key).await, ["acknowledged", ""]);
    let finished = ["HSET", &job, "status", "finished", "result", "{}"];
    world.plain::<i64>(8, &finished).await;
    world.pass(6_000);
    world.settle(&coordinator).await;
    assert_eq!(end(&world, &key).await, ["processed", ""]);
    // Nothing is left to cancel.
    let ended = cancel(&world, &key).await.unwrap();
    assert_eq!(ended.message.status, MessageStatus::Processed);
    assert!(world.list(7, "msg_out").await.is_empty());
    // Whoever received a message cannot cancel it.
    let eight = world.context(8).await;
    let received = eight.cancel_message(&world.me, key_of(&key)).await;
    assert!(
        matches!(received, Err(ContextError::MessageReceived { .. })),
        "{received:?}"
    );
    let none = cancel(&world, "message:1:99").await;
    assert!(
        matches!(none, Err(ContextError::NoMessage { .. })),
        "{none:?}"
    );
}

/// The jobs of the receiver that may still run.
async fn open_jobs(side: &Side) -> Vec<String> {
    let jobs: Vec<String> = side.world.plain(8, &["KEYS", "job:*"]).await;
    let mut open = Vec::new();
    for job in jobs {
        if side.world.field(8, &job, "status").await != "error" {
            open.push(job);
        }
    }
    open
}

#[tokio::test]
async fn a_message_to_another_node_is_cancelled_whichever_frame_is_lost_or_repeated() {
    for fate in [Fate::Lost, Fate::Doubled] {
        for hit in 0..6 {
            for steps in [0, 1, 2, 5] {
                let mut pair = Pair::new().await;
                let key = pair.send().await;
                let of = |at: usize| match at == hit {
                    true => fate,
                    false => Fate::Arrives,
                };
                for _ in 0..steps {
                    pair.step(of).await;
                }
                cancel(&pair.here.world, &key).await.unwrap();
                let mut status = String::new();
                for _ in 0..200 {
                    pair.step(of).await;
                    status = pair.here.message(&key).await["status"].clone();
                    if status == "error" {
                        break;
                    }
                }
                let case = format!("{fate:?} {hit} after {steps} steps");
                assert_eq!(status, "error", "{case}");
                let reason = pair.here.message(&key).await["mw_reason"].clone();
                assert_eq!(reason, "cancelled", "{case}");
                assert!(open_jobs(&pair.there).await.is_empty(), "{case}");
            }
        }
    }
}

#[tokio::test]
async fn a_request_overtakes_its_message() {
    let mut pair = Pair::new().await;
    pair.step(arrives).await;
    let key = pair.send().await;
    pair.here.settle().await;
    pair.here.exchange.wake();
    pair.mono += 1_000;
    let late = pair.here.exchange.outbound(pair.mono).await.unwrap();
    let [frame] = &late[..] else {
        panic!("{late:?}");
    };
    cancel(&pair.here.world, &key).await.unwrap();
    for _ in 0..3 {
        pair.step(arrives).await;
    }
    assert_eq!(pair.here.message(&key).await["mw_reason"], "cancelled");
    let (daemon, mono) = (pair.here.daemon, pair.mono);
    let taken = pair.there.exchange.receive(daemon, &frame.bytes, mono);
    taken.await.unwrap();
    for _ in 0..3 {
        pair.step(arrives).await;
    }
    let there = &pair.there.world;
    let stored: Vec<String> = there.plain(8, &["KEYS", "message:*"]).await;
    assert!(stored.is_empty(), "{stored:?}");
    assert!(open_jobs(&pair.there).await.is_empty());
    // The request counts as a message of its node while it is remembered.
    let held = format!("mw:peer-in:{}", pair.here.id);
    assert_eq!(there.plain::<usize>(0, &["ZCARD", &held]).await, 1);
    let origins: Vec<String> = there.plain(8, &["KEYS", "mw:origin:*"]).await;
    let lasts: i64 = there.plain(8, &["PTTL", &origins[0]]).await;
    assert!((1..=11 * 60_000).contains(&lasts), "{lasts}");
}

#[tokio::test]
async fn only_its_own_node_cancels_a_message() {
    let mut pair = Pair::new().await;
    let key = pair.send().await;
    for _ in 0..5 {
        pair.step(arrives).await;
    }
    assert_eq!(pair.here.message(&key).await["status"], "acknowledged");
    let record = pair.here.message(&key).await;
    let of = meshwork_model::mesh::SentFrom {
        context: meshwork_model::keys::context::ContextId::new(7).unwrap(),
        message: key_of(&key),
        nonce: meshwork_model::envelope::Nonce::from_text(&record["mw_nonce"]).unwrap(),
    };
    let carol = Box::pin(Side::new(3)).await;
    pair.there.trust(&carol, "carol").await;
    let frame = meshwork_model::mesh::Frame {
        dst: pair.there.id,
        src: carol.id,
        sent_ms: pair.there.world.node.store().now().await.unwrap(),
        items: vec![meshwork_model::mesh::Item::Cancel {
            of,
            at: meshwork_model::keys::context::ContextId::new(8).unwrap(),
        }],
    };
    pair.mono += 3_000;
    let bytes = frame.seal(&carol.key).unwrap();
    let (daemon, mono) = (carol.daemon, pair.mono);
    let taken = pair.there.exchange.receive(daemon, &bytes, mono);
    taken.await.unwrap();
    let record = pair.until_ended(&key, arrives).await;
    assert_eq!(record["status"], "processed", "{record:?}");
}
