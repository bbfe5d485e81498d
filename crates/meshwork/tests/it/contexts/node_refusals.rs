//! Refusals of a node: each is counted, is in an audit trail, and stores nothing.

use std::collections::BTreeMap;

use meshwork::context::new_key;
use meshwork_model::access::Role;
use meshwork_model::actor_key::{KeyBytes, SecretKey};
use meshwork_model::context::{ContextJob, Message, MessageType, NodeId, Reason};
use meshwork_model::envelope::{Body, Destination, Kind, Nonce, SKEW, Source};
use meshwork_model::keys::context::{ActorId, ContextId, JobKey, MessageKey};
use meshwork_model::mesh::{Frame, Item, PeerState};

use super::two_nodes::{NOW, Pair, arrives};
use super::world::World;

/// More than the origins of messages are remembered.
const DAYS: u64 = 9 * 24 * 3600;

pub(super) fn context(id: u32) -> ContextId {
    ContextId::new(id).unwrap()
}

/// All that a node has stored, but its audit trails and the counts of refusals.
async fn image(world: &World) -> BTreeMap<String, String> {
    let mut image = BTreeMap::new();
    for database in [0, 7, 8] {
        let keys: Vec<String> = world.plain(database, &["KEYS", "*"]).await;
        let is_count = |key: &str| ["mw:audit", "mw:mesh-refused", "mw:refused"].contains(&key);
        for key in keys.iter().filter(|key| !is_count(key)) {
            let kind: String = world.plain(database, &["TYPE", key]).await;
            let words = match kind.as_str() {
                "hash" => vec!["HGETALL", key],
                "list" => vec!["LRANGE", key, "0", "-1"],
                "zset" => vec!["ZRANGE", key, "0", "-1", "WITHSCORES"],
                "string" => vec!["GET", key],
                other => panic!("{key} is a {other}"),
            };
            let value: redis::Value = world.plain(database, &words).await;
            image.insert(format!("{database} {key}"), format!("{value:?}"));
        }
    }
    image
}

/// Entries of the audit trails of the node and of both contexts, as texts.
async fn trails(world: &World) -> [Vec<String>; 3] {
    let mut trails = [const { Vec::new() }; 3];
    for (database, trail) in [0, 7, 8].into_iter().zip(&mut trails) {
        let words = ["XRANGE", "mw:audit", "-", "+"];
        let entries: Vec<redis::Value> = world.plain(database, &words).await;
        trail.extend(entries.iter().map(|entry| format!("{entry:?}")));
    }
    trails
}

/// A pair of nodes whose second one is attacked: it has what a first message left.
pub(super) struct Siege {
    pub(super) pair: Pair,
    before: BTreeMap<String, String>,
    /// Number of entries of each audit trail.
    trails: [usize; 3],
    next: u32,
}

impl Siege {
    pub(super) async fn new() -> Self {
        let mut pair = Box::pin(Pair::new()).await;
        let key = pair.send().await;
        pair.until_ended(&key, arrives).await;
        pair.there.exchange.note_refusals(0).await.unwrap();
        let before = image(&pair.there.world).await;
        let trails = trails(&pair.there.world).await;
        Self {
            pair,
            before,
            trails: trails.map(|trail| trail.len()),
            next: 500,
        }
    }

    fn now_ms(&self) -> u64 {
        NOW * 1000 + self.pair.mono
    }

    pub(super) fn frame(&self, items: Vec<Item>) -> Frame {
        Frame {
            dst: self.pair.there.id,
            src: self.pair.here.id,
            sent_ms: self.now_ms(),
            items,
        }
    }

    /// A body of a message with one job that the other node would accept.
    fn body(&mut self) -> Body {
        self.next += 1;
        let now = u32::try_from(self.now_ms() / 1000).unwrap();
        let (seven, key) = (context(7), MessageKey::new(1, self.next));
        let mut message = Message::new(seven, key, MessageType::Job, "", now);
        let job = JobKey::new(1, self.next);
        let job = ContextJob::new(seven, job, "v".parse().unwrap(), "1", now);
        message.job.push(job);
        let src = Source {
            node: self.pair.here.id,
            context: seven,
            actor: KeyBytes::from(self.pair.here.world.me.key().public()),
        };
        let dst = Destination {
            node: self.pair.there.id,
            context: context(8),
            actor: None,
            topic: None,
        };
        let mut nonce = [0; 16];
        nonce[..4].copy_from_slice(&self.next.to_be_bytes());
        Body::of(&message, Nonce(nonce), src, dst)
    }

