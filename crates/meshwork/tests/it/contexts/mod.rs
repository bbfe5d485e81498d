//! Messages between contexts: each is stored once, whatever fails in between, and nothing is taken that was changed.

mod cluster;
mod cluster_flows;
mod cluster_messages;
mod damage;
mod flow_messages;
mod jobs;
mod lifetime;
mod many;
mod mesh_damage;
#[cfg(feature = "mesh")]
mod mesh_limits;
mod message_cancel;
#[cfg(feature = "mesh")]
mod node_floods;
mod node_noise;
mod node_refusals;
mod node_trust;
mod objects;
mod pool;
mod replay;
mod reports;
mod trust;
#[cfg(feature = "mesh")]
mod two_nodes;
mod world;

use std::collections::BTreeSet;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use meshwork::context::{ContextError, Coordinator, NewMessage, Serves, StoreTransport, new_key};
use meshwork_broker::Broker;
use meshwork_model::context::{MessageStatus, MessageType};
use meshwork_model::keys::context::MessageKey;
use meshwork_model::keys::hero::JobKeys;
use meshwork_test_servers::eventually;
use tokio_util::sync::CancellationToken;

use world::{Fails, Faulty, LEASE_MS, World};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::test]
async fn each_step_of_a_job_message_can_be_read_with_plain_commands() {
    for world in World::all().await {
        let (seven, eight) = (world.context(7).await, world.context(8).await);
        let coordinator = Coordinator::new(&world.node).await.unwrap();
        world.send_job().await;
        assert_eq!(world.list(7, "msg_out").await, ["message:1:1"]);
        assert_eq!(world.field(7, "message:1:1", "status").await, "dispatched");
        coordinator.step(&seven).await.unwrap();
        assert!(world.list(7, "msg_out").await.is_empty());
        assert!(world.list(7, "msg_out_coordinator").await.is_empty());
        assert_eq!(world.list(8, "msg_in:8").await, ["message:1:1"]);
        assert_eq!(world.field(8, "message:1:1", "context_id").await, "8");
        coordinator.step(&eight).await.unwrap();
        assert!(world.list(8, "msg_in:8").await.is_empty());
        assert_eq!(world.list(8, "queue:v").await, ["job:1:1"]);
        assert_eq!(world.field(8, "job:1:1", "status").await, "dispatched");
        assert_eq!(world.field(8, "job:1:1", "script").await, "1");
        assert_eq!(
            world.field(7, "message:1:1", "status").await,
            "acknowledged"
        );
        assert_eq!(world.run_job().await, "job:1:1");
        world.pass(1_000);
        coordinator.step(&eight).await.unwrap();
        world.settle(&coordinator).await;
        assert_eq!(world.field(8, "message:1:1", "status").await, "processed");
        assert_eq!(world.field(7, "message:1:1", "status").await, "processed");
        let inbox = world.list(7, "msg_in").await;
        assert_eq!(inbox.len(), 1);
        assert_eq!(world.field(7, &inbox[0], "mw_re").await, "1:1");
        assert!(
            world
                .field(7, &inbox[0], "job")
                .await
                .contains(r#""result":{"rows":"5"}"#)
        );
        let popped: String = world.plain(7, &["RPOP", "msg_in"]).await;
        assert_eq!(popped, inbox[0]);
    }
}

#[tokio::test]
async fn an_idle_coordinator_waits_for_messages_and_leaves_them_in_the_list() {
    for world in World::all().await {
        let coordinator = Coordinator::new(&world.node).await.unwrap();
        let broker = Broker::new(world.conn.clone(), JobKeys::default());
        let conn = broker.blocking_conn().await.unwrap();
        let wait = |time| broker.wait_for_element(&conn, "letters", time);
        assert!(!wait(Duration::from_millis(10)).await.unwrap());
        world
            .plain::<i64>(0, &["LPUSH", "letters", "a", "b", "c"])
            .await;
        assert!(wait(PATIENCE).await.unwrap());
        assert_eq!(world.list(0, "letters").await, ["c", "b", "a"]);
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let serving = tokio::spawn(async move { coordinator.run(&Serves::All, &stopped).await });
        if world.has_server() {
            eventually("a wait in each context", PATIENCE, async || {
                let clients: String = world.plain(0, &["CLIENT", "LIST"]).await;
                let waits = clients.lines().filter(|line| line.contains("flags=b"));
                (waits.count() == 2).then_some(())
            })
            .await;
        }
        world.send_job().await;
        eventually("the job is there", PATIENCE, async || {
            (world.list(8, "queue:v").await == ["job:1:1"]).then_some(())
        })
        .await;
        world.run_job().await;
        world.pass(1_000);
        eventually("the result is back", PATIENCE, async || {
            (world.list(7, "msg_in").await.len() == 1).then_some(())
        })
        .await;
        stop.cancel();
        serving.await.unwrap();
    }
}

#[tokio::test]
async fn a_message_is_stored_once_whenever_its_coordinator_is_killed() {
    for fails in [Fails::Before, Fails::After] {
        for world in World::all().await {
            let faulty = Faulty {
                inner: StoreTransport::new(&world.node).await.unwrap(),
                fails,
                left: AtomicUsize::new(2),
            };
            let coordinator = Coordinator::over(&world.node, faulty).await.unwrap();
            world.send_job().await;
            let seven = world.context(7).await;
            for _ in 0..2 {
                assert!(coordinator.step(&seven).await.is_err());
                assert_eq!(
                    world.list(7, "msg_out_coordinator").await,
                    ["message:1:1"],
                    "it is under a lease"
                );
                world.pass(LEASE_MS);
            }
            world.settle(&coordinator).await;
            assert!(world.list(7, "msg_out_coordinator").await.is_empty());
            assert_eq!(world.list(8, "queue:v").await, ["job:1:1"], "{fails:?}");
            let keys: Vec<String> = world.plain(8, &["KEYS", "message:*"]).await;
            assert_eq!(keys, ["message:1:1"]);
        }
    }
}

#[tokio::test]
async fn two_coordinators_do_each_thing_once() {
    for world in World::all().await {
        const MANY: usize = 60;
        for _ in 0..MANY {
            world.send_job().await;
        }
        let (one, other) = (
            Coordinator::new(&world.node).await.unwrap(),
            Coordinator::new(&world.node).await.unwrap(),
        );
        let both = async || {
            let (one, other) = tokio::join!(one.settle(), other.settle());
            one.and(other).unwrap();
        };
        Box::pin(both()).await;
        let mut ran = BTreeSet::new();
        while world.plain::<usize>(8, &["LLEN", "queue:v"]).await > 0 {
            assert!(ran.insert(world.run_job().await), "a job is queued once");
        }
        assert_eq!(ran.len(), MANY);
        world.pass(1_000);
        Box::pin(both()).await;
        let answered: BTreeSet<String> = {
            let mut answered = BTreeSet::new();
            for message in world.list(7, "msg_in").await {
                assert!(
                    answered.insert(world.field(7, &message, "mw_re").await),
                    "one result each"
                );
            }
            answered
        };
        assert_eq!(answered.len(), MANY);
    }
}

#[tokio::test]
async fn a_key_that_is_taken_is_replaced_and_the_result_speaks_of_the_senders() {
    for world in World::all().await {
        world
            .plain::<i64>(8, &["HSET", "job:1:1", "mine", "1"])
            .await;
        world
            .plain::<i64>(8, &["HSET", "message:1:1", "mine", "1"])
            .await;
        let coordinator = Coordinator::new(&world.node).await.unwrap();
        let key = world.send_job().await;
        world.settle(&coordinator).await;
        let job = world.run_job().await;
        assert_ne!(job, "job:1:1");
        assert_eq!(world.field(8, "job:1:1", "mine").await, "1");
        world.pass(1_000);
        world.settle(&coordinator).await;
        let inbox = world.list(7, "msg_in").await;
        let jobs: serde_json::Value =
            serde_json::from_str(&world.field(7, &inbox[0], "job").await).unwrap();
        assert_eq!(
            (&jobs[0]["id"], &jobs[0]["status"]),
            (&1.into(), &"finished".into())
        );
        let view = world
            .context(7)
            .await
            .message(&world.me, key)
            .await
            .unwrap();
        assert_eq!(view.message.status, MessageStatus::Processed);
    }
}

/// The last entry of a message's log.
async fn last_log(world: &World, key: MessageKey) -> (MessageStatus, String) {
    let view = world
        .context(7)
        .await
        .message(&world.me, key)
        .await
        .unwrap();
    let text = view.message.logs.last().map(|log| log.text.clone());
    (view.message.status, text.unwrap_or_default())
}

#[tokio::test]
async fn what_was_changed_after_signing_is_refused() {
    let world = World::over(None).await;
    let coordinator = Coordinator::new(&world.node).await.unwrap();
    let changes = [
        ("message", "other", "tampered"),
        ("timeout", "7", "tampered"),
        ("message_type", "mail", "tampered"),
        ("envelope", "{}", "malformed"),
        ("target_context", "7", "wrong_context"),
    ];
    for (field, value, code) in changes {
        let key = world.send_text("hello").await;
        let changed = world
            .plain::<i64>(7, &["HSET", &key.to_string(), field, value])
            .await;
        assert_eq!(changed, 0, "the field was there");
        world.settle(&coordinator).await;
        let (status, text) = last_log(&world, key).await;
        assert_eq!(status, MessageStatus::Error, "{field}");
        assert!(text.contains(code), "{field}: {text}");
    }
    // Another message's envelope, and each of many bits of one.
    let (one, other) = (world.send_text("one").await, world.send_text("other").await);
    let envelope = world.field(7, &one.to_string(), "envelope").await;
    world
        .plain::<i64>(7, &["HSET", &other.to_string(), "envelope", &envelope])
        .await;
    world.settle(&coordinator).await;
    assert_eq!(last_log(&world, other).await.0, MessageStatus::Error);
    assert_ne!(last_log(&world, one).await.0, MessageStatus::Error);
    assert_eq!(world.list(8, "msg_in").await.len(), 1);
}

#[tokio::test]
async fn a_revoked_actor_and_one_without_a_role_are_refused_on_the_way() {
    let world = World::over(None).await;
    let coordinator = Coordinator::new(&world.node).await.unwrap();
    let key = new_key();
    let bob = world.node.trust(key.public(), None).await.unwrap().id;
    let role = meshwork_model::access::Role::Admin;
    let eight = world.context(8).await;
    eight
        .grant(&world.me, role, world.me.id())
        .await
        .unwrap_err();
    eight.grant(&world.me, role, bob).await.unwrap();
    // He may when he sends, and may no more when it is delivered.
    let bob = world.node.identify(key).await.unwrap();
    let seven = world.context(7).await;
    seven.grant(&world.me, role, bob.id()).await.unwrap();
    let new = NewMessage::new(eight.id(), MessageType::Chat);
    let sent = seven.send(&bob, &new).await.unwrap().key();
    eight.revoke(&world.me, role, bob.id()).await.unwrap();
    world.settle(&coordinator).await;
    let (status, text) = last_log(&world, sent).await;
    assert_eq!(status, MessageStatus::Error);
    assert!(
        text.contains("actor 2 may not create the chat or mail message in context 8"),
        "{text}"
    );
    eight.grant(&world.me, role, bob.id()).await.unwrap();
    let sent = seven.send(&bob, &new).await.unwrap().key();
    world.node.revoke(bob.id()).await.unwrap();
    world.settle(&coordinator).await;
    let (status, text) = last_log(&world, sent).await;
    assert_eq!(status, MessageStatus::Error);
    assert!(text.contains("revoked_key"), "{text}");
    assert!(matches!(
        seven.send(&bob, &new).await,
        Err(ContextError::Denied(_))
    ));
}

#[tokio::test]
async fn each_timeout_ends_a_message() {
    for world in World::all().await {
        let (seven, eight) = (world.context(7).await, world.context(8).await);
        let coordinator = Coordinator::new(&world.node).await.unwrap();
        // Not stored: nobody serves it until its time is over.
        let unstored = world.send_text("late").await;
        let faulty = Faulty {
            inner: StoreTransport::new(&world.node).await.unwrap(),
            fails: Fails::Before,
            left: AtomicUsize::new(1),
        };
        let stuck = Coordinator::over(&world.node, faulty).await.unwrap();
        assert!(stuck.step(&seven).await.is_err());
        world.pass(3_602_000);
        coordinator.step(&seven).await.unwrap();
        let (status, text) = last_log(&world, unstored).await;
        assert_eq!(status, MessageStatus::Error);
        assert!(text.starts_with("timeout: not stored"), "{text}");
        assert!(
            world.list(8, "msg_in").await.is_empty()
                && world.list(7, "msg_out_coordinator").await.is_empty()
        );
        // Stored, and not taken up.
        let unread = world.send_job().await;
        coordinator.step(&seven).await.unwrap();
        world.pass(7_202_000);
        coordinator.step(&seven).await.unwrap();
        let (status, text) = last_log(&world, unread).await;
        assert_eq!(status, MessageStatus::Error);
        assert!(text.starts_with("timeout_ack: not taken up"), "{text}");
        world.plain::<i64>(8, &["DEL", "msg_in:8"]).await;
        // Taken up, and not processed; the result that comes later is delivered and changes nothing.
        let endless = world.send_job().await;
        coordinator.step(&seven).await.unwrap();
        coordinator.step(&eight).await.unwrap();
        world.pass(86_402_000);
        coordinator.step(&seven).await.unwrap();
        let (status, text) = last_log(&world, endless).await;
        assert_eq!(status, MessageStatus::Error);
        assert!(text.starts_with("timeout_result: not processed"), "{text}");
        world.run_job().await;
        world.settle(&coordinator).await;
        assert_eq!(last_log(&world, endless).await.0, MessageStatus::Error);
        assert_eq!(world.list(7, "msg_in").await.len(), 1);
    }
}

#[tokio::test]
async fn a_key_of_another_kind_holds_up_no_other_message() {
    for world in World::all().await {
        let coordinator = Coordinator::new(&world.node).await.unwrap();
        world.plain::<()>(7, &["SET", "message:1:900", "x"]).await;
        world
            .plain::<i64>(
                7,
                &[
                    "LPUSH",
                    "msg_out",
                    "message:1:900",
                    "job:1:1",
                    "message:1:901",
                ],
            )
            .await;
        world.plain::<()>(8, &["SET", "job:1:1", "x"]).await;
        world
            .plain::<i64>(8, &["LPUSH", "msg_in:8", "context:8", "message:9:9"])
            .await;
        let key = world.send_job().await;
        world.send_text("hello").await;
        world.settle(&coordinator).await;
        assert!(world.list(7, "msg_out").await.is_empty());
        assert!(world.list(7, "msg_out_coordinator").await.is_empty());
        assert!(world.list(8, "msg_in:8").await.is_empty());
        assert_eq!(
            world.list(8, "msg_in").await.len(),
            1,
            "the other message has come"
        );
        assert_eq!(world.field(8, &key.to_string(), "status").await, "error");
        assert_eq!(
            world.field(7, &key.to_string(), "status").await,
            "error",
            "the sender is notified"
        );
    }
}
