//! A tenant who writes plain messages in a context of his own: he ends no message of others, forges no result, reads no
//! results of others, and acts in nobody else's name.

use std::collections::BTreeMap;

use meshwork::context::{Coordinator, Identity, NewMessage, new_key};
use meshwork_model::access::Role;
use meshwork_model::context::{MessageType, Unsigned};
use meshwork_model::keys::context::{ContextId, MessageKey};

use super::world::World;

/// Seconds since 1970 at the start of a world.
const NOW: &str = "1700000000";

/// The hash of a message.
type Record = BTreeMap<String, String>;

/// A tenant with the context 9, who is a reader of 7 and 8.
async fn tenant(world: &World) -> Identity {
    let key = new_key();
    let id = world.node.trust(key.public(), None).await.unwrap().id;
    let bob = world.node.identify(key).await.unwrap();
    let made = world
        .node
        .create_context(&bob, ContextId::new(9), Some(world.layout()));
    made.await.unwrap();
    for context in [7, 8] {
        let context = world.context(context).await;
        context.grant(&world.me, Role::Reader, id).await.unwrap();
        context
            .set_unsigned(&world.me, Unsigned::Accept)
            .await
            .unwrap();
    }
    bob
}

async fn record(world: &World, context: u32, key: &str) -> Record {
    world.plain(context, &["HGETALL", key]).await
}

/// Writes a message in a context, and pushes it.
async fn write(world: &World, context: u32, list: &str, key: &str, fields: &[(&str, &str)]) {
    let fields = fields.iter().flat_map(|(field, value)| [*field, *value]);
    let set: Vec<_> = ["HSET", key, "created_at", NOW]
        .into_iter()
        .chain(fields)
        .collect();
    world.plain::<i64>(context, &set).await;
    let element = world.key(context, key);
    world
        .plain::<i64>(context, &["LPUSH", list, &element])
        .await;
}

/// Jobs of a result, as a message has them.
fn forged(status: &str) -> String {
    format!(
        r#"[{{"id":1,"caller_id":1,"context_id":7,"script":"","script_type":"v","status":"{status}","result":{{"result":"FORGED"}}}}]"#
    )
}

/// Texts of all messages of a context.
async fn texts(world: &World, context: u32) -> String {
    let keys: Vec<String> = world.plain(context, &["KEYS", "message:*"]).await;
    let mut all = String::new();
    for key in keys {
        all += &world.field(context, &key, "job").await;
    }
    all
}

#[tokio::test]
async fn a_result_comes_from_the_context_to_which_the_message_went() {
    for world in World::everywhere().await {
        let bob = tenant(&world).await;
        let coordinator = Coordinator::new(&world.node).await.unwrap();
        world.send_job().await;
        world.settle(&coordinator).await;
        let before = record(&world, 7, "message:1:1").await;
        assert_eq!(before["status"], "acknowledged");
        let mut number = 100;
        for caller in ["1", "2"] {
            for (kind, status) in [
                ("chat", "dispatched"),
                ("mail", "processed"),
                ("job", "processed"),
                ("job", "error"),
                ("result", "dispatched"),
            ] {
                number += 1;
                let (key, job) = (format!("message:{caller}:{number}"), forged("finished"));
                let fields = [
                    ("message_type", kind),
                    ("status", status),
                    ("target_context", "7"),
                    ("mw_re", "1:1"),
                    ("job", &job),
                ];
                write(&world, 9, "msg_out", &key, &fields).await;
            }
        }
        world.settle(&coordinator).await;
        assert_eq!(record(&world, 7, "message:1:1").await, before);

        // In a signed message, the answered message is signed too.
        let chat = NewMessage::new(ContextId::new(7).unwrap(), MessageType::Chat);
        let sent = world
            .context(9)
            .await
            .send(&bob, &chat)
            .await
            .unwrap()
            .key();
        let sent = sent.to_string();
        world
            .plain::<i64>(9, &["HSET", &sent, "mw_re", "1:1"])
            .await;
        world.settle(&coordinator).await;
        let log = world.field(9, &sent, "logs").await;
        assert!(log.contains("tampered: `mw_re`"), "{log}");
        assert_eq!(record(&world, 7, "message:1:1").await, before);

        world.run_job().await;
        world.pass(1_000);
        world.settle(&coordinator).await;
        let after = record(&world, 7, "message:1:1").await;
        assert_eq!(after["status"], "processed");
        let result = world.field(7, &after["mw_result"], "job").await;
        assert!(
            result.contains("rows") && !result.contains("FORGED"),
            "{result}"
        );
    }
}