    pub(super) fn envelope(&mut self, change: impl FnOnce(&mut Body)) -> String {
        let mut body = self.body();
        change(&mut body);
        body.seal(&[self.pair.here.world.me.key()]).unwrap()
    }

    /// Lets bytes arrive from a daemon, in a second of their own.
    async fn arrive(&mut self, daemon: KeyBytes, bytes: &[u8]) {
        self.pair.mono += 1_000;
        self.pair.there.world.pass(1_000);
        let mono = self.pair.mono;
        let taken = self.pair.there.exchange.receive(daemon, bytes, mono);
        taken.await.unwrap();
    }

    pub(super) fn refused(&self) -> u64 {
        self.pair.there.exchange.refused().values().sum()
    }

    /// Checks that nothing but an audit trail changed, which has the code.
    pub(super) async fn has_refused(&mut self, code: &str) {
        let refused = self.pair.there.exchange.refused();
        assert!(refused.contains_key(code), "{code}: {refused:?}");
        // Refused frames are in the audit trail after a minute at the latest.
        self.pair.mono += 60_000;
        self.pair.there.world.pass(60_000);
        let mono = self.pair.mono;
        self.pair.there.exchange.note_refusals(mono).await.unwrap();
        let world = &self.pair.there.world;
        let mut now = image(world).await;
        // A valid frame shows that the node is there, whatever is in it.
        let peer = format!("0 mw:peer:{}", self.pair.here.id);
        now.insert(peer.clone(), self.before[&peer].clone());
        // The list of its open messages may end with them.
        let listed = format!("0 mw:peer-in:{}", self.pair.here.id);
        if !now.contains_key(&listed) {
            self.before.remove(&listed);
        }
        assert_eq!(now, self.before, "{code}");
        let noted = self.noted().await;
        assert!(noted.contains(code), "{code}: {noted}");
        let trails = trails(&self.pair.there.world).await;
        self.trails = trails.map(|trail| trail.len());
    }

    /// Entries of the audit trails since the last check.
    async fn noted(&self) -> String {
        let trails = trails(&self.pair.there.world).await;
        let new = trails.iter().zip(self.trails);
        new.flat_map(|(trail, before)| trail[before..].iter().cloned())
            .collect()
    }

    /// Number of refused messages, of the node and of both contexts.
    async fn counted(&self) -> u64 {
        let mut all = 0;
        for database in [0, 7, 8] {
            let rows: BTreeMap<String, String> = {
                let world = &self.pair.there.world;
                world.plain(database, &["HGETALL", "mw:refused"]).await
            };
            let counts = rows
                .values()
                .filter_map(|row| row.split_once(' ')?.0.parse::<u64>().ok());
            all += counts.sum::<u64>();
        }
        all
    }

    /// Sends a frame that has to be refused as a whole.
    async fn refuses(&mut self, code: &str, daemon: KeyBytes, key: &SecretKey, frame: &Frame) {
        let before = self.refused();
        self.arrive(daemon, &frame.seal(key).unwrap()).await;
        assert_eq!(self.refused(), before + 1, "{code}");
        self.has_refused(code).await;
    }

    /// Sends an envelope in a valid frame. Returns the answer.
    async fn answer(&mut self, envelope: String) -> Option<(PeerState, Option<Reason>)> {
        let frame = self.frame(vec![Item::Message(envelope.into_bytes())]);
        let here = &self.pair.here;
        let (daemon, bytes) = (here.daemon, frame.seal(&here.key).unwrap());
        self.arrive(daemon, &bytes).await;
        self.answered().await
    }

    /// The state in the next frame of the attacked node.
    async fn answered(&mut self) -> Option<(PeerState, Option<Reason>)> {
        let mono = self.pair.mono;
        let there = &mut self.pair.there;
        let frames = there.exchange.outbound(mono).await.unwrap();
        let (me, now) = (self.pair.here.id, self.now_ms());
        let mut states = Vec::new();
        for frame in frames {
            let key = self.pair.there.key.public();
            let opened = Frame::open(&frame.bytes, me, now, |_| Some(key)).unwrap();
            states.extend(opened.items.into_iter().filter_map(|item| match item {
                Item::State { state, reason, .. } => Some((state, reason)),
                _ => None,
            }));
            let sent = self.pair.there.exchange.sent(frame, mono).await;
            sent.unwrap();
        }
        assert!(states.len() <= 1, "{states:?}");
        states.pop()
    }

