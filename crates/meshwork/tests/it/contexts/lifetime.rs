//! The end of messages: timeouts before they are delivered and before their jobs begin, circles, and retention.

use meshwork::context::{ContextError, Coordinator, MessageJob, NewMessage, new_key};
use meshwork_model::context::MessageType;
use meshwork_model::keys::context::{ContextId, MessageKey};

use super::world::World;

/// Seconds since 1970 at the start of a world.
const NOW: u32 = 1_700_000_000;
/// A day, in seconds.
const DAY: u32 = 24 * 3600;

/// Writes a plain job message of context 8 with these fields, and pushes it to a list. Returns its key.
async fn write(world: &World, list: &str, id: u32, job: &str, fields: &[(&str, &str)]) -> String {
    let key = format!("message:1:{id}");
    let fields = fields.iter().flat_map(|(field, value)| [*field, *value]);
    let set = ["HSET", &key, "message_type", "job", "job", job];
    let set: Vec<_> = set.into_iter().chain(fields).collect();
    world.plain::<i64>(8, &set).await;
    let element = world.key(8, &key);
    world.plain::<i64>(8, &["LPUSH", list, &element]).await;
    key
}

fn job(id: u32) -> String {
    format!(r#"[{{"id":{id},"caller_id":1,"script":"1","script_type":"v"}}]"#)
}

async fn is_refused(world: &World, key: &str, why: &str) {
    assert_eq!(world.field(8, key, "status").await, "error", "{key}");
    let log = world.field(8, key, "logs").await;
    assert!(log.contains(why), "{key}: {log}");
    assert!(world.list(8, "queue:v").await.is_empty(), "{key}");
}

#[tokio::test]
async fn a_plain_message_that_is_too_old_does_not_run() {
    for world in World::everywhere().await {
        let coordinator = Coordinator::new(&world.node).await.unwrap();
        let created = (NOW - DAY).to_string();
        let old = [("created_at", &*created)];
        let key = write(&world, "msg_out", 101, &job(101), &old).await;
        world.settle(&coordinator).await;
        is_refused(&world, &key, "timeout: not stored by its target within 1 h").await;
        assert!(world.list(8, "msg_out_coordinator").await.is_empty());
        // A plain client may put it at its target itself, where it has waited for long.
        let key = write(&world, "msg_in:8", 102, &job(102), &old).await;
        world.settle(&coordinator).await;
        is_refused(&world, &key, "timeout_ack: not taken up within 2 h").await;
        assert!(world.list(8, "msg_in:8").await.is_empty());
        // Just in time.
        let created = (NOW - 60).to_string();
        let young = [("created_at", &*created), ("timeout", "60")];
        write(&world, "msg_out", 103, &job(103), &young).await;
        world.settle(&coordinator).await;
        assert_eq!(world.run_job().await, world.key(8, "job:1:103"));
    }
}

#[tokio::test]
async fn a_message_that_waited_at_its_target_for_too_long_does_not_run() {
    for world in World::everywhere().await {
        let coordinator = Coordinator::new(&world.node).await.unwrap();
        let key = world.send_job().await.to_string();
        coordinator.step(&world.context(7).await).await.unwrap();
        assert_eq!(world.list(8, "msg_in:8").await.len(), 1);
        world.pass(u64::from(DAY) * 1_000);
        coordinator.step(&world.context(8).await).await.unwrap();
        is_refused(&world, &key, "timeout_ack").await;
        assert_eq!(world.field(7, &key, "status").await, "error");
    }
}

#[tokio::test]
async fn jobs_that_need_each_other_are_refused() {
    for world in World::everywhere().await {
        let coordinator = Coordinator::new(&world.node).await.unwrap();
        let circle = |one: &str, other: &str| {
            format!(
                r#"[{{"id":1,"caller_id":1,"script":"1","script_type":"v",{one}}},
                    {{"id":2,"caller_id":1,"script":"1","script_type":"v",{other}}}]"#
            )
        };
        let jobs = [
            circle(r#""dependends":[2]"#, r#""dependends":[1]"#),
            circle(r#""dependends":[2]"#, r#""prerequisites":["job:1:1"]"#),
            circle(r#""dependends":[1]"#, r#""dependends":[]"#),
            circle(r#""prerequisites":["message:1:104"]"#, r#""dependends":[]"#),
        ];
        for (id, jobs) in (101..).zip(jobs) {
            let key = write(&world, "msg_out", id, &jobs, &[]).await;
            world.settle(&coordinator).await;
            // The copy at the target may have another number.
            let log = world.field(8, &key, "logs").await;
            if id < 104 {
                assert_eq!(world.field(8, &key, "status").await, "error", "{log}");
                assert!(world.list(8, "queue:v").await.is_empty(), "{id}");
            }
        }
        let direct = circle(r#""prerequisites":["message:1:200"]"#, r#""dependends":[]"#);
        let key = write(&world, "msg_in:8", 200, &direct, &[]).await;
        coordinator.step(&world.context(8).await).await.unwrap();
        let log = world.field(8, &key, "logs").await;
        assert!(log.contains("job:1:1 waits for itself"), "{log}");
    }
}

/// Sends a job message whose `timeout_result` is a minute.
async fn send_urgent(world: &World) -> MessageKey {
    let mut new = NewMessage::new(ContextId::new(8).unwrap(), MessageType::Job);
    new.timeout_result = 60;
    new.jobs.push(MessageJob {
        script_type: "v".parse().unwrap(),
        script: "1".to_owned(),
        timeout: None,
        retries: 0,
        env_vars: Default::default(),
        after: Vec::new(),
    });
    let seven = world.context(7).await;
    seven.send(&world.me, &new).await.unwrap().key()
}

#[tokio::test]
async fn no_job_begins_after_the_timeout_of_its_message() {
    for world in World::everywhere().await {
        let coordinator = Coordinator::new(&world.node).await.unwrap();
        send_urgent(&world).await;
        send_urgent(&world).await;
        world.settle(&coordinator).await;
        let begun: String = world.plain(8, &["RPOP", "queue:v"]).await;
        world
            .plain::<i64>(8, &["HSET", &begun, "status", "started"])
            .await;
        let waits = world.list(8, "queue:v").await;
        assert_eq!(waits.len(), 1);
        // Workers of Meshwork compare this field.
        let limit = format!("{} 60000", u64::from(NOW + 60) * 1_000);
        assert_eq!(world.field(8, &waits[0], "mw_start_by").await, limit);
        world.pass(59_000);
        world.settle(&coordinator).await;
        assert_eq!(world.list(8, "queue:v").await, waits);
        world.pass(3_000);
        world.settle(&coordinator).await;
        assert!(world.list(8, "queue:v").await.is_empty());
        assert_eq!(world.field(8, &waits[0], "status").await, "error");
        let why = world.field(8, &waits[0], "error").await;
        assert!(
            why.contains("timeout_result of its message, 1 min"),
            "{why}"
        );
        assert_eq!(world.field(8, &begun, "status").await, "started");
        world.pass(1_000);
        world.settle(&coordinator).await;
        assert_eq!(world.field(8, "message:1:2", "status").await, "error");
        assert_eq!(world.field(7, "message:1:2", "status").await, "error");
    }
}

async fn messages(world: &World, context: u32) -> usize {
    let keys: Vec<String> = world.plain(context, &["KEYS", "message:*"]).await;
    keys.len()
}

#[tokio::test]
async fn messages_and_results_end_after_seven_days() {
    for world in World::everywhere().await {
        let coordinator = Coordinator::new(&world.node).await.unwrap();
        world.send_job().await;
        world.send_text("never read").await;
        write(&world, "msg_out", 900, "no jobs", &[]).await;
        world.settle(&coordinator).await;
        world.run_job().await;
        world.pass(1_000);
        world.settle(&coordinator).await;
        // Result, job message, chat; the result at its sender, and the unreadable message.
        let before = (messages(&world, 7).await, messages(&world, 8).await);
        assert_eq!(before, (3, 4));
        world.pass(u64::from(7 * DAY) * 1_000 - 2_000);
        world.settle(&coordinator).await;
        assert_eq!(messages(&world, 8).await, 4);
        assert_eq!(world.list(7, "msg_in").await.len(), 1);
        world.pass(u64::from(DAY) * 1_000);
        world.settle(&coordinator).await;
        assert_eq!(messages(&world, 8).await, 0);
        // The coordinator noticed the timeout of the chat late, and its retention began then.
        assert_eq!(messages(&world, 7).await, 1);
        world.pass(u64::from(7 * DAY) * 1_000);
        world.settle(&coordinator).await;
        for context in [7, 8] {
            assert_eq!(messages(&world, context).await, 0, "{context}");
            for list in ["msg_in", "msg_in:8", "msg_out", "msg_out_coordinator"] {
                assert!(world.list(context, list).await.is_empty(), "{list}");
            }
            for set in ["mw:messages", "mw:sent", "mw:open", "mw:outbound"] {
                let left: usize = world.plain(context, &["ZCARD", set]).await;
                assert_eq!(left, 0, "{set} of {context}");
            }
        }
    }
}

#[tokio::test]
async fn an_admin_deletes_messages() {
    for world in World::everywhere().await {
        let coordinator = Coordinator::new(&world.node).await.unwrap();
        let (seven, eight) = (world.context(7).await, world.context(8).await);
        let unsent = world.send_text("unsent").await;
        seven.delete_message(&world.me, unsent).await.unwrap();
        let gone = seven.delete_message(&world.me, unsent).await;
        assert!(
            matches!(gone, Err(ContextError::NoMessage { .. })),
            "{gone:?}"
        );
        let unread = world.send_text("unread").await;
        let runs = world.send_job().await;
        world.settle(&coordinator).await;
        assert_eq!(world.list(8, "msg_in").await.len(), 1);
        eight.delete_message(&world.me, unread).await.unwrap();
        assert!(world.list(8, "msg_in").await.is_empty());
        for context in [&seven, &eight] {
            let open = context.delete_message(&world.me, runs).await;
            assert!(
                matches!(open, Err(ContextError::MessageOpen { .. })),
                "{open:?}"
            );
        }
        let key = new_key();
        world.node.trust(key.public(), None).await.unwrap();
        let bob = world.node.identify(key).await.unwrap();
        let denied = eight.delete_message(&bob, runs).await;
        assert!(matches!(denied, Err(ContextError::Denied(_))), "{denied:?}");
        world.run_job().await;
        world.pass(1_000);
        world.settle(&coordinator).await;
        eight.delete_message(&world.me, runs).await.unwrap();
        seven.delete_message(&world.me, runs).await.unwrap();
        assert_eq!(world.field(7, "message:1:3", "status").await, "");
    }
}