#[tokio::test]
async fn the_first_result_counts_and_changes_nothing_after_the_end() {
    for world in World::everywhere().await {
        let coordinator = Coordinator::new(&world.node).await.unwrap();
        world.send_job().await;
        world.settle(&coordinator).await;
        world.run_job().await;
        world.pass(1_000);
        world.settle(&coordinator).await;
        let more = async |re: &str, from: u32| {
            for number in from..from + 3 {
                let (key, job) = (format!("message:1:{number}"), forged("finished"));
                let fields = [
                    ("message_type", "job"),
                    ("status", "processed"),
                    ("target_context", "7"),
                    ("mw_re", re),
                    ("job", &job),
                ];
                write(&world, 8, "msg_out", &key, &fields).await;
            }
            world.settle(&coordinator).await;
        };
        let before = record(&world, 7, "message:1:1").await;
        more("1:1", 100).await;
        assert_eq!(record(&world, 7, "message:1:1").await, before);
        assert_eq!(world.list(7, "msg_in").await.len(), 1);
        let log = world.field(8, "message:1:100", "logs").await;
        assert!(log.contains("has its result already"), "{log}");

        // A timeout ends the next message: one late result is delivered, and the message stays as it is.
        let late = world.send_job().await;
        coordinator.step(&world.context(7).await).await.unwrap();
        world.plain::<i64>(8, &["DEL", "msg_in:8"]).await;
        world.pass(86_402_000);
        world.settle(&coordinator).await;
        let before = record(&world, 7, &late.to_string()).await;
        assert_eq!(before["status"], "error");
        more(&late.numbers(), 200).await;
        assert_eq!(record(&world, 7, &late.to_string()).await, before);
        assert_eq!(world.list(7, "msg_in").await.len(), 2);
    }
}

#[tokio::test]
async fn a_claimed_origin_changes_no_status() {
    for world in World::everywhere().await {
        let bob = tenant(&world).await;
        let coordinator = Coordinator::new(&world.node).await.unwrap();
        world.send_job().await;
        let chat = world.send_text("hello").await.to_string();
        for step in 0..2 {
            let before = [
                record(&world, 7, "message:1:1").await,
                record(&world, 7, &chat).await,
            ];
            let node = world.node.identity().await.unwrap();
            for (at, key) in ["message:1:1", &chat].into_iter().enumerate() {
                // The nonce is in the record, which a reader may read.
                let nonce = world.field(7, key, "mw_nonce").await;
                let numbers = key.trim_start_matches("message:");
                let origin = format!("{node}/7/{numbers}/{nonce}");
                let job = r#"[{"id":9,"caller_id":2,"script":"1","script_type":"v"}]"#;
                for (number, (list, kind, jobs)) in [
                    ("msg_in:9", "job", "[]"),
                    ("msg_in:9", "job", job),
                    ("msg_in", "chat", "[]"),
                ]
                .into_iter()
                .enumerate()
                {
                    let key = format!("message:2:{}", 100 * step + 10 * at + number + 100);
                    let fields = [
                        ("message_type", kind),
                        ("job", jobs),
                        ("mw_origin", &*origin),
                    ];
                    write(&world, 9, list, &key, &fields).await;
                }
            }
            let nine = world.context(9).await;
            for _ in 0..3 {
                coordinator.step(&nine).await.unwrap();
            }
            let read = nine.read_inbox(&bob, coordinator.transport(), 100).await;
            assert_eq!(read.unwrap().len(), 2);
            let after = [
                record(&world, 7, "message:1:1").await,
                record(&world, 7, &chat).await,
            ];
            assert_eq!(after, before, "step {step}");
            world.settle(&coordinator).await;
        }
        let status = world.field(7, "message:1:1", "status").await;
        assert_eq!(status, "acknowledged");
    }
}