    /// Sends an envelope that has to be refused with this code, in the answer too.
    async fn refuses_envelope(&mut self, code: &str, envelope: String) {
        let counted = self.counted().await;
        let (state, reason) = self.answer(envelope).await.unwrap();
        assert_eq!(state, PeerState::Refused, "{code}");
        assert_eq!(reason.unwrap().code, code);
        let noted = self.noted().await;
        assert!(!noted.contains("refuse message"), "{code}: {noted}");
        assert_eq!(self.counted().await, counted + 1, "{code}");
        self.has_refused(code).await;
    }
}

#[tokio::test]
async fn frames_of_others_and_of_other_times_are_refused() {
    let mut siege = Siege::new().await;
    let (daemon, key) = (siege.pair.here.daemon, siege.pair.here.key.clone());
    let ping = siege.frame(vec![Item::Ping { id: 1 }]);
    siege.refuses("tampered", daemon, &new_key(), &ping).await;
    let other = KeyBytes([77; 32]);
    let ping = siege.frame(vec![Item::Ping { id: 1 }]);
    siege.refuses("unknown_node", other, &key, &ping).await;
    let own = siege.pair.there.daemon;
    let ping = siege.frame(vec![Item::Ping { id: 1 }]);
    siege.refuses("unknown_node", own, &key, &ping).await;
    let changed = |siege: &Siege, change: fn(&mut Frame)| {
        let mut frame = siege.frame(vec![Item::Ping { id: 1 }]);
        change(&mut frame);
        frame
    };
    let frame = changed(&siege, |frame| frame.dst = NodeId([9; 32]));
    siege.refuses("wrong_node", daemon, &key, &frame).await;
    let frame = changed(&siege, |frame| frame.src = NodeId([9; 32]));
    siege.refuses("unknown_node", daemon, &key, &frame).await;
    let frame = changed(&siege, |frame| frame.src = frame.dst);
    siege.refuses("unknown_node", daemon, &key, &frame).await;
    // A second passes until it arrives.
    let frame = changed(&siege, |frame| frame.sent_ms -= SKEW * 1000);
    siege.refuses("wrong_time", daemon, &key, &frame).await;
    let frame = changed(&siege, |frame| frame.sent_ms += (SKEW + 2) * 1000);
    siege.refuses("wrong_time", daemon, &key, &frame).await;
    // Bytes that are no frame, a frame of another version, and one that is too long.
    let bytes = siege.frame(vec![Item::Ping { id: 1 }]).seal(&key).unwrap();
    for (code, bad) in [
        ("malformed", b"MWF".to_vec()),
        ("malformed", Vec::new()),
        ("malformed", [b"MWF2", &bytes[4..]].concat()),
        ("oversized", vec![0; 2 * 1024 * 1024]),
    ] {
        siege.arrive(daemon, &bad).await;
        siege.has_refused(code).await;
    }
    // A node that was revoked, and one whose card has expired.
    let alice = "alice".parse().unwrap();
    let there = &siege.pair.there.world;
    there.node.revoke_node(&alice).await.unwrap();
    siege.before = image(there).await;
    let ping = siege.frame(vec![Item::Ping { id: 1 }]);
    siege.refuses("unknown_node", daemon, &key, &ping).await;
}

