//! Signed messages that are sent a second time: as they are, under another nonce, from another context, and late.

use std::collections::BTreeMap;

use meshwork::context::Coordinator;
use meshwork_model::context::{MessageStatus, limits};
use meshwork_model::envelope::SKEW;
use meshwork_model::keys::context::{ContextId, MessageKey};

use super::world::World;

/// The key of the message that is sent.
const KEY: &str = "message:1:1";

/// Writes into the stored message, and puts it on the outbox once more: whoever may write in the database can do this.
async fn again(world: &World, context: u32, changes: &[(&str, &str)]) {
    let drop = ["HDEL", KEY, "mw_stored_at", "mw_nonce"];
    world.plain::<i64>(context, &drop).await;
    for (field, value) in [&[("status", "dispatched")], changes].concat() {
        let set = ["HSET", KEY, field, value];
        world.plain::<i64>(context, &set).await;
    }
    let list = ["LPUSH", "msg_out", KEY];
    world.plain::<i64>(context, &list).await;
}

/// The status at the sender, and the last line of the log there.
async fn outcome(world: &World, context: u32) -> (MessageStatus, String) {
    let context = world.context(context).await;
    let view = context.message(&world.me, MessageKey::new(1, 1)).await;
    let message = view.unwrap().message;
    let last = message.logs.last().map(|log| log.text.clone());
    (message.status, last.unwrap_or_default())
}

/// Sends a message, and then its envelope in all ways in which it must not count again.
async fn counts_once(world: &World, job: bool) {
    let coordinator = Coordinator::new(&world.node).await.unwrap();
    let nine = ContextId::new(9);
    let made = world.node.create_context(&world.me, nine, None);
    made.await.unwrap();
    match job {
        true => world.send_job().await,
        false => world.send_text("hello").await,
    };
    let nonce = world.field(7, KEY, "mw_nonce").await;
    world.settle(&coordinator).await;
    let stored_once = async |when: &str| {
        let keys: Vec<String> = world.plain(8, &["KEYS", "message:*"]).await;
        let mut stored = Vec::new();
        for key in keys {
            // The result of a job that did not begin in time is a message too.
            if world.field(8, &key, "mw_re").await.is_empty() {
                stored.push(key);
            }
        }
        assert_eq!(stored, [KEY], "{when}");
        let (list, expected): (_, &[&str]) = match (job, when) {
            // The time to begin is over for the job.
            (true, "expired: ") => ("queue:v", &[]),
            (true, _) => ("queue:v", &["job:1:1"]),
            (false, _) => ("msg_in", &[KEY]),
        };
        assert_eq!(world.list(8, list).await, expected, "{when}");
    };
    let refused = async |context: u32, code: &str| {
        world.settle(&coordinator).await;
        let (status, text) = outcome(world, context).await;
        assert_eq!(status, MessageStatus::Error, "{code}");
        assert!(text.starts_with(code), "{code}: {text}");
        stored_once(code).await;
    };
    stored_once("at first").await;

    again(world, 7, &[("mw_nonce", &nonce)]).await;
    world.settle(&coordinator).await;
    assert_eq!(outcome(world, 7).await.1, "stored in context 8");
    stored_once("sent twice").await;

    let (other, upper) = ("0".repeat(32), nonce.to_uppercase());
    again(world, 7, &[("mw_nonce", &other)]).await;
    refused(7, "replay: ").await;
    again(world, 7, &[("mw_nonce", &upper)]).await;
    refused(7, "replay: ").await;
    // Without a nonce of its record, the one of the envelope counts: it is the same message.
    again(world, 7, &[]).await;
    world.settle(&coordinator).await;
    assert_eq!(outcome(world, 7).await.1, "stored in context 8");
    stored_once("sent without a nonce").await;

    let record: BTreeMap<String, String> = world.plain(7, &["HGETALL", KEY]).await;
    let record = record.iter().flat_map(|(field, value)| [&**field, value]);
    let copy: Vec<_> = ["HSET", KEY].into_iter().chain(record).collect();
    world.plain::<i64>(9, &copy).await;
    again(world, 9, &[("mw_nonce", &nonce)]).await;
    // A job's record names its context, which is signed as well.
    refused(9, if job { "tampered: `job`" } else { "replay: " }).await;

    // The origin is forgotten as well: nothing that has expired is taken.
    world.pass((u64::from(limits::DEFAULT_TIMEOUT_RESULT) + SKEW + 1) * 1_000);
    world.settle(&coordinator).await;
    let origins: Vec<String> = world.plain(8, &["KEYS", "mw:origin:*"]).await;
    assert_eq!(origins.len(), 1, "{origins:?}");
    world.plain::<i64>(8, &["DEL", &origins[0]]).await;
    again(world, 7, &[("mw_nonce", &nonce)]).await;
    refused(7, "expired: ").await;
}

#[tokio::test]
async fn an_envelope_counts_once() {
    for job in [true, false] {
        for world in World::all().await {
            counts_once(&world, job).await;
        }
    }
}