#[tokio::test]
async fn an_answer_has_no_jobs_of_other_contexts() {
    for world in World::everywhere().await {
        let bob = tenant(&world).await;
        let coordinator = Coordinator::new(&world.node).await.unwrap();
        world.send_job().await;
        world.settle(&coordinator).await;
        world.run_job().await;
        let node = world.node.identity().await.unwrap();
        let origin = format!("{node}/9/2:500/{}", "0a".repeat(16));
        let fields = [
            ("message_type", "job"),
            ("status", "acknowledged"),
            (
                "job",
                r#"[{"id":1,"caller_id":2,"script":"1","script_type":"v"}]"#,
            ),
            ("mw_jobs", r#"["{ctx:8}:job:1:1"]"#),
            ("mw_origin", &origin),
        ];
        write(&world, 9, "ignored", "message:2:500", &fields).await;
        let element = world.key(9, "message:2:500");
        world
            .plain::<i64>(9, &["ZADD", "mw:open", "1", &element])
            .await;
        world.settle(&coordinator).await;
        let texts = texts(&world, 9).await;
        assert!(!texts.contains("rows"), "{texts}");
        let view = world
            .context(9)
            .await
            .message(&bob, MessageKey::new(2, 500))
            .await;
        assert_eq!(view.unwrap().message.key().id, 500);
    }
}

/// Sends an unsigned job message of `caller` from one context to another. Returns its status, and its log.
async fn unsigned(
    world: &World,
    from: u32,
    to: Option<&str>,
    caller: u32,
    id: u32,
) -> (String, String) {
    let coordinator = Coordinator::new(&world.node).await.unwrap();
    let (key, job) = (
        format!("message:{caller}:{id}"),
        format!(r#"[{{"id":{id},"caller_id":{caller},"script":"1","script_type":"v"}}]"#),
    );
    let fields = [("message_type", "job"), ("job", &*job)];
    let to = to.map(|to| ("target_context", to));
    let fields: Vec<_> = fields.into_iter().chain(to).collect();
    write(world, from, "msg_out", &key, &fields).await;
    world.settle(&coordinator).await;
    (
        world.field(from, &key, "status").await,
        world.field(from, &key, "logs").await,
    )
}

#[tokio::test]
async fn an_unsigned_message_acts_in_its_own_context_alone() {
    for world in World::everywhere().await {
        let bob = tenant(&world).await;
        let (eight, nine) = (world.context(8).await, world.context(9).await);
        let set = async |rule| eight.set_unsigned(&world.me, rule).await.unwrap();
        let is_refused = async |caller, id, why: &str| {
            let (status, log) = unsigned(&world, 9, Some("8"), caller, id).await;
            assert_eq!(status, "error", "{log}");
            assert!(log.contains(why), "{why}: {log}");
            assert!(world.list(8, "queue:v").await.is_empty());
        };
        set(Unsigned::Own).await;
        is_refused(1, 101, "unsigned: own").await;
        set(Unsigned::Accept).await;
        is_refused(
            1,
            102,
            "actor 1 may not create the job message in context 9",
        )
        .await;
        is_refused(
            2,
            103,
            "actor 2 may not create the job message in context 8",
        )
        .await;
        eight.grant(&world.me, Role::Admin, bob.id()).await.unwrap();
        let (status, log) = unsigned(&world, 9, Some("8"), 2, 104).await;
        assert_eq!(status, "acknowledged", "{log}");
        assert_eq!(world.run_job().await, world.key(8, "job:2:104"));
        let trail = eight.audit(&world.me, None, 100).await.unwrap();
        let entry = trail.iter().rfind(|entry| entry.what == "receive").unwrap();
        assert_eq!(entry.who, "actor 2 (unsigned, context 9)");
        set(Unsigned::Refuse).await;
        is_refused(2, 105, "unsigned: refuse").await;
        nine.revoke(&bob, Role::Executor, bob.id()).await.unwrap();
    }
}

#[tokio::test]
async fn a_plain_client_and_a_plain_runner_share_a_context() {
    for world in World::everywhere().await {
        for (to, id) in [(None, 101), (Some("8"), 102)] {
            let (status, log) = unsigned(&world, 8, to, 1, id).await;
            assert_eq!(status, "acknowledged", "{log}");
            let job = world.run_job().await;
            assert_eq!(job, world.key(8, &format!("job:1:{id}")));
            world.pass(1_000);
            let coordinator = Coordinator::new(&world.node).await.unwrap();
            world.settle(&coordinator).await;
            let key = format!("message:1:{id}");
            assert_eq!(world.field(8, &key, "status").await, "processed");
            let result = world.field(8, &key, "mw_result").await;
            let result = world.field(8, &result, "job").await;
            assert!(result.contains("rows"), "{result}");
        }
        // Pushed directly to the list of job messages, as another part of the same program may do.
        let fields = [
            ("message_type", "job"),
            (
                "job",
                r#"{"id":103,"caller_id":1,"script":"1","script_type":"v"}"#,
            ),
        ];
        write(&world, 8, "msg_in:8", "message:1:103", &fields).await;
        let coordinator = Coordinator::new(&world.node).await.unwrap();
        world.settle(&coordinator).await;
        assert_eq!(world.run_job().await, world.key(8, "job:1:103"));
    }
}