#[tokio::test]
async fn envelopes_are_refused_with_a_code() {
    let mut siege = Siege::new().await;
    let stranger = new_key();
    let sealed = siege.envelope(|body| body.dst.context = context(9));
    siege.refuses_envelope("no_context", sealed).await;
    let sealed = siege.envelope(|body| body.dst.context = context(7));
    siege.refuses_envelope("forbidden", sealed).await;
    let sealed = siege.envelope(|body| body.dst.node = NodeId([9; 32]));
    siege.refuses_envelope("wrong_node", sealed).await;
    for kind in [Kind::Result, Kind::Ack] {
        let sealed = siege.envelope(|body| body.kind = kind);
        siege.refuses_envelope("bad_type", sealed).await;
    }
    let sealed = siege.envelope(|body| body.created_at += SKEW + 10);
    siege.refuses_envelope("future", sealed).await;
    let sealed = siege.envelope(|body| {
        body.created_at -= 9 * 3600;
        body.expires_at = body.created_at + 3600;
    });
    siege.refuses_envelope("expired", sealed).await;
    let sealed = siege.envelope(|body| body.created_at -= 3 * 3600);
    siege.refuses_envelope("late", sealed).await;
    let sealed = siege.envelope(|body| {
        let other = serde_json::json!({"id": 1, "caller_id": 2, "script": "1", "script_type": "v"});
        body.jobs.push(other.as_object().unwrap().clone());
    });
    siege.refuses_envelope("malformed", sealed).await;
    // Signed by another key than the one it names, and by an actor of whom nobody knows here.
    let body = siege.body();
    let sealed = body.seal(&[&stranger]).unwrap();
    siege.refuses_envelope("unknown_key", sealed).await;
    let sealed = siege.envelope(|body| body.src.actor = KeyBytes::from(stranger.public()));
    siege.refuses_envelope("unknown_key", sealed).await;
    let sealed = siege.envelope(|_| {}).replace("job.v1", "message.v1");
    assert!(
        siege.answer(sealed).await.is_none(),
        "nobody knows whose it is"
    );
    siege.has_refused("bad_type").await;
    // A body of another version, and one of another node.
    let sealed = siege.envelope(|body| body.v = 2);
    assert!(siege.answer(sealed).await.is_none());
    siege.has_refused("malformed").await;
    let sealed = siege.envelope(|body| body.src.node = NodeId([3; 32]));
    assert!(siege.answer(sealed).await.is_none());
    siege.has_refused("wrong_actor").await;
    // An actor without a role, and one who was revoked.
    let there = &siege.pair.there.world;
    let eight = there.context(8).await;
    let revoked = eight.revoke(&there.me, Role::Admin, ActorId(2)).await;
    revoked.unwrap();
    siege.before = image(&siege.pair.there.world).await;
    let sealed = siege.envelope(|_| {});
    siege.refuses_envelope("forbidden", sealed).await;
    let there = &siege.pair.there.world;
    there.node.revoke(ActorId(2)).await.unwrap();
    siege.before = image(&siege.pair.there.world).await;
    let sealed = siege.envelope(|_| {});
    siege.refuses_envelope("revoked_key", sealed).await;
}

#[tokio::test]
async fn a_replayed_frame_or_envelope_stores_nothing_within_and_after_the_time_of_its_origin() {
    let mut siege = Siege::new().await;
    let (daemon, key) = (siege.pair.here.daemon, siege.pair.here.key.clone());
    let envelope = siege.envelope(|_| {});
    let frame = siege.frame(vec![Item::Message(envelope.clone().into_bytes())]);
    let bytes = frame.seal(&key).unwrap();
    siege.arrive(daemon, &bytes).await;
    assert_eq!(siege.answered().await.unwrap().0, PeerState::Stored);
    let after = image(&siege.pair.there.world).await;
    assert_ne!(after, siege.before);
    siege.before = after;
    // The same frame, and the same envelope in a later one: the sender gets the same answer.
    siege.arrive(daemon, &bytes).await;
    assert_eq!(siege.answered().await.unwrap().0, PeerState::Stored);
    let again = siege.answer(envelope.clone()).await.unwrap();
    assert_eq!(again.0, PeerState::Stored);
    let peer = format!("0 mw:peer:{}", siege.pair.here.id);
    let mut now = image(&siege.pair.there.world).await;
    now.insert(peer.clone(), siege.before[&peer].clone());
    assert_eq!(now, siege.before);
    // After that, nothing of it is remembered, and nothing is accepted.
    siege.pair.mono += DAYS * 1000;
    siege.pair.there.world.pass(DAYS * 1000);
    let there = &siege.pair.there.world;
    for key in there
        .plain::<Vec<String>>(8, &["KEYS", "mw:origin:*"])
        .await
    {
        there.plain::<i64>(8, &["DEL", &key]).await;
    }
    siege.before = image(&siege.pair.there.world).await;
    siege.arrive(daemon, &bytes).await;
    siege.has_refused("wrong_time").await;
    siege.refuses_envelope("expired", envelope).await;
}
